-- The lease service. Times are milliseconds since 1970 by the store's clock. Names compare as bytes.

CREATE TABLE store_meta (
    only_row               int    PRIMARY KEY CHECK (only_row = 1),
    store_id               text   NOT NULL,
    -- Raised when a part of the store may have been lost; no token is granted at or below the floor.
    epoch                  bigint NOT NULL,
    token_floor            bigint NOT NULL,
    -- System identifier and timeline of the cluster: a restore or a promotion changes it.
    cluster_identity       text   NOT NULL,
    -- The store's clock is the clock of the database server plus this offset: when that clock is set back, the store's does not
    -- go back.
    clock_offset_ms        bigint NOT NULL DEFAULT 0 CHECK (clock_offset_ms >= 0),
    -- When, by the store's clock, the offset was last increased: a process that has not read the store's time since then does
    -- not decrease it.
    clock_offset_raised_at bigint NOT NULL DEFAULT 0,
    -- The latest time of the store's clock, for a process that starts after the clock was set back.
    clock_ms               bigint NOT NULL DEFAULT 0,
    -- Where the leases were moved to: a server refuses to grant from this store again.
    moved_to               text
);

-- What a database keeps about itself when it is a shard of the lease service. Without a row it is not a shard. One server uses an
-- SQLite file, so it is never one of several shards.
CREATE TABLE lease_shard (
    only_row        int  PRIMARY KEY CHECK (only_row = 1),
    -- Of the console that the leases belong to.
    installation_id text NOT NULL,
    -- Position in `lease.store`, from 0.
    shard_index     int  NOT NULL,
    -- Fixed at creation: another number would move resources away from their fencing counters.
    shard_count     int  NOT NULL,
    -- The function from names to shards.
    name_hash       text NOT NULL,
    CHECK (shard_index >= 0 AND shard_index < shard_count)
);

-- One row for each resource that was ever granted. Never deleted: a deleted counter would repeat fencing tokens.
CREATE TABLE resource_tokens (
    resource     text   COLLATE "C" PRIMARY KEY,
    last_token   bigint NOT NULL CHECK (last_token >= 0 AND last_token < 9007199254740992),
    -- The newest lease, also after its end.
    lease_id     text   COLLATE "C",
    locked_until bigint
) WITH (fillfactor = 70);

CREATE FUNCTION resource_tokens_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'rows of resource_tokens are never deleted and a fencing token never decreases';
END $$;

CREATE TRIGGER resource_tokens_no_delete BEFORE DELETE ON resource_tokens
    FOR EACH ROW EXECUTE FUNCTION resource_tokens_refuse_change();
CREATE TRIGGER resource_tokens_no_decrease BEFORE UPDATE OF last_token ON resource_tokens
    FOR EACH ROW WHEN (NEW.last_token < OLD.last_token) EXECUTE FUNCTION resource_tokens_refuse_change();

