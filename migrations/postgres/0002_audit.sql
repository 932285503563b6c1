-- The audit log: one hash chain of entries, appended to and never changed. Times are milliseconds since 1970 by the server's
-- clock.

CREATE TABLE audit_entries (
    -- 1, 2, 3, … without a gap: a gap is a deleted entry.
    seq         bigint  PRIMARY KEY CHECK (seq >= 1),
    created_at  bigint  NOT NULL,
    action      text    NOT NULL,
    phase       text    NOT NULL,
    outcome     text    NOT NULL,
    actor_id    text    NOT NULL,
    actor_name  text    NOT NULL,
    role        text,
    backend     text,
    source      text,
    resource    text,
    unlock_id   text,
    reason      text,
    approver_id text,
    -- JSON, the exact text that was hashed.
    before      text,
    after       text,
    ip          text,
    user_agent  text,
    request_id  text,
    trace_id    text,
    -- Unique: two entries after the same entry would be a fork.
    prev_hash   text    NOT NULL UNIQUE,
    hash        text    NOT NULL UNIQUE
);

-- One index for each filter, with the number after it: a page of the newest entries is found without reading the others.
CREATE INDEX audit_entries_by_time ON audit_entries (created_at, seq);
CREATE INDEX audit_entries_by_action ON audit_entries (action, seq);
CREATE INDEX audit_entries_by_outcome ON audit_entries (outcome, seq);
CREATE INDEX audit_entries_by_actor ON audit_entries (actor_id, seq);
CREATE INDEX audit_entries_by_actor_name ON audit_entries (actor_name, seq);
CREATE INDEX audit_entries_by_backend ON audit_entries (backend, seq);
-- Over the beginnings of names, for ranges of names: an index entry has at most 2,704 bytes here, and the name of a lock may have
-- 64 KiB. Queries compare this expression in addition to the whole name; 256 characters have at most 1,024 bytes. In byte order,
-- whatever the locale of the database: in the order of a locale, names with one prefix are not one range.
CREATE INDEX audit_entries_by_resource_start ON audit_entries ((left(resource, 256)) COLLATE "C", seq);
CREATE INDEX audit_entries_by_unlock ON audit_entries (unlock_id, seq) WHERE unlock_id IS NOT NULL;

CREATE FUNCTION audit_entries_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'audit entries are never changed or deleted';
END $$;

CREATE TRIGGER audit_entries_no_change BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_entries
    FOR EACH STATEMENT EXECUTE FUNCTION audit_entries_refuse_change();

-- The trigger protects against a mistake of the owner of the table; this against the role of the server where it is another.
REVOKE UPDATE, DELETE, TRUNCATE ON audit_entries FROM PUBLIC;

-- The row that appenders of the audit log lock for the time of their transaction. Any role that may connect could take an
-- advisory lock; only a role that may update the table can lock this row. SQLite has one writer and needs none.
CREATE TABLE audit_append_lock (
    id boolean PRIMARY KEY DEFAULT true CHECK (id)
);

INSERT INTO audit_append_lock DEFAULT VALUES;
