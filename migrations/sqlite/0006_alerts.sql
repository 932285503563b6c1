-- Alert rules with their versions, alerts, silences. Times are milliseconds since 1970 by the server's clock.

CREATE TABLE alert_rules (
    id         TEXT    PRIMARY KEY,
    version    INTEGER NOT NULL,
    -- JSON.
    body       TEXT    NOT NULL,
    -- 1: deleted. The row stays, so that its alerts are resolved, and so that a rule of the configuration does not return.
    is_deleted INTEGER NOT NULL DEFAULT 0
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

-- Pending and firing alerts are open; alerts that fired and are resolved are history.
CREATE TABLE alerts (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    rule_id    TEXT    NOT NULL,
    -- JSON: a name may contain bytes that a text column cannot hold.
    subject    TEXT    NOT NULL,
    -- Hash of the subject: names may be longer than an index takes.
    subject_id TEXT    NOT NULL,
    is_open    INTEGER NOT NULL,
    -- JSON: holder, phase, measured value, message, notification and silence.
    body       TEXT    NOT NULL,
    fired_at   INTEGER,
    ended_at   INTEGER,
    acked_at   INTEGER,
    acked_by   TEXT,
    ack_note   TEXT
) STRICT;

CREATE UNIQUE INDEX alerts_open ON alerts (rule_id, subject_id) WHERE is_open = 1;
CREATE INDEX alerts_resolved ON alerts (ended_at) WHERE is_open = 0;

CREATE TABLE silences (
    id         TEXT    PRIMARY KEY,
    -- JSON: label and value.
    matchers   TEXT    NOT NULL,
    starts_at  INTEGER NOT NULL,
    ends_at    INTEGER NOT NULL,
    comment    TEXT    NOT NULL,
    by_id      TEXT    NOT NULL,
    by_name    TEXT    NOT NULL,
    -- How many notifications it suppressed.
    suppressed INTEGER NOT NULL DEFAULT 0
) STRICT;

-- The last evaluation, and the fencing token of the server that did it.
CREATE TABLE alert_evaluator (
    only_row      INTEGER PRIMARY KEY CHECK (only_row = 1),
    fencing_token INTEGER NOT NULL,
    evaluated_at  INTEGER,
    -- Increases with each change of rules, silences and open alerts: caches compare this number alone.
    revision      INTEGER NOT NULL DEFAULT 0,
    -- Increases with each receiver that is added: it lacks the alerts that were notified before.
    receivers_added INTEGER NOT NULL DEFAULT 0
) STRICT;

INSERT INTO alert_evaluator (only_row, fencing_token, evaluated_at) VALUES (1, 0, NULL);
