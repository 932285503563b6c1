-- Renewals folded into rows of history, what was known beside each event, and sums over time for charts.

ALTER TABLE lock_events ADD COLUMN ttl_ms INTEGER;
ALTER TABLE lock_events ADD COLUMN waiters INTEGER;
-- Of a folded row: how many renewals, and when the last of them came.
ALTER TABLE lock_events ADD COLUMN run_count INTEGER;
ALTER TABLE lock_events ADD COLUMN run_until INTEGER;
-- 1: inferred between two readings.
ALTER TABLE lock_events ADD COLUMN sampled INTEGER NOT NULL DEFAULT 0;

-- A run that goes on is written again in its place.
CREATE UNIQUE INDEX lock_events_runs ON lock_events (backend, source, resource, at) WHERE kind = 'renewed';

-- By time: a row of renewals is written later than what happened meanwhile.
DROP INDEX lock_events_of;
CREATE INDEX lock_events_of ON lock_events (backend, resource, at);

-- Sums over `step` seconds from `at` on, per template of names. Each process writes its own part; readers add them up.
CREATE TABLE history_rollups (
    step       INTEGER NOT NULL,
    at         INTEGER NOT NULL,
    backend    TEXT    NOT NULL,
    prefix     TEXT    NOT NULL,
    part       TEXT    NOT NULL,
    -- Integrals, in milliseconds.
    held_ms    INTEGER NOT NULL,
    waiting_ms INTEGER NOT NULL,
    acquired   INTEGER NOT NULL,
    refused    INTEGER NOT NULL,
    expired    INTEGER NOT NULL,
    reclaimed  INTEGER NOT NULL,
    lost       INTEGER NOT NULL,
    rejected   INTEGER NOT NULL,
    unlocked   INTEGER NOT NULL,
    believers  INTEGER NOT NULL,
    -- Histograms of milliseconds; none: nothing was counted.
    waits      BLOB,
    holds      BLOB,
    renewals   BLOB,
    late       BLOB,
    ttls       BLOB,
    -- Names that were waited for most, as JSON.
    heavy      TEXT,
    PRIMARY KEY (step, at, backend, prefix, part)
) STRICT, WITHOUT ROWID;

-- How much of the same stretch a backend was watched.
CREATE TABLE history_coverage (
    step       INTEGER NOT NULL,
    at         INTEGER NOT NULL,
    backend    TEXT    NOT NULL,
    part       TEXT    NOT NULL,
    watched_ms INTEGER NOT NULL,
    -- As long as it could tell who waits.
    waits_ms   INTEGER NOT NULL,
    PRIMARY KEY (step, at, backend, part)
) STRICT, WITHOUT ROWID;
