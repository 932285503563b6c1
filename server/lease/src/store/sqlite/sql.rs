//! All SQL statements for SQLite. Rows are read as one JSON array, because passing a row between sqlx's threads
//! costs more than the row; they are written one by one on the writer's own thread.

macro_rules! lease {
    () => {
        "json_array(l.lease_id, l.resource, l.owner_id, l.issuer, l.fencing_token, l.ttl_seconds, l.metadata,
            l.acquired_at, l.expires_at, l.renewed_at, l.renewals, l.ended_at, l.ended_how, l.revoked_by,
            l.revoke_reason, l.audit_id)"
    };
}

pub(super) const LEASES: &str = concat!(
    "SELECT json_group_array(json(",
    lease!(),
    "))
     FROM json_each(?1) j CROSS JOIN leases l ON l.lease_id = j.value"
);

macro_rules! state {
    () => {
        concat!("json_array(t.resource, t.last_token, t.locked_until,
        json(CASE WHEN l.lease_id IS NULL THEN NULL ELSE ", lease!(), " END),
        json((SELECT json_group_array(json_array(waiter_id, replica_id))
            FROM (SELECT waiter_id, replica_id FROM lease_waiters w WHERE w.resource = t.resource ORDER BY seq))))")
    };
}

/// Parameters: name; token and lease of its newest grant, unless they are written.
pub(super) const STATE: &str = concat!(
    "SELECT ",
    state!(),
    "
     FROM (SELECT resource, max(last_token, ifnull(?2, 0)) AS last_token,
            iif(last_token < ?2, ?3, lease_id) AS lease_id, iif(last_token < ?2, NULL, locked_until) AS locked_until
         FROM resource_tokens WHERE resource = ?1) t LEFT JOIN leases l ON l.lease_id = t.lease_id"
);

/// Token and lease of the newest grant of a resource whose counter is perhaps not written. Reads the leases with ids since
/// the oldest that waits: ids have the time of the request, which a waiter makes long before its grant.
pub(super) const UNWRITTEN_GRANT: &str = "SELECT fencing_token, lease_id FROM leases
     WHERE lease_id >= (SELECT unwritten_from FROM store_meta) AND resource = ?1 ORDER BY fencing_token DESC LIMIT 1";

/// Parameters: names, lease ids and keys as JSON arrays. Returns floor, resources of leases, states, leases that are
/// not the newest of their resource, keys.
pub(super) const LOAD: &str = concat!(
    "WITH lease_resources AS MATERIALIZED (SELECT l.lease_id, l.resource
            FROM json_each(?2) j CROSS JOIN leases l ON l.lease_id = j.value),
        bound AS MATERIALIZED (SELECT k.issuer, k.key, k.fingerprint, k.lease_id, k.is_claimed, k.created_at
            FROM json_each(?3) j CROSS JOIN idempotency_keys k ON k.issuer = j.value->>0 AND k.key = j.value->>1),
        names AS (SELECT value AS name FROM json_each(?1) UNION SELECT resource FROM lease_resources),
        wanted AS (SELECT lease_id FROM lease_resources UNION SELECT lease_id FROM bound)
     SELECT (SELECT token_floor FROM store_meta),
        (SELECT json_group_array(json_array(lease_id, resource)) FROM lease_resources),
        (SELECT json_group_array(json(", state!(), ")) FROM names
            CROSS JOIN resource_tokens t ON t.resource = names.name LEFT JOIN leases l ON l.lease_id = t.lease_id),
        (SELECT json_group_array(json(", lease!(), ")) FROM wanted CROSS JOIN leases l ON l.lease_id = wanted.lease_id
            LEFT JOIN resource_tokens t ON t.resource = l.resource WHERE t.lease_id IS NOT l.lease_id),
        (SELECT json_group_array(json_array(issuer, key, fingerprint, lease_id,
            json(iif(is_claimed, 'true', 'false')), created_at)) FROM bound)"
);

/// The pragma, not its table-valued function, which prepares the statement again for each row.
pub(super) const DATA_VERSION: &str = "PRAGMA data_version";

/// Counter of a resource without a token. An existing token changes no row, which the caller detects.
pub(super) const FIRST_COUNTER: &str =
    "INSERT INTO resource_tokens (resource, last_token, lease_id, locked_until)
     VALUES (?1, ?2, ?3, ?4)
     ON CONFLICT (resource) DO UPDATE SET last_token = excluded.last_token, lease_id = excluded.lease_id,
        locked_until = excluded.locked_until
     WHERE resource_tokens.last_token = 0";

