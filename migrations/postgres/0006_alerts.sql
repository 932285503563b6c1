-- Alert rules with their versions, alerts, silences. Times are milliseconds since 1970 by the server's clock.

CREATE TABLE alert_rules (
    id         text    PRIMARY KEY,
    version    bigint  NOT NULL,
    -- JSON.
    body       text    NOT NULL,
    -- 1: deleted. The row stays, so that its alerts are resolved, and so that a rule of the configuration does not return.
    is_deleted bigint  NOT NULL DEFAULT 0
);

CREATE TABLE alert_rule_versions (
    rule_id text    NOT NULL,
    version bigint  NOT NULL,
    body    text    NOT NULL,
    at      bigint  NOT NULL,
    by_id   text    NOT NULL,
    by_name text    NOT NULL,
    PRIMARY KEY (rule_id, version)
);

-- Pending and firing alerts are open; alerts that fired and are resolved are history.
CREATE TABLE alerts (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    rule_id    text    NOT NULL,
    -- JSON: a name may contain bytes that a text column cannot hold.
    subject    text    NOT NULL,
    -- Hash of the subject: names may be longer than an index takes.
    subject_id text    NOT NULL,
    is_open    bigint  NOT NULL,
    -- JSON: holder, phase, measured value, message, notification and silence.
    body       text    NOT NULL,
    fired_at   bigint,
    ended_at   bigint,
    acked_at   bigint,
    acked_by   text,
    ack_note   text
);

CREATE UNIQUE INDEX alerts_open ON alerts (rule_id, subject_id) WHERE is_open = 1;
CREATE INDEX alerts_resolved ON alerts (ended_at) WHERE is_open = 0;

CREATE TABLE silences (
    id         text    PRIMARY KEY,
    -- JSON: label and value.
    matchers   text    NOT NULL,
    starts_at  bigint  NOT NULL,
    ends_at    bigint  NOT NULL,
    comment    text    NOT NULL,
    by_id      text    NOT NULL,
    by_name    text    NOT NULL,
    -- How many notifications it suppressed.
    suppressed bigint  NOT NULL DEFAULT 0
);

-- The last evaluation, and the fencing token of the server that did it.
CREATE TABLE alert_evaluator (
    only_row      bigint  PRIMARY KEY CHECK (only_row = 1),
    fencing_token bigint  NOT NULL,
    evaluated_at  bigint,
    -- Increases with each change of rules, silences and open alerts: caches compare this number alone.
    revision      bigint  NOT NULL DEFAULT 0,
    -- Increases with each receiver that is added: it lacks the alerts that were notified before.
    receivers_added bigint  NOT NULL DEFAULT 0
);

INSERT INTO alert_evaluator (only_row, fencing_token, evaluated_at) VALUES (1, 0, NULL);
