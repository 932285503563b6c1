-- Alert rules with their history, alerts, silences. Times are milliseconds since 1970 by our clock.

CREATE TABLE alert_rules (
    id      TEXT    PRIMARY KEY,
    version INTEGER NOT NULL,
    -- JSON, as it is written.
    body    TEXT    NOT NULL,
    -- 1: taken away. It stays, so that what it fired can be told to be over, and so that it does not come back.
    is_gone INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE alert_rule_versions (
    rule_id TEXT    NOT NULL,
    version INTEGER NOT NULL,
    body    TEXT    NOT NULL,
    at      INTEGER NOT NULL,
    by_id   TEXT    NOT NULL,
    by_name TEXT    NOT NULL,
    PRIMARY KEY (rule_id, version)
) STRICT;

-- Pending and firing alerts are open; those that fired and are over are history.
CREATE TABLE alerts (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    rule_id    TEXT    NOT NULL,
    -- JSON: a name may hold what the store's texts cannot.
    subject    TEXT    NOT NULL,
    -- Names may be longer than an index takes.
    subject_id TEXT    NOT NULL,
    is_open    INTEGER NOT NULL,
    -- JSON: holder, phase, measure, sentence, and who was told.
    body       TEXT    NOT NULL,
    fired_at   INTEGER,
    ended_at   INTEGER,
    acked_at   INTEGER,
    acked_by   TEXT,
    ack_note   TEXT
) STRICT;

CREATE UNIQUE INDEX alerts_open ON alerts (rule_id, subject_id) WHERE is_open = 1;
CREATE INDEX alerts_over ON alerts (ended_at) WHERE is_open = 0;

CREATE TABLE silences (
    id         TEXT    PRIMARY KEY,
    -- JSON: label and value.
    matchers   TEXT    NOT NULL,
    starts_at  INTEGER NOT NULL,
    ends_at    INTEGER NOT NULL,
    comment    TEXT    NOT NULL,
    by_id      TEXT    NOT NULL,
    by_name    TEXT    NOT NULL,
    suppressed INTEGER NOT NULL DEFAULT 0
) STRICT;

-- Which server evaluates, by the token of its turn, and when it did last.
CREATE TABLE alert_evaluator (
    only_row     INTEGER PRIMARY KEY CHECK (only_row = 1),
    token        INTEGER NOT NULL,
    evaluated_at INTEGER
) STRICT;

INSERT INTO alert_evaluator (only_row, token, evaluated_at) VALUES (1, 0, NULL);
