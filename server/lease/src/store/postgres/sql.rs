//! All SQL statements for Postgres. Set-based: one reads all rows of a batch, one writes them.
//! Rows are returned as one JSON text, as on SQLite, so that both stores share their
//! conversions.
//!
//! **Invariant:** the writes of a batch depend on rows that `save_lease_batch` has locked and that
//! still have the values read before. It compares each row after its lock is held: counters in
//! the locking statement, which shows their newest version; leases and queues in a statement
//! that starts afterwards. A table joined to `FOR UPDATE` would show an older version, and
//! `now()` the start of the transaction. An ended lease never changes, so its counter's row is
//! sufficient.

macro_rules! lease {
    () => {
        "json_build_array(l.lease_id, l.resource, l.owner_id, l.issuer, l.fencing_token, l.ttl_seconds, l.metadata,
            l.acquired_at, l.expires_at, l.renewed_at, l.renewals, l.ended_at, l.ended_how, l.revoked_by,
            l.revoke_reason, l.audit_id)"
    };
}

/// The server's current clock in milliseconds.
macro_rules! server_now {
    () => {
        "floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
    };
}

/// The store's current clock in milliseconds: see `monotonic_clock`.
macro_rules! now {
    () => {
        concat!("(", server_now!(), " + (SELECT clock_offset_ms FROM store_meta))")
    };
}

/// A replica without a heartbeat for this many milliseconds has no waiters: five heartbeats.
/// Together with the interval at which queues are checked it stays below one second, the limit
/// for removing the waiters of a killed server.
macro_rules! gone_after {
    () => {
        "750"
    };
}

macro_rules! live_waiters {
    () => {
        concat!(
            "lease_waiters w JOIN lease_replicas r ON r.replica_id = w.replica_id
            AND r.heartbeat_at > ",
            now!(),
            " - ",
            gone_after!()
        )
    };
}

