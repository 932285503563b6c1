-- Refused acquires, failed renewals and failed releases, dated to the second: one row per minute and process.

CREATE TABLE lease_signals (
    -- Start of the minute, in milliseconds since 1970.
    at      bigint NOT NULL,
    kind    text NOT NULL,
    -- Template of the names; empty for the lease service as a whole.
    prefix  text NOT NULL,
    -- The process that wrote it.
    part    text NOT NULL,
    -- JSON: second of the minute to count.
    seconds text NOT NULL,
    PRIMARY KEY (at, kind, prefix, part)
);

-- How many alerts of the group the last message told of: a group that has grown is told again.
ALTER TABLE notice_groups ADD COLUMN size bigint NOT NULL DEFAULT 0;