CREATE TABLE leases (
    lease_id      text   COLLATE "C" PRIMARY KEY,
    resource      text   COLLATE "C" NOT NULL,
    owner_id      text   NOT NULL,
    issuer        text   NOT NULL,
    fencing_token bigint NOT NULL,
    ttl_seconds   bigint NOT NULL,
    -- JSON.
    metadata      text   NOT NULL,
    acquired_at   bigint NOT NULL,
    expires_at    bigint NOT NULL,
    renewed_at    bigint NOT NULL,
    renewals      bigint NOT NULL,
    ended_at      bigint,
    ended_how     text CHECK (ended_how IN ('released', 'expired', 'revoked')),
    revoked_by    text,
    revoke_reason text,
    audit_id      text,
    CHECK ((ended_at IS NULL) = (ended_how IS NULL))
-- Rows are deleted as fast as they are written, so the space of dead rows is needed soon: a fiftieth of the table.
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

-- At most one lease that has not ended for each resource, in the order of the list.
CREATE UNIQUE INDEX leases_held ON leases (resource) WHERE ended_at IS NULL;

CREATE TABLE idempotency_keys (
    issuer      text   COLLATE "C" NOT NULL,
    key         text   COLLATE "C" NOT NULL,
    -- Hash of the request: the same key with another request is rejected.
    fingerprint text   NOT NULL,
    lease_id    text   COLLATE "C",
    -- Whether the lease stays when the client that acquired it is gone: it was granted at once, or a retry has received it.
    is_claimed  boolean NOT NULL,
    created_at  bigint NOT NULL,
    PRIMARY KEY (issuer, key)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

-- Keys past their window are deleted in the order of their creation.
CREATE INDEX idempotency_keys_by_time ON idempotency_keys (created_at);

-- Server processes and their heartbeats. Waiters of a replica without a heartbeat do not count. SQLite has one process.
CREATE TABLE lease_replicas (
    replica_id   text   PRIMARY KEY,
    heartbeat_at bigint NOT NULL
);

CREATE TABLE lease_waiters (
    -- Order of the queue.
    seq           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    waiter_id     text   COLLATE "C" NOT NULL UNIQUE,
    resource      text   COLLATE "C" NOT NULL,
    owner_id      text   NOT NULL,
    replica_id    text   NOT NULL,
    waiting_since bigint NOT NULL
);

CREATE INDEX lease_waiters_by_resource ON lease_waiters (resource, seq);

-- Writes that were refused because their token is stale: found by our check, or reported by a protected resource.
CREATE TABLE fencing_rejections (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    resource      text   COLLATE "C" NOT NULL,
    fencing_token bigint NOT NULL,
    highest_token bigint,
    owner_id      text,
    source        text   NOT NULL,
    reason        text   NOT NULL,
    at            bigint NOT NULL,
    recorded_at   bigint NOT NULL
);

CREATE INDEX fencing_rejections_by_resource ON fencing_rejections (resource, id);
-- For charts and pages of a time range.
CREATE INDEX fencing_rejections_by_time ON fencing_rejections (at, id);

-- Writes the result of a batch in one round trip, if nothing that the decision was made on has changed since it was read.
--
-- The batch may have been decided on reads without locks, or on a cache. So this function takes the row locks without waiting,
-- then compares the rows with the expected values: every decision about a resource depends on these columns alone. Returns the
-- store's time, and a conflict or null. With a conflict nothing is written, except the rows of token 0 of new resources:
--   locked    another transaction holds one of the rows; waiting here would make the decision older
--   late      the decision is further from now than allowed (the process was paused, or a clock was set)
--   changed   a row differs from its expected values
-- A wrong row count after these checks cannot happen; it aborts the transaction with 40001.
--
-- Columns come as arrays. One of them is unnested, so that the planner expects few rows whatever the statistics say; the others
-- are read by subscripts, one step each in plpgsql: unnest of several arrays builds a table of each first.
CREATE FUNCTION save_lease_batch(
    -- When the batch was decided, by the store's clock, and how far from now that may be, in milliseconds; null when the
    -- caller holds the locks already.
    decided_at bigint, decision_age_ms_max bigint,
    -- What the decision was made on: the floor of all tokens, and the state of each resource. A resource without a row has
    -- token 0. Renewals and expiry are those of a lease that has not ended, otherwise null: an ended lease never changes.
    expected_floor bigint,
    expected_resource text[], expected_token bigint[], expected_lease text[], expected_locked_until bigint[],
    expected_renewals bigint[], expected_expires_at bigint[], expected_waiters bigint[],
    expected_last_waiter bigint[],
    -- The counters that change.
    counter_resource text[], counter_token bigint[], counter_lease text[], counter_locked_until bigint[],
    -- The leases that change, and the new ones.
    changed_id text[], changed_ttl bigint[], changed_expires_at bigint[], changed_renewed_at bigint[],
    changed_renewals bigint[], changed_ended_at bigint[], changed_ended_how text[], changed_revoked_by text[],
    changed_revoke_reason text[], changed_audit_id text[],
    new_id text[], new_ttl bigint[], new_expires_at bigint[], new_renewed_at bigint[], new_renewals bigint[],
    new_ended_at bigint[], new_ended_how text[], new_revoked_by text[], new_revoke_reason text[],
    new_audit_id text[], new_resource text[], new_owner text[], new_issuer text[], new_token bigint[],
    new_metadata text[], new_acquired_at bigint[],
    -- The keys to bind, and whether they are taken for new ones because they were not read.
    key_name text[], key_issuer text[], key_fingerprint text[], key_lease text[], key_is_claimed boolean[],
    key_created_at bigint[], keys_are_new boolean,
    -- The rarer rows, each kind as one JSON text; null for none.
    unbound_keys json, left_waiters json, joined_waiters json, rejections json,
    OUT store_now bigint, OUT conflict text
) LANGUAGE plpgsql
-- Leaves only bitmap lookups of the keys of a batch. A generic plan that was made while the tables were nearly empty would
-- otherwise scan a whole index of `leases` for each batch, until the next autovacuum.
SET enable_indexscan = off AS $$
DECLARE
    rows_found     bigint;
    rows_same      bigint;
    current_floor  bigint;
    rows_written   bigint;
BEGIN
    -- Waits for a transaction that inserts the same row; so the clock is read after this.
    IF 0 = ANY (expected_token) THEN
        INSERT INTO resource_tokens (resource, last_token)
        SELECT v.resource, 0 FROM unnest(expected_resource) WITH ORDINALITY AS v(resource, i)
        WHERE expected_token[v.i] = 0 ORDER BY v.resource COLLATE "C" ON CONFLICT DO NOTHING;
    END IF;

    -- A locked row is read in its newest version, not in the version of the statement's snapshot.
    SELECT count(*), count(*) FILTER (WHERE locked.is_same) INTO rows_found, rows_same FROM (
        SELECT t.last_token = expected_token[v.i]
            AND t.lease_id IS NOT DISTINCT FROM expected_lease[v.i]
            AND t.locked_until IS NOT DISTINCT FROM expected_locked_until[v.i] AS is_same
        FROM unnest(expected_resource) WITH ORDINALITY AS v(resource, i)
        JOIN resource_tokens t ON t.resource = v.resource
        FOR UPDATE OF t SKIP LOCKED
    ) AS locked;
    IF rows_found < cardinality(expected_resource) THEN
        conflict := 'locked';
        RETURN;
    END IF;

    SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint + clock_offset_ms, token_floor
    INTO store_now, current_floor FROM store_meta;
    IF abs(store_now - decided_at) > decision_age_ms_max THEN
        conflict := 'late';
        RETURN;
    END IF;
    IF rows_same < rows_found OR current_floor <> expected_floor THEN
        conflict := 'changed';
        RETURN;
    END IF;

    -- A statement of its own: its snapshot has everything that was committed before the locks were taken.
    IF cardinality(array_remove(expected_renewals, NULL)) > 0 THEN
        SELECT count(*), count(*) FILTER (WHERE l.renewals = expected_renewals[v.i]
            AND l.expires_at IS NOT DISTINCT FROM expected_expires_at[v.i]
            AND l.ended_at IS NULL)
        INTO rows_found, rows_same
        FROM unnest(expected_lease) WITH ORDINALITY AS v(lease_id, i) JOIN leases l ON l.lease_id = v.lease_id
        WHERE expected_renewals[v.i] IS NOT NULL;
        IF rows_same < rows_found OR rows_found <> cardinality(array_remove(expected_renewals, NULL)) THEN
            conflict := 'changed';
            RETURN;
        END IF;
    END IF;
    IF 0 < ANY (expected_waiters) OR EXISTS (SELECT FROM lease_waiters WHERE resource = ANY (expected_resource)) THEN
        SELECT count(*) INTO rows_found
        FROM unnest(expected_resource) WITH ORDINALITY AS v(resource, i)
        CROSS JOIN LATERAL (SELECT count(*) AS waiters, max(w.seq) AS last_waiter FROM lease_waiters w
            WHERE w.resource = v.resource) AS queue
        WHERE queue.waiters = expected_waiters[v.i] AND queue.last_waiter IS NOT DISTINCT FROM expected_last_waiter[v.i];
        IF rows_found < cardinality(expected_resource) THEN
            conflict := 'changed';
            RETURN;
        END IF;
    END IF;

    -- Deletes first: a key may be bound again in one batch.
    IF unbound_keys IS NOT NULL THEN
        DELETE FROM idempotency_keys k USING json_array_elements(unbound_keys) AS v
        WHERE k.issuer = v ->> 0 AND k.key = v ->> 1 AND NOT k.is_claimed;
        GET DIAGNOSTICS rows_written = ROW_COUNT;
        IF rows_written <> json_array_length(unbound_keys) THEN
            RAISE EXCEPTION 'a lease was claimed by another transaction' USING ERRCODE = '40001';
        END IF;
    END IF;
    IF cardinality(key_name) > 0 AND keys_are_new THEN
        -- Fails if one of them is bound. ON CONFLICT would first insert each row tentatively, which takes twice as long.
        INSERT INTO idempotency_keys (issuer, key, fingerprint, lease_id, is_claimed, created_at)
        SELECT key_issuer[v.i], v.name, key_fingerprint[v.i], key_lease[v.i], key_is_claimed[v.i], key_created_at[v.i]
        FROM unnest(key_name) WITH ORDINALITY AS v(name, i);
    ELSIF cardinality(key_name) > 0 THEN
        -- A key that another transaction bound to another request is not updated: the row count differs. Keys expire after
        -- 10 minutes.
        INSERT INTO idempotency_keys AS k (issuer, key, fingerprint, lease_id, is_claimed, created_at)
        SELECT key_issuer[v.i], v.name, key_fingerprint[v.i], key_lease[v.i], key_is_claimed[v.i], key_created_at[v.i]
        FROM unnest(key_name) WITH ORDINALITY AS v(name, i)
        ON CONFLICT (issuer, key) DO UPDATE SET fingerprint = excluded.fingerprint, lease_id = excluded.lease_id,
            is_claimed = excluded.is_claimed, created_at = excluded.created_at
        WHERE k.fingerprint = excluded.fingerprint OR k.created_at <= excluded.created_at - 600000;
        GET DIAGNOSTICS rows_written = ROW_COUNT;
        IF rows_written <> cardinality(key_name) THEN
            RAISE EXCEPTION 'an idempotency key was bound by another transaction' USING ERRCODE = '40001';
        END IF;
    END IF;

    -- Deletes first: a waiter may leave and join again in one batch.
    IF left_waiters IS NOT NULL THEN
        DELETE FROM lease_waiters w WHERE w.waiter_id IN (SELECT json_array_elements_text(left_waiters));
    END IF;
    IF joined_waiters IS NOT NULL THEN
        INSERT INTO lease_waiters (waiter_id, resource, owner_id, replica_id, waiting_since)
        SELECT v ->> 'waiter_id', v ->> 'resource', v ->> 'owner_id', v ->> 'replica_id', (v ->> 'waiting_since')::bigint
        FROM json_array_elements(joined_waiters) WITH ORDINALITY AS rows(v, queue_order) ORDER BY queue_order
        -- While its replica had no heartbeat, a waiter was not seen in its queue; it keeps its place.
        ON CONFLICT (waiter_id) DO NOTHING;
    END IF;

    IF rejections IS NOT NULL THEN
        INSERT INTO fencing_rejections (resource, fencing_token, highest_token, owner_id, source, reason, at,
            recorded_at)
        -- The batch's estimate of the time may be ahead by some milliseconds.
        SELECT v.resource, v.fencing_token, v.highest_token, v.owner_id, v.source, v.reason, least(v.at, store_now),
            least(v.recorded_at, store_now)
        FROM json_to_recordset(rejections)
            AS v(resource text, fencing_token bigint, highest_token bigint, owner_id text, source text, reason text,
                at bigint, recorded_at bigint);
    END IF;

    IF cardinality(counter_resource) > 0 THEN
        UPDATE resource_tokens t SET last_token = counter_token[v.i], lease_id = counter_lease[v.i],
            locked_until = counter_locked_until[v.i]
        FROM unnest(counter_resource) WITH ORDINALITY AS v(resource, i)
        WHERE t.resource = v.resource;
        GET DIAGNOSTICS rows_written = ROW_COUNT;
        IF rows_written <> cardinality(counter_resource) THEN
            RAISE EXCEPTION 'a row of resource_tokens is missing' USING ERRCODE = '40001';
        END IF;
    END IF;
    -- Before the inserts: a resource has at most one lease that has not ended.
    IF cardinality(changed_id) > 0 THEN
        UPDATE leases l SET ttl_seconds = changed_ttl[v.i], expires_at = changed_expires_at[v.i],
            renewed_at = changed_renewed_at[v.i], renewals = changed_renewals[v.i], ended_at = changed_ended_at[v.i],
            ended_how = changed_ended_how[v.i], revoked_by = changed_revoked_by[v.i],
            revoke_reason = changed_revoke_reason[v.i], audit_id = changed_audit_id[v.i]
        FROM unnest(changed_id) WITH ORDINALITY AS v(id, i)
        -- Not IS NULL: a plan from a time with few held leases would scan the index of held leases for each row.
        WHERE l.lease_id = v.id AND coalesce(l.ended_at, 0) = 0;
        GET DIAGNOSTICS rows_written = ROW_COUNT;
        IF rows_written <> cardinality(changed_id) THEN
            RAISE EXCEPTION 'a lease was ended by another transaction' USING ERRCODE = '40001';
        END IF;
    END IF;
    IF cardinality(new_id) > 0 THEN
        INSERT INTO leases (lease_id, ttl_seconds, expires_at, renewed_at, renewals, ended_at, ended_how, revoked_by,
            revoke_reason, audit_id, resource, owner_id, issuer, fencing_token, metadata, acquired_at)
        SELECT v.id, new_ttl[v.i], new_expires_at[v.i], new_renewed_at[v.i], new_renewals[v.i], new_ended_at[v.i],
            new_ended_how[v.i], new_revoked_by[v.i], new_revoke_reason[v.i], new_audit_id[v.i], new_resource[v.i],
            new_owner[v.i], new_issuer[v.i], new_token[v.i], new_metadata[v.i], new_acquired_at[v.i]
        FROM unnest(new_id) WITH ORDINALITY AS v(id, i);
    END IF;
END $$;