/// Parameters: names and lease ids. Inserts missing rows, then locks all of them in order. The
/// resource of a lease never changes, so finding it needs no lock. Fewer rows than names:
/// another replica inserted one after the statement's snapshot; a second execution sees it.
pub(super) const LOCK: &str = "WITH names AS MATERIALIZED (SELECT unnest($1::text[]) AS name
            UNION SELECT resource FROM leases WHERE lease_id = ANY($2)),
        made AS (INSERT INTO resource_tokens (resource, last_token)
            SELECT name, 0 FROM unnest($1::text[]) AS name
            WHERE NOT EXISTS (SELECT FROM resource_tokens t WHERE t.resource = name)
            ORDER BY name COLLATE \"C\" ON CONFLICT DO NOTHING RETURNING 1),
        locked AS MATERIALIZED (SELECT FROM resource_tokens
            WHERE resource = ANY(ARRAY(SELECT name FROM names)) ORDER BY resource FOR UPDATE)
     SELECT (SELECT count(*) FROM made) + (SELECT count(*) FROM locked) >= (SELECT count(*) FROM names)";

/// State of `resource_tokens t` with its newest lease `l`.
macro_rules! state {
    () => {
        concat!(
            "json_build_array(t.resource, t.last_token, t.locked_until,
                CASE WHEN l.lease_id IS NULL THEN NULL ELSE ",
            lease!(),
            " END,
                (SELECT json_agg(json_build_array(w.waiter_id, w.replica_id) ORDER BY w.seq) FROM ",
            live_waiters!(),
            " WHERE w.resource = t.resource))"
        )
    };
}

/// State of one resource.
pub(super) const STATE: &str = concat!(
    "SELECT ",
    now!(),
    ", (SELECT ",
    state!(),
    "::text FROM resource_tokens t LEFT JOIN leases l ON l.lease_id = t.lease_id WHERE t.resource = $1)"
);

/// All rows of a batch from one snapshot; parameters: names, lease ids, issuers and keys.
/// Returns the state of each resource with the values that `save_lease_batch` compares, the resource
/// of each lease, the leases that are not the newest of their resource, and the keys.
pub(super) const LOAD: &str = concat!(
    "WITH bound AS MATERIALIZED (SELECT k.* FROM unnest($3::text[], $4::text[]) AS requested(issuer, key)
            JOIN idempotency_keys k USING (issuer, key)),
        requested AS MATERIALIZED (SELECT l.*, t.lease_id AS newest
            FROM leases l LEFT JOIN resource_tokens t ON t.resource = l.resource
            WHERE l.lease_id = ANY($2 || ARRAY(SELECT lease_id FROM bound WHERE lease_id IS NOT NULL))),
        names AS MATERIALIZED (SELECT unnest($1::text[]) AS name
            UNION SELECT resource FROM requested WHERE lease_id = ANY($2))
     SELECT ",
    now!(),
    ", (SELECT token_floor FROM store_meta),
        coalesce((SELECT json_agg(json_build_array(",
    state!(),
    ", t.lease_id, l.renewals, l.expires_at, l.ended_at, line.waiters, line.last_waiter))::text
            FROM resource_tokens t LEFT JOIN leases l ON l.lease_id = t.lease_id
            CROSS JOIN LATERAL (SELECT count(*) AS waiters, max(w.seq) AS last_waiter FROM lease_waiters w
                WHERE w.resource = t.resource) AS line
            WHERE t.resource = ANY(ARRAY(SELECT name FROM names))), '[]'),
        coalesce((SELECT json_agg(json_build_array(lease_id, resource))::text FROM requested), '[]'),
        coalesce((SELECT json_agg(",
    lease!(),
    ")::text FROM requested l WHERE l.newest IS DISTINCT FROM l.lease_id), '[]'),
        coalesce((SELECT json_agg(json_build_array(issuer, key, fingerprint, lease_id, is_claimed, created_at))::text
            FROM bound), '[]')"
);

pub(super) const LEASES: &str = concat!(
    "SELECT ",
    now!(),
    ", coalesce((SELECT json_agg(",
    lease!(),
    ")::text FROM leases l WHERE l.lease_id = ANY($1)), '[]')"
);

/// The function is in migrations/postgres/0001_leases.sql.
pub(super) const SAVE: &str = "SELECT store_now, conflict FROM save_lease_batch($1, $2, $3, $4, $5, $6, $7, $8, $9,
    $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31,
    $32, $33, $34, $35, $36, $37, $38, $39, $40, $41, $42, $43, $44, $45, $46, $47, $48, $49::json, $50::json, $51::json,
    $52::json)";

pub(super) const QUEUE: &str = concat!(
    "SELECT w.owner_id, w.waiting_since FROM ",
    live_waiters!(),
    " WHERE w.resource = $1 ORDER BY w.seq"
);

macro_rules! held {
    () => {
        concat!(
            "SELECT ",
            now!(),
            ", coalesce((SELECT json_agg(json_build_array(",
            lease!(),
            ",
                (SELECT count(*) FROM ",
            live_waiters!(),
            " WHERE w.resource = l.resource),
                (SELECT coalesce(json_agg(json_build_array(q.owner_id, q.waiting_since) ORDER BY q.seq), '[]') FROM
                    (SELECT w.owner_id, w.waiting_since, w.seq FROM ",
            live_waiters!(),
            " WHERE w.resource = l.resource ORDER BY w.seq LIMIT 32) q)))::text"
        )
    };
}

pub(super) const HELD: &str = concat!(
    held!(),
    " FROM (SELECT * FROM leases
        WHERE ended_at IS NULL AND resource >= $1 AND ($2::text IS NULL OR resource < $2)
            AND ($3::text IS NULL OR resource > $3) AND expires_at > ",
    now!(),
    "
        ORDER BY resource LIMIT $4) l), '[]')"
);

pub(super) const HELD_OF: &str = concat!(
    held!(),
    " FROM leases l WHERE l.ended_at IS NULL AND l.resource = ANY($1) AND l.expires_at > ",
    now!(),
    "), '[]')"
);

pub(super) const EXPIRED: &str = concat!(
    "WITH clock AS MATERIALIZED (SELECT ",
    now!(),
    " AS now)
     SELECT now, ARRAY(SELECT resource FROM leases WHERE ended_at IS NULL AND expires_at <= now LIMIT $1)
     FROM clock"
);

/// Head of the queue of each resource, and in how many milliseconds it may try.
pub(super) const HEADS: &str = concat!(
    "SELECT ",
    now!(),
    ", t.resource, first.waiter_id, first.replica_id, greatest(0, coalesce(l.expires_at, 0) - ",
    now!(),
    ",
        coalesce(t.locked_until, 0) - ",
    now!(),
    ")
     FROM resource_tokens t
     CROSS JOIN LATERAL (SELECT w.waiter_id, w.replica_id FROM ",
    live_waiters!(),
    "
        WHERE w.resource = t.resource ORDER BY w.seq LIMIT 1) AS first
     LEFT JOIN leases l ON l.lease_id = t.lease_id AND l.ended_at IS NULL
     WHERE t.resource = ANY($1)"
);

/// A rejection without the highest token is compared with the current lease.
pub(super) const STALE_WRITES: &str = "SELECT r.resource, r.fencing_token, r.owner_id, r.at FROM fencing_rejections r
     JOIN (SELECT max(id) AS id FROM fencing_rejections
         WHERE at >= $1 AND reason <> 'never_issued' AND (highest_token IS NULL OR fencing_token < highest_token)
         GROUP BY resource) AS newest ON newest.id = r.id";

pub(super) const REJECTIONS_OF: &str =
    "SELECT id, resource, fencing_token, highest_token, owner_id, source, reason, at
     FROM fencing_rejections WHERE ($1::text IS NULL OR resource = $1) AND at >= $2 AND at < $3
        AND ($5::text IS NULL OR resource >= $5) AND ($6::text IS NULL OR resource < $6) ORDER BY id DESC LIMIT $4";

pub(super) const HEARTBEAT: &str = concat!(
    "INSERT INTO lease_replicas (replica_id, heartbeat_at) VALUES ($1, ",
    now!(),
    ")
     ON CONFLICT (replica_id) DO UPDATE SET heartbeat_at = excluded.heartbeat_at"
);

pub(super) const TIME: &str = concat!("SELECT ", now!());

pub(super) const REPLICAS: &str = concat!(
    "SELECT count(*) FROM lease_replicas WHERE replica_id <> $1 AND heartbeat_at > ",
    now!(),
    " - 10000"
);

/// Waiters of replicas that are gone.
pub(super) const DELETE_WAITERS: &str = concat!(
    "DELETE FROM lease_waiters WHERE replica_id NOT IN
        (SELECT replica_id FROM lease_replicas WHERE heartbeat_at > ",
    now!(),
    " - 10000)"
);

pub(super) const DELETE_REPLICAS: &str = concat!(
    "DELETE FROM lease_replicas WHERE heartbeat_at < ",
    now!(),
    " - 60000"
);

/// The last of the next ids after one and below another, and their number.
pub(super) const VISITED_LEASES: &str = "SELECT max(lease_id), count(*) FROM
     (SELECT lease_id FROM leases WHERE lease_id > $1 AND lease_id < $2 ORDER BY lease_id LIMIT $3) AS visited";

/// `PruneRange`, then the times of `PruneDue`. Rows that another replica is deleting are skipped.
pub(super) const PRUNE_LEASES: &str = "DELETE FROM leases WHERE lease_id IN
     (SELECT lease_id FROM leases WHERE lease_id > $1 AND lease_id <= $2
         AND ended_at IS NOT NULL AND (ended_at < $4 OR (ended_how = 'released' AND ended_at < $3))
         ORDER BY lease_id FOR UPDATE SKIP LOCKED)";

pub(super) const PRUNE_KEYS: &str = "DELETE FROM idempotency_keys WHERE (issuer, key) IN
     (SELECT issuer, key FROM idempotency_keys WHERE created_at < $1 ORDER BY created_at LIMIT $2
         FOR UPDATE SKIP LOCKED)";

/// Of the oldest rejections, $2 in number, those recorded before $1. Reads one row if the oldest is not due.
pub(super) const PRUNE_REJECTIONS: &str = "DELETE FROM fencing_rejections
     WHERE id < (SELECT CASE WHEN recorded_at < $1 THEN id + $2 ELSE 0 END FROM fencing_rejections ORDER BY id LIMIT 1)
        AND recorded_at < $1";

pub(super) const CLOCK: &str = concat!("SELECT ", now!());

/// Parameters: the time to continue from, and the limit below which the clock counts as set
/// back. Uses the row's own columns, so that a replica that waited for another sees the
/// correction.
pub(super) const STEPPED_BACK: &str = concat!(
    "UPDATE store_meta SET clock_offset_raised_at = $1, clock_offset_ms = $1 - ",
    server_now!(),
    " WHERE ",
    server_now!(),
    " + clock_offset_ms < $2"
);

/// Parameters: the time to continue from, the limit above which the clock counts as set ahead,
/// and the latest store time seen by the caller. Removes at most the existing shift, and never
/// one that was added after the caller's last reading. Nor one that another process has checked at
/// a later time: then it was the caller that was suspended.
pub(super) const STEPPED_AHEAD: &str = concat!(
    "UPDATE store_meta SET clock_offset_ms = greatest(0, $1 - ",
    server_now!(),
    ") WHERE clock_offset_ms > 0 AND clock_offset_raised_at <= $3 AND clock_ms <= $2 AND ",
    server_now!(),
    " + clock_offset_ms > $2"
);

/// At start, before any other read: the clock may have been set back while no process was
/// running.
pub(super) const STEPPED_BACK_BEFORE: &str = concat!(
    "UPDATE store_meta SET clock_offset_raised_at = clock_ms, clock_offset_ms = clock_ms - ",
    server_now!(),
    " WHERE ",
    server_now!(),
    " + clock_offset_ms < clock_ms - $1"
);

/// Parameters: the store's time as checked by the caller, and whether to save it in any case. While the clock is shifted it is
/// saved on each run, for a process that was suspended: see [`STEPPED_AHEAD`].
pub(super) const SAVE_CLOCK: &str = "UPDATE store_meta SET clock_ms = $1
     WHERE clock_ms < $1 AND ($2 OR clock_offset_ms > 0)";

/// Cluster and timeline: a point-in-time restore or a promotion starts a new timeline.
pub(super) const IDENTITY: &str = "SELECT (SELECT system_identifier::text FROM pg_control_system()) || ':'
     || left(pg_walfile_name(pg_current_wal_lsn()), 8)";

/// Leases with a token above their counter: the counter was restored from a backup.
pub(super) const REWOUND: &str = "SELECT l.resource FROM leases l LEFT JOIN resource_tokens t USING (resource)
     WHERE l.fencing_token > greatest(coalesce(t.last_token, 0), (SELECT token_floor FROM store_meta)) LIMIT 1";

/// Raises counters to the newest token of their leases.
pub(super) const REPAIR_COUNTERS: &str = "INSERT INTO resource_tokens AS t (resource, last_token, lease_id)
     SELECT DISTINCT ON (resource) resource, fencing_token, lease_id FROM leases ORDER BY resource, fencing_token DESC
     ON CONFLICT (resource) DO UPDATE SET last_token = excluded.last_token, lease_id = excluded.lease_id
     WHERE excluded.last_token > t.last_token";
