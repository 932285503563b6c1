-- Lock events as the console observed them, and sums of them over time for charts. Kept for the retention, then deleted oldest
-- first. Times are milliseconds since 1970 by the console's clock.

CREATE TABLE lock_events (
    id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- When the event was observed.
    at             bigint  NOT NULL,
    kind           text    NOT NULL,
    backend        text    NOT NULL,
    source         text    NOT NULL,
    -- Names are bytes on some backends.
    resource       bytea  NOT NULL,
    owner_id       text,
    -- Text: tokens of other systems exceed a 64-bit integer.
    fencing_token  text,
    ttl_ms         bigint,
    waiters        bigint,
    -- Of a row for a run of renewals: their number, and the time of the last one.
    run_count      bigint,
    run_until      bigint,
    -- 1: inferred from two scans.
    is_sampled     bigint  NOT NULL DEFAULT 0,
    -- Trace of the request that began or ended the hold, for the built-in lease service: 32 hexadecimal digits.
    trace_id       text,
    -- Of kind granted_after_wait: how long the owner waited in the queue.
    waited_ms      bigint,
    -- Where a backend does not tell the TTL: the longest time left that was observed.
    ttl_seen_ms    bigint,
    -- After an outage of the backend: the event happened after this time and not later than `at`.
    not_before     bigint,
    -- Without a TTL: the time without a sign of life after which the holder is not renewing.
    stale_after_ms bigint 
);

CREATE INDEX lock_events_by_age ON lock_events (at);
-- By time and not by id: a run of renewals is written later than events that happened during it.
CREATE INDEX lock_events_by_resource ON lock_events (backend, resource, at);
-- A run that continues replaces its row.
CREATE UNIQUE INDEX lock_events_renewal_runs ON lock_events (backend, source, resource, at) WHERE kind = 'renewed';

-- Times without recording: the console was not running, or there were more events than it could write; or, with a
-- backend, that backend was not observed.
CREATE TABLE history_gaps (
    started_at  bigint  NOT NULL,
    ended_at    bigint  NOT NULL,
    events_lost bigint  NOT NULL,
    backend     text
);

-- The last write. Of several servers one writes: the one with the highest fencing token.
CREATE TABLE history_writer (
    only_row      int    PRIMARY KEY CHECK (only_row = 1),
    last_write_at bigint,
    fencing_token bigint  NOT NULL
);

INSERT INTO history_writer (only_row, last_write_at, fencing_token) VALUES (1, NULL, 0);

-- Sums over `step_seconds` from `at` on, per prefix template. Each process writes rows of its own; readers add them up.
CREATE TABLE history_rollups (
    step_seconds    bigint  NOT NULL,
    at              bigint  NOT NULL,
    backend         text    NOT NULL,
    prefix          text    NOT NULL,
    process_id      text    NOT NULL,
    -- Sums over all locks, in milliseconds.
    held_ms         bigint  NOT NULL,
    waiting_ms      bigint  NOT NULL,
    acquired        bigint  NOT NULL,
    refused         bigint  NOT NULL,
    expired         bigint  NOT NULL,
    reclaimed       bigint  NOT NULL,
    lost            bigint  NOT NULL,
    rejected        bigint  NOT NULL,
    unlocked        bigint  NOT NULL,
    dual_owners     bigint  NOT NULL,
    -- Of the ended holds: those whose length is known only between two bounds.
    holds_uncertain bigint  NOT NULL DEFAULT 0,
    -- Histograms of milliseconds; null: no values.
    waits           bytea,
    holds           bytea,
    renewals        bytea,
    late            bytea,
    ttls            bytea,
    -- Names with the longest waits, as JSON.
    most_waited     text,
    PRIMARY KEY (step_seconds, at, backend, prefix, process_id)
);

-- How long a backend was observed in the same time.
CREATE TABLE history_coverage (
    step_seconds bigint  NOT NULL,
    at           bigint  NOT NULL,
    backend      text    NOT NULL,
    process_id   text    NOT NULL,
    watched_ms   bigint  NOT NULL,
    -- How long it also reported waiters.
    waits_ms     bigint  NOT NULL,
    PRIMARY KEY (step_seconds, at, backend, process_id)
);

-- Refused acquires, failed renewals and failed releases of the lease service: one row per minute and process.
CREATE TABLE lease_signals (
    -- Start of the minute.
    at         bigint  NOT NULL,
    kind       text    NOT NULL,
    -- Template of the names; empty for the lease service as a whole.
    prefix     text    NOT NULL,
    process_id text    NOT NULL,
    -- JSON: second of the minute to count.
    seconds    text    NOT NULL,
    PRIMARY KEY (at, kind, prefix, process_id)
);
