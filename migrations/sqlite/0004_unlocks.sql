-- Forced unlocks: one row for each, from the intent to its outcome. Times are milliseconds since 1970 by our clock. The
-- audit record says the same, row by row; this is what the next step is decided by.

CREATE TABLE unlocks (
    id                 TEXT    PRIMARY KEY,
    -- outcome_unknown from the moment of the act until its answer is written: a crash leaves it standing.
    state              TEXT    NOT NULL CHECK (state IN ('pending', 'released', 'holder_changed', 'already_free',
                                   'refused', 'outcome_unknown', 'expired', 'cancelled')),
    tier               TEXT    NOT NULL CHECK (tier IN ('standard', 'protected')),
    -- Who it is bound to.
    by_id              TEXT    NOT NULL,
    by_name            TEXT    NOT NULL,
    role               TEXT,
    backend            TEXT    NOT NULL,
    source             TEXT    NOT NULL,
    -- As JSON: a name may hold what the store's texts cannot.
    resource           TEXT    NOT NULL,
    reason             TEXT    NOT NULL,
    -- JSON, as it was read for the intent.
    observed           TEXT    NOT NULL,
    created_at         INTEGER NOT NULL,
    expires_at         INTEGER NOT NULL,
    mismatches         INTEGER NOT NULL DEFAULT 0,
    approver_id        TEXT,
    approver_name      TEXT,
    approved_at        INTEGER,
    break_glass_reason TEXT,
    reviewer_id        TEXT,
    reviewer_name      TEXT,
    reviewed_at        INTEGER,
    acted_at           INTEGER,
    -- Later than this no answer comes any more.
    act_deadline       INTEGER,
    ended_at           INTEGER,
    -- JSON.
    ending             TEXT    NOT NULL DEFAULT '{}',
    intent_row         INTEGER NOT NULL,
    act_row            INTEGER,
    outcome_row        INTEGER,
    rereads            INTEGER NOT NULL DEFAULT 0,
    reread_at          INTEGER,
    -- Since when it was read again and found as it was.
    still_held_since   INTEGER,
    CHECK ((acted_at IS NULL) = (act_row IS NULL)),
    CHECK (state <> 'pending' OR (acted_at IS NULL AND ended_at IS NULL)),
    CHECK (state IN ('pending', 'outcome_unknown') OR ended_at IS NOT NULL)
) STRICT;

CREATE INDEX unlocks_open ON unlocks (state, expires_at) WHERE state IN ('pending', 'outcome_unknown');
CREATE INDEX unlocks_of_resource ON unlocks (resource, created_at);
CREATE INDEX unlocks_flagged ON unlocks (acted_at) WHERE break_glass_reason IS NOT NULL AND reviewed_at IS NULL;
