-- Refused acquires, failed renewals and failed releases, dated to the second: one row per minute and process.

CREATE TABLE lease_signals (
    -- Start of the minute, in milliseconds since 1970.
    at      INTEGER NOT NULL,
    kind    TEXT NOT NULL,
    -- Template of the names; empty for the lease service as a whole.
    prefix  TEXT NOT NULL,
    -- The process that wrote it.
    part    TEXT NOT NULL,
    -- JSON: second of the minute to count.
    seconds TEXT NOT NULL,
    PRIMARY KEY (at, kind, prefix, part)
) STRICT, WITHOUT ROWID;

-- How many alerts of the group the last message told of: a group that has grown is told again.
ALTER TABLE notice_groups ADD COLUMN size INTEGER NOT NULL DEFAULT 0;
