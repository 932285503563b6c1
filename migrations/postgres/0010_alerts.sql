-- Alert rules with their history, alerts, silences. Times are milliseconds since 1970 by our clock.

CREATE TABLE alert_rules (
    id      TEXT    PRIMARY KEY,
    version bigint NOT NULL,
    -- JSON, as it is written.
    body    TEXT    NOT NULL,
    -- 1: taken away. It stays, so that what it fired can be told to be over, and so that it does not come back.
    is_gone bigint NOT NULL DEFAULT 0
);

CREATE TABLE alert_rule_versions (
    rule_id TEXT    NOT NULL,
    version bigint NOT NULL,
    body    TEXT    NOT NULL,
    at      bigint NOT NULL,
    by_id   TEXT    NOT NULL,
    by_name TEXT    NOT NULL,
    PRIMARY KEY (rule_id, version)
);

-- Pending and firing alerts are open; those that fired and are over are history.
CREATE TABLE alerts (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    rule_id    TEXT    NOT NULL,
    -- JSON: a name may hold what the store's texts cannot.
    subject    TEXT    NOT NULL,
    -- Names may be longer than an index takes.
    subject_id TEXT    NOT NULL,
    is_open    bigint NOT NULL,
    -- JSON: holder, phase, measure, sentence, and who was told.
    body       TEXT    NOT NULL,
    fired_at   bigint,
    ended_at   bigint,
    acked_at   bigint,
    acked_by   TEXT,
    ack_note   TEXT
);

CREATE UNIQUE INDEX alerts_open ON alerts (rule_id, subject_id) WHERE is_open = 1;
CREATE INDEX alerts_over ON alerts (ended_at) WHERE is_open = 0;

CREATE TABLE silences (
    id         TEXT    PRIMARY KEY,
    -- JSON: label and value.
    matchers   TEXT    NOT NULL,
    starts_at  bigint NOT NULL,
    ends_at    bigint NOT NULL,
    comment    TEXT    NOT NULL,
    by_id      TEXT    NOT NULL,
    by_name    TEXT    NOT NULL,
    suppressed bigint NOT NULL DEFAULT 0
);

-- Which server evaluates, by the token of its turn, and when it did last.
CREATE TABLE alert_evaluator (
    only_row     bigint PRIMARY KEY CHECK (only_row = 1),
    token        bigint NOT NULL,
    evaluated_at bigint
);

INSERT INTO alert_evaluator (only_row, token, evaluated_at) VALUES (1, 0, NULL);
