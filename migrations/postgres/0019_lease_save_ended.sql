-- lease_save as before (see 0017 and 0018), with fewer lookups: a lease that has ended stays as it is, so that its counter's row
-- says all. Its seen_renewals come as null.
CREATE OR REPLACE FUNCTION lease_save(
    -- By the store's clock, and how far from now it may be, in milliseconds; null when the caller holds the locks already.
    decided_at bigint, patience_ms bigint,
    -- What was seen: the floor of all tokens, and of each resource. One without a row has no token yet.
    seen_floor bigint,
    seen_resource text[], seen_token bigint[], seen_lease text[], seen_locked_until bigint[],
    seen_renewals bigint[], seen_expires_at bigint[], seen_ended_at bigint[], seen_waiters bigint[],
    seen_last_waiter bigint[],
    -- The counters that change.
    counter_resource text[], counter_token bigint[], counter_lease text[], counter_locked_until bigint[],
    -- The leases that change, and those that are born.
    changed_id text[], changed_ttl bigint[], changed_expires_at bigint[], changed_renewed_at bigint[],
    changed_renewals bigint[], changed_ended_at bigint[], changed_ended_how text[], changed_revoked_by text[],
    changed_revoke_reason text[], changed_audit_id text[],
    born_id text[], born_ttl bigint[], born_expires_at bigint[], born_renewed_at bigint[], born_renewals bigint[],
    born_ended_at bigint[], born_ended_how text[], born_revoked_by text[], born_revoke_reason text[],
    born_audit_id text[], born_resource text[], born_owner text[], born_issuer text[], born_token bigint[],
    born_metadata text[], born_acquired_at bigint[],
    -- The rarer rows, each kind as one JSON text, and what the other replicas are told; null for none.
    keys json, unbound json, gone json, joined json, refused json, notice text,
    OUT shown_at bigint, OUT why text
) LANGUAGE plpgsql AS $$
DECLARE
    found     bigint;
    same      bigint;
    floor_now bigint;
    written   bigint;
