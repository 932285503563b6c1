-- The lease service. Times are milliseconds since 1970 by the store's clock. Names compare as bytes.

CREATE TABLE store_meta (
    only_row    int    PRIMARY KEY CHECK (only_row = 1),
    store_id    text   NOT NULL,
    -- Raised when a part of the store may have been lost; no token is granted at or below the floor.
    epoch       bigint NOT NULL,
    token_floor bigint NOT NULL,
    -- Which cluster and timeline this is: a restore or a promotion changes it.
    identity    text   NOT NULL
);

-- One row for each resource that was ever granted. Never deleted: the counter is the promise.
CREATE TABLE resource_tokens (
    resource     text   COLLATE "C" PRIMARY KEY,
    last_token   bigint NOT NULL CHECK (last_token >= 0 AND last_token < 9007199254740992),
    lease_id     text   COLLATE "C",
    locked_until bigint
) WITH (fillfactor = 70);

CREATE FUNCTION resource_tokens_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'rows of resource_tokens are never deleted and a fencing token never goes back';
END $$;

CREATE TRIGGER resource_tokens_stay BEFORE DELETE ON resource_tokens
    FOR EACH ROW EXECUTE FUNCTION resource_tokens_refuse();
CREATE TRIGGER resource_tokens_rise BEFORE UPDATE OF last_token ON resource_tokens
    FOR EACH ROW WHEN (NEW.last_token < OLD.last_token) EXECUTE FUNCTION resource_tokens_refuse();

CREATE TABLE leases (
    lease_id      text   COLLATE "C" PRIMARY KEY,
    resource      text   COLLATE "C" NOT NULL,
    owner_id      text   NOT NULL,
    issuer        text   NOT NULL,
    fencing_token bigint NOT NULL,
    ttl_seconds   bigint NOT NULL,
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
) WITH (fillfactor = 80);

-- At most one lease without an ending for each resource, and the order of the listing.
CREATE UNIQUE INDEX leases_held ON leases (resource) WHERE ended_at IS NULL;

CREATE TABLE idempotency_keys (
    issuer      text   COLLATE "C" NOT NULL,
    key         text   COLLATE "C" NOT NULL,
    fingerprint text   NOT NULL,
    lease_id    text   COLLATE "C",
    created_at  bigint NOT NULL,
    PRIMARY KEY (issuer, key)
);

-- Server processes that are there. Waiters of one that is not seen any more do not count.
CREATE TABLE lease_replicas (
    replica_id text   PRIMARY KEY,
    seen_at    bigint NOT NULL
);

CREATE TABLE lease_waiters (
    seq        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    waiter_id  text   COLLATE "C" NOT NULL UNIQUE,
    resource   text   COLLATE "C" NOT NULL,
    owner_id   text   NOT NULL,
    replica_id text   NOT NULL,
    since      bigint NOT NULL
);

CREATE INDEX lease_waiters_in_line ON lease_waiters (resource, seq);

-- Writes that were refused because of their token: by our check, or by a resource that reported it.
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
