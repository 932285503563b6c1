-- Renewals folded into rows of history, what was known beside each event, and sums over time for charts.

ALTER TABLE lock_events ADD COLUMN ttl_ms bigint;
ALTER TABLE lock_events ADD COLUMN waiters bigint;
-- Of a folded row: how many renewals, and when the last of them came.
ALTER TABLE lock_events ADD COLUMN run_count bigint;
ALTER TABLE lock_events ADD COLUMN run_until bigint;
-- 1: inferred between two readings.
ALTER TABLE lock_events ADD COLUMN sampled bigint NOT NULL DEFAULT 0;

-- A run that goes on is written again in its place.
CREATE UNIQUE INDEX lock_events_runs ON lock_events (backend, source, resource, at) WHERE kind = 'renewed';

-- By time: a row of renewals is written later than what happened meanwhile.
DROP INDEX lock_events_of;
CREATE INDEX lock_events_of ON lock_events (backend, resource, at);

-- Sums over `step` seconds from `at` on, per template of names. Each process writes its own part; readers add them up.
CREATE TABLE history_rollups (
    step       bigint NOT NULL,
    at         bigint NOT NULL,
    backend    text    NOT NULL,
    prefix     text    NOT NULL,
    part       text    NOT NULL,
    -- Integrals, in milliseconds.
    held_ms    bigint NOT NULL,
    waiting_ms bigint NOT NULL,
    acquired   bigint NOT NULL,
    refused    bigint NOT NULL,
    expired    bigint NOT NULL,
    reclaimed  bigint NOT NULL,
    lost       bigint NOT NULL,
    rejected   bigint NOT NULL,
    unlocked   bigint NOT NULL,
    believers  bigint NOT NULL,
    -- Histograms of milliseconds; none: nothing was counted.
    waits      bytea,
    holds      bytea,
    renewals   bytea,
    late       bytea,
    ttls       bytea,
    -- Names that were waited for most, as JSON.
    heavy      text,
    PRIMARY KEY (step, at, backend, prefix, part)
);

-- How much of the same stretch a backend was watched.
CREATE TABLE history_coverage (
    step       bigint NOT NULL,
    at         bigint NOT NULL,
    backend    text    NOT NULL,
    part       text    NOT NULL,
    watched_ms bigint NOT NULL,
    -- As long as it could tell who waits.
    waits_ms   bigint NOT NULL,
    PRIMARY KEY (step, at, backend, part)
);