BEGIN
    -- Waits for whoever is making the same row; that is why the moment is looked at after the locks.
    IF 0 = ANY (seen_token) THEN
        INSERT INTO resource_tokens (resource, last_token)
        SELECT v.resource, 0 FROM unnest(seen_resource) WITH ORDINALITY AS v(resource, i)
        WHERE seen_token[v.i] = 0 ORDER BY v.resource COLLATE "C" ON CONFLICT DO NOTHING;
    END IF;

    -- A row that is locked is the newest there is, whatever the statement saw when it began.
    SELECT count(*), count(*) FILTER (WHERE locked.is_same) INTO found, same FROM (
        SELECT t.last_token = seen_token[v.i]
            AND t.lease_id IS NOT DISTINCT FROM seen_lease[v.i]
            AND t.locked_until IS NOT DISTINCT FROM seen_locked_until[v.i] AS is_same
        FROM unnest(seen_resource) WITH ORDINALITY AS v(resource, i)
        JOIN resource_tokens t ON t.resource = v.resource
        FOR UPDATE OF t SKIP LOCKED
    ) AS locked;
    IF found < cardinality(seen_resource) THEN
        why := 'locked';
        RETURN;
    END IF;

    SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint + clock_shift_ms, token_floor
    INTO shown_at, floor_now FROM store_meta;
    IF abs(shown_at - decided_at) > patience_ms THEN
        why := 'late';
        RETURN;
    END IF;
    IF same < found OR floor_now <> seen_floor THEN
        why := 'changed';
        RETURN;
    END IF;

    -- A statement of its own: it sees what was committed before the locks were had.
    IF cardinality(array_remove(seen_renewals, NULL)) > 0 THEN
        SELECT count(*), count(*) FILTER (WHERE l.renewals = seen_renewals[v.i]
            AND l.expires_at IS NOT DISTINCT FROM seen_expires_at[v.i]
            AND l.ended_at IS NOT DISTINCT FROM seen_ended_at[v.i])
        INTO found, same
        FROM unnest(seen_lease) WITH ORDINALITY AS v(lease_id, i) JOIN leases l ON l.lease_id = v.lease_id
        WHERE seen_renewals[v.i] IS NOT NULL;
        IF same < found OR found <> cardinality(array_remove(seen_renewals, NULL)) THEN
            why := 'changed';
            RETURN;
        END IF;
    END IF;
    IF 0 < ANY (seen_waiters) OR EXISTS (SELECT FROM lease_waiters WHERE resource = ANY (seen_resource)) THEN
        SELECT count(*) INTO found
        FROM unnest(seen_resource) WITH ORDINALITY AS v(resource, i)
        CROSS JOIN LATERAL (SELECT count(*) AS waiters, max(w.seq) AS last_waiter FROM lease_waiters w
            WHERE w.resource = v.resource) AS line
        WHERE line.waiters = seen_waiters[v.i] AND line.last_waiter IS NOT DISTINCT FROM seen_last_waiter[v.i];
        IF found < cardinality(seen_resource) THEN
            why := 'changed';
            RETURN;
        END IF;
    END IF;

    IF keys IS NOT NULL THEN
        -- A key that somebody else bound meanwhile, to another request, is a row too few.
        INSERT INTO idempotency_keys AS k (issuer, key, fingerprint, lease_id, created_at)
        SELECT v.issuer, v.key, v.fingerprint, v.lease_id, v.created_at
        FROM json_to_recordset(keys)
            AS v(issuer text, key text, fingerprint text, lease_id text, created_at bigint)
        ORDER BY v.issuer COLLATE "C", v.key COLLATE "C"
        ON CONFLICT (issuer, key) DO UPDATE SET fingerprint = excluded.fingerprint, lease_id = excluded.lease_id,
            created_at = excluded.created_at
        WHERE k.fingerprint = excluded.fingerprint OR k.created_at <= excluded.created_at - 600000;
        GET DIAGNOSTICS written = ROW_COUNT;
        IF written <> json_array_length(keys) THEN
            RAISE EXCEPTION 'an idempotency key was bound meanwhile' USING ERRCODE = '40001';
        END IF;
    END IF;
    IF unbound IS NOT NULL THEN
        DELETE FROM idempotency_keys k USING json_array_elements(unbound) AS v
        WHERE k.issuer = v ->> 0 AND k.key = v ->> 1;
    END IF;

    -- One may leave and join again in the same batch.
    IF gone IS NOT NULL THEN
        DELETE FROM lease_waiters w WHERE w.waiter_id IN (SELECT json_array_elements_text(gone));
    END IF;
    IF joined IS NOT NULL THEN
        INSERT INTO lease_waiters (waiter_id, resource, owner_id, replica_id, since)
        SELECT v ->> 'waiter_id', v ->> 'resource', v ->> 'owner_id', v ->> 'replica_id', (v ->> 'since')::bigint
        FROM json_array_elements(joined) WITH ORDINALITY AS rows(v, place) ORDER BY place;
    END IF;

    IF refused IS NOT NULL THEN
        INSERT INTO fencing_rejections (resource, fencing_token, highest_token, owner_id, source, reason, at,
            recorded_at)
        SELECT v.resource, v.fencing_token, v.highest_token, v.owner_id, v.source, v.reason, v.at, v.recorded_at
        FROM json_to_recordset(refused)
            AS v(resource text, fencing_token bigint, highest_token bigint, owner_id text, source text, reason text,
                at bigint, recorded_at bigint);
    END IF;

    IF cardinality(counter_resource) > 0 THEN
        UPDATE resource_tokens t SET last_token = counter_token[v.i], lease_id = counter_lease[v.i],
            locked_until = counter_locked_until[v.i]
        FROM unnest(counter_resource) WITH ORDINALITY AS v(resource, i)
        WHERE t.resource = v.resource;
        GET DIAGNOSTICS written = ROW_COUNT;
        IF written <> cardinality(counter_resource) THEN
            RAISE EXCEPTION 'a counter is missing' USING ERRCODE = '40001';
        END IF;
    END IF;
    -- Before the births: a resource has one lease without an ending.
    IF cardinality(changed_id) > 0 THEN
        UPDATE leases l SET ttl_seconds = changed_ttl[v.i], expires_at = changed_expires_at[v.i],
            renewed_at = changed_renewed_at[v.i], renewals = changed_renewals[v.i], ended_at = changed_ended_at[v.i],
            ended_how = changed_ended_how[v.i], revoked_by = changed_revoked_by[v.i],
            revoke_reason = changed_revoke_reason[v.i], audit_id = changed_audit_id[v.i]
        FROM unnest(changed_id) WITH ORDINALITY AS v(id, i)
        -- Not IS NULL: a plan made while little is held would walk all that is held for each row.
        WHERE l.lease_id = v.id AND coalesce(l.ended_at, 0) = 0;
        GET DIAGNOSTICS written = ROW_COUNT;
        IF written <> cardinality(changed_id) THEN
            RAISE EXCEPTION 'a lease has ended meanwhile' USING ERRCODE = '40001';
        END IF;
    END IF;
    IF cardinality(born_id) > 0 THEN
        INSERT INTO leases (lease_id, ttl_seconds, expires_at, renewed_at, renewals, ended_at, ended_how, revoked_by,
            revoke_reason, audit_id, resource, owner_id, issuer, fencing_token, metadata, acquired_at)
        SELECT v.id, born_ttl[v.i], born_expires_at[v.i], born_renewed_at[v.i], born_renewals[v.i], born_ended_at[v.i],
            born_ended_how[v.i], born_revoked_by[v.i], born_revoke_reason[v.i], born_audit_id[v.i], born_resource[v.i],
            born_owner[v.i], born_issuer[v.i], born_token[v.i], born_metadata[v.i], born_acquired_at[v.i]
        FROM unnest(born_id) WITH ORDINALITY AS v(id, i);
    END IF;

    IF notice IS NOT NULL THEN
        PERFORM pg_notify('leasehold_leases', notice);
    END IF;
END $$;
