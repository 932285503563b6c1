//! Every statement on Postgres. Set-based: one per kind of row and batch. Rows come and go as one JSON text, as on
//! SQLite, so that both stores share their conversions.
//!
//! **Invariant:** whatever depends on a row is read by a statement that starts after the row's lock was taken. A join
//! beside `FOR UPDATE` would show the other table as it was before the wait, and `now()` the transaction's start.

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

/// A replica that was not seen for this long has no waiters, in milliseconds.
macro_rules! gone_after {
    () => {
        "2000"
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
/// changes, so that needs no lock. Fewer rows than names: another replica has made one meanwhile, see [`LOCK`].
pub(super) const FIND_AND_LOCK: &str =
    "WITH homes AS MATERIALIZED (SELECT lease_id, resource FROM leases WHERE lease_id = ANY($2)),
        names AS MATERIALIZED (SELECT unnest($1::text[]) AS name UNION SELECT resource FROM homes),
        made AS (INSERT INTO resource_tokens (resource, last_token)
            SELECT name, 0 FROM unnest($1::text[]) AS name
            WHERE NOT EXISTS (SELECT FROM resource_tokens t WHERE t.resource = name)
            ORDER BY name COLLATE \"C\" ON CONFLICT DO NOTHING RETURNING 1),
        locked AS MATERIALIZED (SELECT FROM resource_tokens
            WHERE resource = ANY(ARRAY(SELECT name FROM names)) ORDER BY resource FOR UPDATE)
     SELECT (SELECT count(*) FROM names), (SELECT count(*) FROM made), (SELECT count(*) FROM locked),
        coalesce((SELECT json_agg(json_build_array(lease_id, resource))::text FROM homes), '[]')";

pub(super) const LOCK: &str = "SELECT count(*) FROM
     (SELECT FROM resource_tokens WHERE resource = ANY($1) ORDER BY resource FOR UPDATE) AS locked";

pub(super) const STATES: &str = concat!(
    "SELECT ",
    now!(),
    ", (SELECT token_floor FROM store_meta),
     coalesce((SELECT json_agg(json_build_array(t.resource, t.last_token, t.locked_until,
        CASE WHEN l.lease_id IS NULL THEN NULL ELSE ",
    lease!(),
    " END,
        (SELECT json_agg(json_build_array(w.waiter_id, w.replica_id) ORDER BY w.seq) FROM ",
    lines!(),
    "
            WHERE w.resource = t.resource)))::text
     FROM resource_tokens t LEFT JOIN leases l ON l.lease_id = t.lease_id WHERE t.resource = ANY($1)), '[]')"
);

pub(super) const LEASES: &str = concat!(
    "SELECT ",
    now!(),
    ", coalesce((SELECT json_agg(",
    lease!(),
    ")::text FROM leases l WHERE l.lease_id = ANY($1)), '[]')"
);

pub(super) const KEYS_OF: &str =
    "SELECT coalesce(json_agg(json_build_array(k.issuer, k.key, k.fingerprint, k.lease_id,
        k.created_at))::text, '[]')
     FROM unnest($1::text[], $2::text[]) AS asked(issuer, key) JOIN idempotency_keys k USING (issuer, key)";

/// Counters, changed and new leases; answers how many rows of each were written. A counter must be what was read under
/// the lock; it is set to what the state machine made of that. A new lease waits until the one before it has its ending,
/// because a resource has one lease without.
pub(super) const SAVE: &str =
    "WITH counted AS (UPDATE resource_tokens t
            SET last_token = v.token, lease_id = v.lease_id, locked_until = v.locked_until
            FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::text[], $5::bigint[])
                AS v(resource, before, token, lease_id, locked_until)
            WHERE t.resource = v.resource AND t.last_token = v.before RETURNING 1),
        changed AS (UPDATE leases l SET ttl_seconds = v.ttl_seconds, expires_at = v.expires_at,
                renewed_at = v.renewed_at, renewals = v.renewals, ended_at = v.ended_at, ended_how = v.ended_how,
                revoked_by = v.revoked_by, revoke_reason = v.revoke_reason, audit_id = v.audit_id
            FROM unnest($6::text[], $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[],
                $12::text[], $13::text[], $14::text[], $15::text[])
                AS v(lease_id, ttl_seconds, expires_at, renewed_at, renewals, ended_at,
                    ended_how, revoked_by, revoke_reason, audit_id)
            WHERE l.lease_id = v.lease_id AND l.ended_at IS NULL RETURNING 1),
        before AS MATERIALIZED (SELECT count(*) AS rows FROM changed),
        born AS (INSERT INTO leases (lease_id, ttl_seconds, expires_at, renewed_at, renewals, ended_at,
                ended_how, revoked_by, revoke_reason, audit_id,
                resource, owner_id, issuer, fencing_token, metadata, acquired_at)
            SELECT * FROM unnest($16::text[], $17::bigint[], $18::bigint[], $19::bigint[], $20::bigint[], $21::bigint[],
                $22::text[], $23::text[], $24::text[], $25::text[],
                $26::text[], $27::text[], $28::text[], $29::bigint[], $30::text[], $31::bigint[])
            WHERE (SELECT rows FROM before) >= 0 RETURNING 1)
     SELECT (SELECT count(*) FROM counted), (SELECT rows FROM before), (SELECT count(*) FROM born)";

/// A key that somebody else bound meanwhile, to another request, is a row too few.
pub(super) const KEYS: &str = "INSERT INTO idempotency_keys AS k (issuer, key, fingerprint, lease_id, created_at)
     SELECT issuer, key, fingerprint, lease_id, created_at
     FROM json_to_recordset($1::json) AS v(issuer text, key text, fingerprint text, lease_id text, created_at bigint)
     ORDER BY issuer COLLATE \"C\", key COLLATE \"C\"
     ON CONFLICT (issuer, key) DO UPDATE SET fingerprint = excluded.fingerprint, lease_id = excluded.lease_id,
        created_at = excluded.created_at
     WHERE k.fingerprint = excluded.fingerprint OR k.created_at <= excluded.created_at - 600000";

pub(super) const UNBOUND: &str = "DELETE FROM idempotency_keys k USING json_array_elements($1::json) AS v
     WHERE k.issuer = v->>0 AND k.key = v->>1";

pub(super) const JOINED: &str = "INSERT INTO lease_waiters (waiter_id, resource, owner_id, replica_id, since)
     SELECT v->>'waiter_id', v->>'resource', v->>'owner_id', v->>'replica_id', (v->>'since')::bigint
     FROM json_array_elements($1::json) WITH ORDINALITY AS rows(v, place) ORDER BY place";

pub(super) const LEFT: &str =
    "DELETE FROM lease_waiters WHERE waiter_id IN (SELECT json_array_elements_text($1::json))";

pub(super) const REJECTIONS: &str = "INSERT INTO fencing_rejections (resource, fencing_token, highest_token, owner_id, source,
        reason, at, recorded_at)
     SELECT resource, fencing_token, highest_token, owner_id, source, reason, at, recorded_at
     FROM json_to_recordset($1::json) AS v(resource text, fencing_token bigint, highest_token bigint, owner_id text,
        source text, reason text, at bigint, recorded_at bigint)";

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

pub(super) const REJECTIONS_OF: &str =
    "SELECT id, resource, fencing_token, highest_token, owner_id, source, reason, at
     FROM fencing_rejections WHERE ($1::text IS NULL OR resource = $1) AND at >= $2 AND at < $3 ORDER BY id DESC LIMIT $4";

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
