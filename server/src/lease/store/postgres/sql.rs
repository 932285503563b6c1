//! Every statement on Postgres. Set-based: one looks at all that a batch needs, one writes it. Rows come as one JSON text,
//! as on SQLite, so that both stores share their conversions.
//!
//! **Invariant:** what a batch writes depends on rows that `lease_save` holds, and that still say what was read. It compares
//! each row as it is once the lock is had: a counter in the statement that locks it, which shows the newest there is; leases
//! and lines in a statement that starts afterwards. A join beside `FOR UPDATE` would show the other table as it was before,
//! and `now()` the transaction's start. A lease that has ended stays as it is: its counter's row says all.

macro_rules! lease {
    () => {
        "json_build_array(l.lease_id, l.resource, l.owner_id, l.issuer, l.fencing_token, l.ttl_seconds, l.metadata,
            l.acquired_at, l.expires_at, l.renewed_at, l.renewals, l.ended_at, l.ended_how, l.revoked_by,
            l.revoke_reason, l.audit_id)"
    };
}

/// The server's clock at this very moment, in milliseconds.
macro_rules! server_now {
    () => {
        "floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
    };
}

/// The store's clock at this very moment, in milliseconds: see `steady`.
macro_rules! now {
    () => {
        concat!("(", server_now!(), " + (SELECT clock_shift_ms FROM store_meta))")
    };
}

/// A replica without a heartbeat for this long has no waiters, in milliseconds: five heartbeats. With the interval at which
/// queues are checked it is less than a second, after which the waiters of a killed server must be out of the queue.
macro_rules! gone_after {
    () => {
        "750"
    };
}

macro_rules! lines {
    () => {
        concat!(
            "lease_waiters w JOIN lease_replicas r ON r.replica_id = w.replica_id
            AND r.seen_at > ",
            now!(),
            " - ",
            gone_after!()
        )
    };
}

