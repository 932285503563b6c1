-- The lease service. Times are milliseconds since 1970 by the store's clock. Names compare as bytes.

CREATE TABLE store_meta (
    only_row    INTEGER PRIMARY KEY CHECK (only_row = 1),
    store_id    TEXT    NOT NULL,
    -- Raised when a part of the store may have been lost; no token is granted at or below the floor.
    epoch       INTEGER NOT NULL,
    token_floor INTEGER NOT NULL,
    -- The latest time of the store's clock: it never goes back, also not over a restart.
    clock_ms    INTEGER NOT NULL,
    -- All grants since the store exists. The witness file next to the store holds the same number: an older copy of the
    -- store is recognized by it.
    grant_count INTEGER NOT NULL,
    -- How far the store's clock is behind the wall clock, in milliseconds: a running server does not follow a wall clock that is
    -- set ahead. The next start does, and moves the leases that have not expired along. Servers on Postgres follow its clock.
    clock_behind_ms INTEGER NOT NULL DEFAULT 0,
    -- The counter of a resource may be behind the token of its newest lease if that lease has this id or a greater one: such a
    -- counter is written a second later. NULL: all counters are written.
    unwritten_from TEXT,
    -- Where the leases were moved to: a server refuses to grant from this store again.
    moved_to    TEXT
) STRICT;

-- One row for each resource that was ever granted. Never deleted: a deleted counter would repeat fencing tokens.
CREATE TABLE resource_tokens (
    resource     TEXT    PRIMARY KEY,
    last_token   INTEGER NOT NULL CHECK (last_token >= 0 AND last_token < 9007199254740992),
    -- The newest lease, also after its end.
    lease_id     TEXT,
    locked_until INTEGER
) STRICT, WITHOUT ROWID;

CREATE TRIGGER resource_tokens_no_delete BEFORE DELETE ON resource_tokens
BEGIN SELECT RAISE(ABORT, 'rows of resource_tokens are never deleted'); END;

-- ROLLBACK instead of ABORT: for ABORT, which undoes one statement, SQLite copies each page that the statement changes. The
-- writer ends its transaction after this error in any case.
CREATE TRIGGER resource_tokens_no_decrease BEFORE UPDATE OF last_token ON resource_tokens
WHEN NEW.last_token < OLD.last_token
BEGIN SELECT RAISE(ROLLBACK, 'a fencing token never decreases'); END;

CREATE TABLE leases (
    lease_id      TEXT    PRIMARY KEY,
    resource      TEXT    NOT NULL,
    owner_id      TEXT    NOT NULL,
    issuer        TEXT    NOT NULL,
    fencing_token INTEGER NOT NULL,
    ttl_seconds   INTEGER NOT NULL,
    -- JSON.
    metadata      TEXT    NOT NULL,
    acquired_at   INTEGER NOT NULL,
    expires_at    INTEGER NOT NULL,
    renewed_at    INTEGER NOT NULL,
    renewals      INTEGER NOT NULL,
    ended_at      INTEGER,
    -- Not IN (…): SQLite builds a list of more than two values as a table in memory for each row, a fifth of the cost of
    -- writing a lease.
    ended_how     TEXT CHECK (ended_how = 'released' OR ended_how = 'expired' OR ended_how = 'revoked'),
    revoked_by    TEXT,
    revoke_reason TEXT,
    audit_id      TEXT,
    CHECK ((ended_at IS NULL) = (ended_how IS NULL))
) STRICT, WITHOUT ROWID;

-- At most one lease that has not ended for each resource, in the order of the list.
CREATE UNIQUE INDEX leases_held ON leases (resource) WHERE ended_at IS NULL;

CREATE TABLE idempotency_keys (
    -- Order of creation, in which keys past their window are deleted. A table in this order grows at its end only: a batch of
    -- new keys writes fewer pages than with a table in the order of the keys and an index of times.
    seq         INTEGER PRIMARY KEY,
    issuer      TEXT    NOT NULL,
    key         TEXT    NOT NULL,
    -- Hash of the request: the same key with another request is rejected.
    fingerprint TEXT    NOT NULL,
    lease_id    TEXT,
    -- Whether the lease stays when the client that acquired it is gone: it was granted at once, or a retry has received it.
    is_claimed  INTEGER NOT NULL CHECK (is_claimed IN (0, 1)),
    created_at  INTEGER NOT NULL,
    UNIQUE (issuer, key)
) STRICT;

CREATE TABLE lease_waiters (
    -- Order of the queue.
    seq           INTEGER PRIMARY KEY AUTOINCREMENT,
    waiter_id     TEXT    NOT NULL UNIQUE,
    resource      TEXT    NOT NULL,
    owner_id      TEXT    NOT NULL,
    replica_id    TEXT    NOT NULL,
    waiting_since INTEGER NOT NULL
) STRICT;

CREATE INDEX lease_waiters_by_resource ON lease_waiters (resource, seq);

-- Writes that were refused because their token is stale: found by our check, or reported by a protected resource.
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
-- For charts and pages of a time range.
CREATE INDEX fencing_rejections_by_time ON fencing_rejections (at, id);
