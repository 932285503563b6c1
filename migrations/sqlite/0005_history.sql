-- Lock events as the console observed them, and sums of them over time for charts. Kept for the retention, then deleted oldest
-- first. A file of its own on SQLite. Times are milliseconds since 1970 by the console's clock.

CREATE TABLE lock_events (
    id             INTEGER PRIMARY KEY AUTOINCREMENT,
    -- When the event was observed.
    at             INTEGER NOT NULL,
    kind           TEXT    NOT NULL,
    backend        TEXT    NOT NULL,
    source         TEXT    NOT NULL,
    -- Names are bytes on some backends.
    resource       BLOB    NOT NULL,
    owner_id       TEXT,
    -- Text: tokens of other systems exceed a 64-bit integer.
    fencing_token  TEXT,
    ttl_ms         INTEGER,
    waiters        INTEGER,
    -- Of a row for a run of renewals: their number, and the time of the last one.
    run_count      INTEGER,
    run_until      INTEGER,
    -- 1: inferred from two scans.
    is_sampled     INTEGER NOT NULL DEFAULT 0,
    -- Trace of the request that began or ended the hold, for the built-in lease service: 32 hexadecimal digits.
    trace_id       TEXT,
    -- Of kind granted_after_wait: how long the owner waited in the queue.
    waited_ms      INTEGER,
    -- Where a backend does not tell the TTL: the longest time left that was observed.
    ttl_seen_ms    INTEGER,
    -- After an outage of the backend: the event happened after this time and not later than `at`.
    not_before     INTEGER,
    -- Without a TTL: the time without a sign of life after which the holder is not renewing.
    stale_after_ms INTEGER
) STRICT;

CREATE INDEX lock_events_by_age ON lock_events (at);
-- By time and not by id: a run of renewals is written later than events that happened during it.
CREATE INDEX lock_events_by_resource ON lock_events (backend, resource, at);
-- A run that continues replaces its row.
CREATE UNIQUE INDEX lock_events_renewal_runs ON lock_events (backend, source, resource, at) WHERE kind = 'renewed';

-- Times without recording: the console was not running, or there were more events than it could write; or, with a
-- backend, that backend was not observed.
CREATE TABLE history_gaps (
    started_at  INTEGER NOT NULL,
    ended_at    INTEGER NOT NULL,
    events_lost INTEGER NOT NULL,
    backend     TEXT
) STRICT;

-- The last write. Of several servers one writes: the one with the highest fencing token.
CREATE TABLE history_writer (
    only_row      INTEGER PRIMARY KEY CHECK (only_row = 1),
    last_write_at INTEGER,
    fencing_token INTEGER NOT NULL
) STRICT;

INSERT INTO history_writer (only_row, last_write_at, fencing_token) VALUES (1, NULL, 0);

-- Sums over `step_seconds` from `at` on, per prefix template. Each process writes rows of its own; readers add them up.
CREATE TABLE history_rollups (
    step_seconds    INTEGER NOT NULL,
    at              INTEGER NOT NULL,
    backend         TEXT    NOT NULL,
    prefix          TEXT    NOT NULL,
    process_id      TEXT    NOT NULL,
    -- Sums over all locks, in milliseconds.
    held_ms         INTEGER NOT NULL,
    waiting_ms      INTEGER NOT NULL,
    acquired        INTEGER NOT NULL,
    refused         INTEGER NOT NULL,
    expired         INTEGER NOT NULL,
    reclaimed       INTEGER NOT NULL,
    lost            INTEGER NOT NULL,
    rejected        INTEGER NOT NULL,
    unlocked        INTEGER NOT NULL,
    dual_owners     INTEGER NOT NULL,
    -- Of the ended holds: those whose length is known only between two bounds.
    holds_uncertain INTEGER NOT NULL DEFAULT 0,
    -- Histograms of milliseconds; null: no values.
    waits           BLOB,
    holds           BLOB,
    renewals        BLOB,
    late            BLOB,
    ttls            BLOB,
    -- Names with the longest waits, as JSON.
    most_waited     TEXT,
    PRIMARY KEY (step_seconds, at, backend, prefix, process_id)
) STRICT, WITHOUT ROWID;

-- How long a backend was observed in the same time.
CREATE TABLE history_coverage (
    step_seconds INTEGER NOT NULL,
    at           INTEGER NOT NULL,
    backend      TEXT    NOT NULL,
    process_id   TEXT    NOT NULL,
    watched_ms   INTEGER NOT NULL,
    -- How long it also reported waiters.
    waits_ms     INTEGER NOT NULL,
    PRIMARY KEY (step_seconds, at, backend, process_id)
) STRICT, WITHOUT ROWID;

-- Refused acquires, failed renewals and failed releases of the lease service: one row per minute and process.
CREATE TABLE lease_signals (
    -- Start of the minute.
    at         INTEGER NOT NULL,
    kind       TEXT    NOT NULL,
    -- Template of the names; empty for the lease service as a whole.
    prefix     TEXT    NOT NULL,
    process_id TEXT    NOT NULL,
    -- JSON: second of the minute to count.
    seconds    TEXT    NOT NULL,
    PRIMARY KEY (at, kind, prefix, process_id)
) STRICT, WITHOUT ROWID;
