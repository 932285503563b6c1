-- The lease service. Times are milliseconds since 1970 by the store's clock. Names compare as bytes.

CREATE TABLE store_meta (
    only_row    INTEGER PRIMARY KEY CHECK (only_row = 1),
    store_id    TEXT    NOT NULL,
    -- Raised when a part of the store may have been lost; no token is granted at or below the floor.
    epoch       INTEGER NOT NULL,
    token_floor INTEGER NOT NULL,
    -- Where the store's clock had come to: it never goes back, also not over a restart.
    clock_ms    INTEGER NOT NULL,
    -- All grants ever; the witness file beside the store holds it too, so that a rewind shows.
    grants      INTEGER NOT NULL
) STRICT;

-- One row for each resource that was ever granted. Never deleted: the counter is the promise.
CREATE TABLE resource_tokens (
    resource     TEXT    PRIMARY KEY,
    last_token   INTEGER NOT NULL CHECK (last_token >= 0 AND last_token < 9007199254740992),
    lease_id     TEXT,
    locked_until INTEGER
) STRICT, WITHOUT ROWID;

CREATE TRIGGER resource_tokens_stay BEFORE DELETE ON resource_tokens
BEGIN SELECT RAISE(ABORT, 'rows of resource_tokens are never deleted'); END;

CREATE TRIGGER resource_tokens_rise BEFORE UPDATE OF last_token ON resource_tokens
WHEN NEW.last_token < OLD.last_token
BEGIN SELECT RAISE(ABORT, 'a fencing token never goes back'); END;

CREATE TABLE leases (
    lease_id      TEXT    PRIMARY KEY,
    resource      TEXT    NOT NULL,
    owner_id      TEXT    NOT NULL,
    issuer        TEXT    NOT NULL,
    fencing_token INTEGER NOT NULL,
    ttl_seconds   INTEGER NOT NULL,
    metadata      TEXT    NOT NULL,
    acquired_at   INTEGER NOT NULL,
    expires_at    INTEGER NOT NULL,
    renewed_at    INTEGER NOT NULL,
    renewals      INTEGER NOT NULL,
    ended_at      INTEGER,
    ended_how     TEXT CHECK (ended_how IN ('released', 'expired', 'revoked')),
    revoked_by    TEXT,
    revoke_reason TEXT,
    audit_id      TEXT,
    CHECK ((ended_at IS NULL) = (ended_how IS NULL))
) STRICT, WITHOUT ROWID;

-- At most one lease without an ending for each resource, and the order of the listing.
CREATE UNIQUE INDEX leases_held ON leases (resource) WHERE ended_at IS NULL;

CREATE TABLE idempotency_keys (
    issuer      TEXT    NOT NULL,
    key         TEXT    NOT NULL,
    fingerprint TEXT    NOT NULL,
    lease_id    TEXT,
    created_at  INTEGER NOT NULL,
    PRIMARY KEY (issuer, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE lease_waiters (
    seq        INTEGER PRIMARY KEY AUTOINCREMENT,
    waiter_id  TEXT    NOT NULL UNIQUE,
    resource   TEXT    NOT NULL,
    owner_id   TEXT    NOT NULL,
    replica_id TEXT    NOT NULL,
    since      INTEGER NOT NULL
) STRICT;

CREATE INDEX lease_waiters_in_line ON lease_waiters (resource, seq);

-- Writes that were refused because of their token: by our check, or by a resource that reported it.
CREATE TABLE fencing_rejections (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    resource      TEXT    NOT NULL,
    fencing_token INTEGER NOT NULL,
    highest_token INTEGER,
    owner_id      TEXT,
    source        TEXT    NOT NULL,
    reason        TEXT    NOT NULL,
    at            INTEGER NOT NULL,
    recorded_at   INTEGER NOT NULL
) STRICT;

CREATE INDEX fencing_rejections_by_resource ON fencing_rejections (resource, id);