/// Updates only from the token that the batch is based on; any other changes no row. OR ROLLBACK avoids the
/// statement journal.
pub(super) const COUNTER: &str =
    "UPDATE OR ROLLBACK resource_tokens SET last_token = ?2, lease_id = ?3, locked_until = ?4
     WHERE resource = ?1 AND last_token = ?5";

pub(super) const UPDATE_LEASE: &str =
    "UPDATE leases SET ttl_seconds = ?2, expires_at = ?3, renewed_at = ?4, renewals = ?5,
        ended_at = ?6, ended_how = ?7, revoked_by = ?8, revoke_reason = ?9, audit_id = ?10
     WHERE lease_id = ?1 AND ended_at IS NULL";

pub(super) const INSERT_LEASE: &str = "INSERT INTO leases (lease_id, resource, owner_id, issuer, fencing_token, ttl_seconds, metadata,
        acquired_at, expires_at, renewed_at, renewals, ended_at, ended_how, revoked_by, revoke_reason, audit_id)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)";

/// A key that was bound after ?7 is not replaced: no row changes.
pub(super) const KEY: &str =
    "INSERT INTO idempotency_keys AS k (issuer, key, fingerprint, lease_id, is_claimed, created_at)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6)
     ON CONFLICT (issuer, key) DO UPDATE SET seq = excluded.seq, fingerprint = excluded.fingerprint,
        lease_id = excluded.lease_id, is_claimed = excluded.is_claimed, created_at = excluded.created_at
     WHERE k.created_at <= ?7";

pub(super) const UNBOUND: &str = "DELETE FROM idempotency_keys WHERE issuer = ?1 AND key = ?2";

pub(super) const JOINED: &str =
    "INSERT INTO lease_waiters (waiter_id, resource, owner_id, replica_id, waiting_since)
     VALUES (?1, ?2, ?3, ?4, ?5)";

pub(super) const LEFT: &str = "DELETE FROM lease_waiters WHERE waiter_id = ?1";

pub(super) const REJECTION: &str =
    "INSERT INTO fencing_rejections (resource, fencing_token, highest_token, owner_id,
        source, reason, at, recorded_at)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";

pub(super) const TICK: &str =
    "UPDATE store_meta SET clock_ms = max(clock_ms, ?1), grant_count = grant_count + ?2, unwritten_from = ?3
     WHERE only_row = 1";

/// Writes nothing if it has not changed.
pub(super) const UNWRITTEN_FROM: &str =
    "UPDATE store_meta SET unwritten_from = ?1 WHERE unwritten_from IS NOT ?1";

/// The time to continue from after a restart.
pub(super) const RECORDED_TIME: &str = "SELECT clock_ms, clock_behind_ms FROM store_meta";

/// Parameters: the store's time, and by how much it is shifted. Those that have expired stay expired.
pub(super) const SHIFT_LEASES: &str =
    "UPDATE leases SET acquired_at = acquired_at + ?2, expires_at = expires_at + ?2, renewed_at = renewed_at + ?2
     WHERE ended_at IS NULL";

/// As [`SHIFT_LEASES`].
pub(super) const SHIFT_LOCK_DELAYS: &str =
    "UPDATE resource_tokens SET locked_until = locked_until + ?2 WHERE locked_until > ?1";

/// Before [`SHIFT_KEYS`], with its parameters: an ended lease is kept for as long as a key that answers with it.
pub(super) const SHIFT_ENDED: &str = "UPDATE leases SET ended_at = ended_at + ?2
     WHERE ended_at IS NOT NULL AND lease_id IN (SELECT lease_id FROM idempotency_keys WHERE created_at > ?1)";

/// As [`SHIFT_LEASES`], with the time before which keys are past their window.
pub(super) const SHIFT_KEYS: &str =
    "UPDATE idempotency_keys SET created_at = created_at + ?2 WHERE created_at > ?1";

pub(super) const SHIFT_CLOCK: &str = "UPDATE store_meta SET clock_ms = ?1, clock_behind_ms = 0";

pub(super) const CLOCK_BEHIND: &str = "UPDATE store_meta SET clock_behind_ms = ?1";

pub(super) const QUEUE: &str =
    "SELECT owner_id, waiting_since FROM lease_waiters WHERE resource = ?1 ORDER BY seq";

macro_rules! held {
    () => {
        concat!(
            "SELECT json_group_array(json_array(json(",
            lease!(),
            "),
            (SELECT count(*) FROM lease_waiters w WHERE w.resource = l.resource),
            (SELECT json_group_array(json_array(owner_id, waiting_since)) FROM
                (SELECT owner_id, waiting_since FROM lease_waiters w WHERE w.resource = l.resource
                 ORDER BY seq LIMIT 32))))"
        )
    };
}

