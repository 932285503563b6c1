-- The audit log: one hash chain of entries, appended to and never changed. Times are milliseconds since 1970 by the server's
-- clock.

CREATE TABLE audit_entries (
    -- 1, 2, 3, … without a gap: a gap is a deleted entry.
    seq         INTEGER PRIMARY KEY CHECK (seq >= 1),
    created_at  INTEGER NOT NULL,
    action      TEXT    NOT NULL,
    phase       TEXT    NOT NULL,
    outcome     TEXT    NOT NULL,
    actor_id    TEXT    NOT NULL,
    actor_name  TEXT    NOT NULL,
    role        TEXT,
    backend     TEXT,
    source      TEXT,
    resource    TEXT,
    unlock_id   TEXT,
    reason      TEXT,
    approver_id TEXT,
    -- JSON, the exact text that was hashed.
    before      TEXT,
    after       TEXT,
    ip          TEXT,
    user_agent  TEXT,
    request_id  TEXT,
    trace_id    TEXT,
    -- Unique: two entries after the same entry would be a fork.
    prev_hash   TEXT    NOT NULL UNIQUE,
    hash        TEXT    NOT NULL UNIQUE
) STRICT;

-- One index for each filter, with the number after it: a page of the newest entries is found without reading the others.
CREATE INDEX audit_entries_by_time ON audit_entries (created_at, seq);
CREATE INDEX audit_entries_by_action ON audit_entries (action, seq);
CREATE INDEX audit_entries_by_outcome ON audit_entries (outcome, seq);
CREATE INDEX audit_entries_by_actor ON audit_entries (actor_id, seq);
CREATE INDEX audit_entries_by_actor_name ON audit_entries (actor_name, seq);
CREATE INDEX audit_entries_by_backend ON audit_entries (backend, seq);
CREATE INDEX audit_entries_by_resource ON audit_entries (resource, seq);
CREATE INDEX audit_entries_by_unlock ON audit_entries (unlock_id, seq) WHERE unlock_id IS NOT NULL;

CREATE TRIGGER audit_entries_no_delete BEFORE DELETE ON audit_entries
BEGIN SELECT RAISE(ABORT, 'audit entries are never deleted'); END;

CREATE TRIGGER audit_entries_no_update BEFORE UPDATE ON audit_entries
BEGIN SELECT RAISE(ABORT, 'audit entries are never changed'); END;
