-- The audit record: one chain of rows, appended to and never changed. Times are milliseconds since 1970 by our clock.

CREATE TABLE audit_rows (
    -- 1, 2, 3, … without a gap: a gap is a deleted row.
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
    -- JSON, as it was hashed.
    before      TEXT,
    after       TEXT,
    ip          TEXT,
    user_agent  TEXT,
    request_id  TEXT,
    trace_id    TEXT,
    -- Two rows that follow the same row would be a fork.
    prev_hash   TEXT    NOT NULL UNIQUE,
    hash        TEXT    NOT NULL UNIQUE
) STRICT;

CREATE INDEX audit_rows_of_actor ON audit_rows (actor_id, seq);
CREATE INDEX audit_rows_of_resource ON audit_rows (resource, seq);
CREATE INDEX audit_rows_of_unlock ON audit_rows (unlock_id, seq) WHERE unlock_id IS NOT NULL;

CREATE TRIGGER audit_rows_stay BEFORE DELETE ON audit_rows
BEGIN SELECT RAISE(ABORT, 'rows of audit_rows are never deleted'); END;

CREATE TRIGGER audit_rows_stand BEFORE UPDATE ON audit_rows
BEGIN SELECT RAISE(ABORT, 'rows of audit_rows are never changed'); END;
