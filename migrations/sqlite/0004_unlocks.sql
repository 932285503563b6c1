-- Forced unlocks: one row for each, from its intent to its outcome. The next step is decided by these rows; the audit log
-- has an entry for each step. Times are milliseconds since 1970 by the server's clock.

-- Which protection a forced unlock needs, by prefix; the longest prefix that covers a name applies.
CREATE TABLE protected_prefixes (
    id         TEXT PRIMARY KEY,
    backend    TEXT,
    prefix     TEXT NOT NULL,
    protection TEXT NOT NULL CHECK (protection IN ('standard', 'protected'))
) STRICT;

CREATE TABLE unlocks (
    id                 TEXT    PRIMARY KEY,
    -- outcome_unknown from the start of the release until its answer is written: a crash leaves this state.
    state              TEXT    NOT NULL CHECK (state IN ('pending', 'released', 'holder_changed', 'already_free',
                                   'refused', 'outcome_unknown', 'expired', 'cancelled')),
    protection         TEXT    NOT NULL CHECK (protection IN ('standard', 'protected')),
    -- JSON; null where the protection is standard.
    protection_reason  TEXT,
    -- The principal that requested it, who alone may confirm it.
    by_id              TEXT    NOT NULL,
    by_name            TEXT    NOT NULL,
    -- Root user of the session that requested it.
    by_root_user_id         TEXT,
    role               TEXT,
    backend            TEXT    NOT NULL,
    source             TEXT    NOT NULL,
    -- JSON: a name may contain bytes that a text column cannot hold.
    resource           TEXT    NOT NULL,
    reason             TEXT    NOT NULL,
    -- JSON, the lock as it was read for the intent.
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
    -- No answer can arrive after this time.
    act_deadline       INTEGER,
    ended_at           INTEGER,
    -- JSON.
    ending             TEXT    NOT NULL DEFAULT '{}',
    -- Numbers of the audit entries.
    intent_entry         INTEGER NOT NULL,
    act_entry            INTEGER,
    outcome_entry        INTEGER,
    rereads            INTEGER NOT NULL DEFAULT 0,
    reread_at          INTEGER,
    -- First of the later reads that found the lock unchanged.
    still_held_since   INTEGER,
    CHECK ((acted_at IS NULL) = (act_entry IS NULL)),
    CHECK (state <> 'pending' OR (acted_at IS NULL AND ended_at IS NULL)),
    CHECK (state IN ('pending', 'outcome_unknown') OR ended_at IS NOT NULL)
) STRICT;

CREATE INDEX unlocks_open ON unlocks (state, expires_at) WHERE state IN ('pending', 'outcome_unknown');
CREATE INDEX unlocks_by_resource ON unlocks (resource, created_at);
-- Break-glass unlocks that wait for a review.
CREATE INDEX unlocks_unreviewed ON unlocks (acted_at) WHERE break_glass_reason IS NOT NULL AND reviewed_at IS NULL;
-- Each server passes new forced releases to its inventory, a few times a second.
CREATE INDEX unlocks_released ON unlocks (ended_at) WHERE state = 'released';
-- The overview lists forced unlocks by the time of the release, newest first.
CREATE INDEX unlocks_by_release_time ON unlocks (acted_at, id) WHERE acted_at IS NOT NULL;