/// Names and lease ids. Makes the rows that there are not, then locks all of them in order. Where a lease belongs never
/// changes, so that needs no lock. Fewer rows than names: another replica has made one after this had begun to look; asked
/// again it sees that.
pub(super) const LOCK: &str = "WITH names AS MATERIALIZED (SELECT unnest($1::text[]) AS name
            UNION SELECT resource FROM leases WHERE lease_id = ANY($2)),
        made AS (INSERT INTO resource_tokens (resource, last_token)
            SELECT name, 0 FROM unnest($1::text[]) AS name
            WHERE NOT EXISTS (SELECT FROM resource_tokens t WHERE t.resource = name)
            ORDER BY name COLLATE \"C\" ON CONFLICT DO NOTHING RETURNING 1),
        locked AS MATERIALIZED (SELECT FROM resource_tokens
            WHERE resource = ANY(ARRAY(SELECT name FROM names)) ORDER BY resource FOR UPDATE)
     SELECT (SELECT count(*) FROM made) + (SELECT count(*) FROM locked) >= (SELECT count(*) FROM names)";

/// Of `resource_tokens t` with its newest lease `l`.
macro_rules! state {
    () => {
        concat!(
            "json_build_array(t.resource, t.last_token, t.locked_until,
                CASE WHEN l.lease_id IS NULL THEN NULL ELSE ",
            lease!(),
            " END,
                (SELECT json_agg(json_build_array(w.waiter_id, w.replica_id) ORDER BY w.seq) FROM ",
            lines!(),
            " WHERE w.resource = t.resource))"
        )
    };
}

/// Of one name.
pub(super) const STATE: &str = concat!(
    "SELECT ",
    now!(),
    ", (SELECT ",
    state!(),
    "::text FROM resource_tokens t LEFT JOIN leases l ON l.lease_id = t.lease_id WHERE t.resource = $1)"
);

/// All that a batch looks at, as one moment shows it: names, lease ids, issuers and keys. Of each resource its state and the
/// marks by which `lease_save` knows it again; of each lease where it belongs; those leases whole that are not their
/// resource's newest; the keys.
pub(super) const LOOK: &str = concat!(
    "WITH bound AS MATERIALIZED (SELECT k.* FROM unnest($3::text[], $4::text[]) AS asked(issuer, key)
            JOIN idempotency_keys k USING (issuer, key)),
        asked AS MATERIALIZED (SELECT l.*, t.lease_id AS newest
            FROM leases l LEFT JOIN resource_tokens t ON t.resource = l.resource
            WHERE l.lease_id = ANY($2 || ARRAY(SELECT lease_id FROM bound WHERE lease_id IS NOT NULL))),
        names AS MATERIALIZED (SELECT unnest($1::text[]) AS name
            UNION SELECT resource FROM asked WHERE lease_id = ANY($2))
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
        coalesce((SELECT json_agg(json_build_array(lease_id, resource))::text FROM asked), '[]'),
        coalesce((SELECT json_agg(",
    lease!(),
    ")::text FROM asked l WHERE l.newest IS DISTINCT FROM l.lease_id), '[]'),
        coalesce((SELECT json_agg(json_build_array(issuer, key, fingerprint, lease_id, created_at))::text
            FROM bound), '[]')"
);

pub(super) const LEASES: &str = concat!(
    "SELECT ",
    now!(),
    ", coalesce((SELECT json_agg(",
    lease!(),
    ")::text FROM leases l WHERE l.lease_id = ANY($1)), '[]')"
);

/// See migration 17.
pub(super) const SAVE: &str = "SELECT shown_at, why FROM lease_save($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14,
    $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, $33, $34, $35, $36, $37, $38,
    $39, $40, $41, $42, $43::json, $44::json, $45::json, $46::json, $47::json, $48)";

pub(super) const LINE: &str = concat!(
    "SELECT w.owner_id, w.since FROM ",
    lines!(),
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
            lines!(),
            " WHERE w.resource = l.resource),
                (SELECT min(w.since) FROM ",
            lines!(),
            " WHERE w.resource = l.resource)))::text"
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

pub(super) const RUN_OUT: &str = concat!(
    "SELECT resource FROM leases WHERE ended_at IS NULL AND expires_at <= ",
    now!(),
    " LIMIT $1"
);

/// First in line at each resource, and how long until it may try.
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
    lines!(),
    "
        WHERE w.resource = t.resource ORDER BY w.seq LIMIT 1) AS first
     LEFT JOIN leases l ON l.lease_id = t.lease_id AND l.ended_at IS NULL
     WHERE t.resource = ANY($1)"
);

/// A rejection without the highest token is judged by the lease that is held.
pub(super) const STALE_WRITES: &str = "SELECT r.resource, r.fencing_token, r.owner_id, r.at FROM fencing_rejections r
     JOIN (SELECT max(id) AS id FROM fencing_rejections
         WHERE at >= $1 AND reason <> 'never_issued' AND (highest_token IS NULL OR fencing_token < highest_token)
         GROUP BY resource) AS newest ON newest.id = r.id";

pub(super) const REJECTIONS_OF: &str =
    "SELECT id, resource, fencing_token, highest_token, owner_id, source, reason, at
     FROM fencing_rejections WHERE ($1::text IS NULL OR resource = $1) AND at >= $2 AND at < $3
        AND ($5::text IS NULL OR resource >= $5) AND ($6::text IS NULL OR resource < $6) ORDER BY id DESC LIMIT $4";

pub(super) const HERE: &str = concat!(
    "INSERT INTO lease_replicas (replica_id, seen_at) VALUES ($1, ",
    now!(),
    ")
     ON CONFLICT (replica_id) DO UPDATE SET seen_at = excluded.seen_at"
);

pub(super) const REPLICAS: &str = concat!(
    "SELECT count(*) FROM lease_replicas WHERE replica_id <> $1 AND seen_at > ",
    now!(),
    " - 10000"
);

/// What a replica left behind that is long gone.
pub(super) const FORGET_WAITERS: &str = concat!(
    "DELETE FROM lease_waiters WHERE replica_id NOT IN
        (SELECT replica_id FROM lease_replicas WHERE seen_at > ",
    now!(),
    " - 10000)"
);

pub(super) const FORGET_REPLICAS: &str =
    concat!("DELETE FROM lease_replicas WHERE seen_at < ", now!(), " - 60000");

pub(super) const PRUNE_LEASES: &str = "DELETE FROM leases WHERE lease_id IN
     (SELECT lease_id FROM leases WHERE lease_id < $1 AND ended_at IS NOT NULL LIMIT 500)";

pub(super) const PRUNE_KEYS: &str = concat!(
    "DELETE FROM idempotency_keys WHERE (issuer, key) IN
     (SELECT issuer, key FROM idempotency_keys WHERE created_at < ",
    now!(),
    " - 600000 LIMIT 500)"
);

pub(super) const CLOCK: &str = concat!("SELECT ", now!());

/// What the clock goes on from, and what it has to show less than. The row's own columns, so that a replica which had to
/// wait for another sees what that one has done.
pub(super) const STEPPED_BACK: &str = concat!(
    "UPDATE store_meta SET clock_raised_at = $1, clock_shift_ms = $1 - ",
    server_now!(),
    " WHERE ",
    server_now!(),
    " + clock_shift_ms < $2"
);

/// What the clock goes on from, what it has to show more than, and how far the caller has seen the store's time come. Takes
/// off no more than was added, and nothing that was added after that: it is the step that the caller sees.
pub(super) const STEPPED_AHEAD: &str = concat!(
    "UPDATE store_meta SET clock_shift_ms = greatest(0, $1 - ",
    server_now!(),
    ") WHERE clock_shift_ms > 0 AND clock_raised_at <= $3 AND ",
    server_now!(),
    " + clock_shift_ms > $2"
);

/// Before anything is read at a start: the clock may have been set back while nobody looked.
pub(super) const STEPPED_BACK_BEFORE: &str = concat!(
    "UPDATE store_meta SET clock_raised_at = clock_ms, clock_shift_ms = clock_ms - ",
    server_now!(),
    " WHERE ",
    server_now!(),
    " + clock_shift_ms < clock_ms - $1"
);

pub(super) const CLOCK_SEEN: &str = concat!(
    "UPDATE store_meta SET clock_ms = greatest(clock_ms, ",
    server_now!(),
    " + clock_shift_ms)"
);

/// Which cluster, and which of its histories: a restore to a point in time or a promotion starts a new timeline.
pub(super) const IDENTITY: &str = "SELECT (SELECT system_identifier::text FROM pg_control_system()) || ':'
     || left(pg_walfile_name(pg_current_wal_lsn()), 8)";

/// Leases that say more than their counter: a counter was put back.
pub(super) const REWOUND: &str = "SELECT l.resource FROM leases l LEFT JOIN resource_tokens t USING (resource)
     WHERE l.fencing_token > greatest(coalesce(t.last_token, 0), (SELECT token_floor FROM store_meta)) LIMIT 1";

/// Counters catch up with the leases that say more.
pub(super) const MEND_COUNTERS: &str = "INSERT INTO resource_tokens AS t (resource, last_token, lease_id)
     SELECT DISTINCT ON (resource) resource, fencing_token, lease_id FROM leases ORDER BY resource, fencing_token DESC
     ON CONFLICT (resource) DO UPDATE SET last_token = excluded.last_token, lease_id = excluded.lease_id
     WHERE excluded.last_token > t.last_token";