pub(super) const HELD: &str = concat!(
    held!(),
    " FROM (SELECT * FROM leases INDEXED BY leases_held
        WHERE ended_at IS NULL AND resource >= ?1 AND (?2 IS NULL OR resource < ?2)
            AND (?3 IS NULL OR resource > ?3) AND expires_at > ?4
        ORDER BY resource LIMIT ?5) l"
);

pub(super) const HELD_OF: &str = concat!(
    held!(),
    " FROM json_each(?1) j CROSS JOIN leases l INDEXED BY leases_held ON l.resource = j.value
     WHERE l.ended_at IS NULL AND l.expires_at > ?2"
);

pub(super) const EXPIRED: &str =
    "SELECT resource FROM leases INDEXED BY leases_held WHERE ended_at IS NULL AND expires_at <= ?1 LIMIT ?2";

/// A rejection without the highest token is compared with the current lease.
pub(super) const STALE_WRITES: &str = "SELECT r.resource, r.fencing_token, r.owner_id, r.at FROM fencing_rejections r
     JOIN (SELECT max(id) AS id FROM fencing_rejections
         WHERE at >= ?1 AND reason <> 'never_issued' AND (highest_token IS NULL OR fencing_token < highest_token)
         GROUP BY resource) AS newest ON newest.id = r.id";

pub(super) const REJECTIONS_OF: &str =
    "SELECT id, resource, fencing_token, highest_token, owner_id, source, reason, at
     FROM fencing_rejections WHERE (?1 IS NULL OR resource = ?1) AND at >= ?2 AND at < ?3
        AND (?5 IS NULL OR resource >= ?5) AND (?6 IS NULL OR resource < ?6) ORDER BY id DESC LIMIT ?4";

/// Ids after one and below another, in order.
pub(super) const VISITED_LEASES: &str = "SELECT json_group_array(lease_id) FROM
     (SELECT lease_id FROM leases WHERE lease_id > ?1 AND lease_id < ?2 ORDER BY lease_id LIMIT ?3)";

/// `PruneRange`, then the times of `PruneDue`. A lease with an unwritten counter is kept.
pub(super) const PRUNE_LEASES: &str = "DELETE FROM leases WHERE lease_id > ?1 AND lease_id <= ?2
     AND lease_id < ifnull((SELECT unwritten_from FROM store_meta), '~')
     AND ended_at IS NOT NULL AND (ended_at < ?4 OR (ended_how = 'released' AND ended_at < ?3))";

/// Of the oldest keys, ?2 in number, those created before ?1. Reads one row if the oldest is not due.
pub(super) const PRUNE_KEYS: &str = "DELETE FROM idempotency_keys
     WHERE seq < (SELECT iif(created_at < ?1, seq + ?2, 0) FROM idempotency_keys ORDER BY seq LIMIT 1)
        AND created_at < ?1";

/// As [`PRUNE_KEYS`].
pub(super) const PRUNE_REJECTIONS: &str = "DELETE FROM fencing_rejections
     WHERE id < (SELECT iif(recorded_at < ?1, id + ?2, 0) FROM fencing_rejections ORDER BY id LIMIT 1)
        AND recorded_at < ?1";

/// Leases with a token above their written counter: the counter was restored from a backup.
pub(super) const REWOUND: &str =
    "SELECT l.resource FROM leases l LEFT JOIN resource_tokens t USING (resource)
     WHERE l.fencing_token > max(coalesce(t.last_token, 0), (SELECT token_floor FROM store_meta))
        AND l.lease_id < ifnull((SELECT unwritten_from FROM store_meta), '~') LIMIT 1";

macro_rules! raise_counters {
    ($leases:literal) => {
        concat!(
            "INSERT INTO resource_tokens (resource, last_token, lease_id)
             SELECT resource, max(fencing_token), lease_id FROM leases WHERE ",
            $leases,
            " GROUP BY resource
             ON CONFLICT (resource) DO UPDATE SET last_token = excluded.last_token, lease_id = excluded.lease_id,
                locked_until = NULL
             WHERE excluded.last_token > resource_tokens.last_token"
        )
    };
}

/// Raises counters to the newest token of their leases. SQLite takes the other columns from the row of the maximum.
pub(super) const REPAIR_COUNTERS: &str = raise_counters!("true");

/// Writes the counters that the last writer did not write. Then none is unwritten.
pub(super) const RESTORE_COUNTERS: &str =
    raise_counters!("lease_id >= (SELECT unwritten_from FROM store_meta)");
