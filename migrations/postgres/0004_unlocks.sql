-- Forced unlocks: one row for each, from its intent to its outcome. The next step is decided by these rows; the audit log
-- has an entry for each step. Times are milliseconds since 1970 by the server's clock.

-- Which protection a forced unlock needs, by prefix; the longest prefix that covers a name applies.
CREATE TABLE protected_prefixes (
    id         text PRIMARY KEY,
    backend    text,
    prefix     text NOT NULL,
    protection text NOT NULL CHECK (protection IN ('standard', 'protected'))
);

CREATE TABLE unlocks (
    id                 text    PRIMARY KEY,
    -- outcome_unknown from the start of the release until its answer is written: a crash leaves this state.
    state              text    NOT NULL CHECK (state IN ('pending', 'released', 'holder_changed', 'already_free',
                                   'refused', 'outcome_unknown', 'expired', 'cancelled')),
    protection         text    NOT NULL CHECK (protection IN ('standard', 'protected')),
    -- JSON; null where the protection is standard.
    protection_reason  text,
    -- The principal that requested it, who alone may confirm it.
    by_id              text    NOT NULL,
    by_name            text    NOT NULL,
    -- Root user of the session that requested it.
    by_root_user_id         text,
    role               text,
    backend            text    NOT NULL,
    source             text    NOT NULL,
    -- JSON: a name may contain bytes that a text column cannot hold.
    resource           text    NOT NULL,
    reason             text    NOT NULL,
    -- JSON, the lock as it was read for the intent.
    observed           text    NOT NULL,
    created_at         bigint  NOT NULL,
    expires_at         bigint  NOT NULL,
    mismatches         bigint  NOT NULL DEFAULT 0,
    approver_id        text,
    approver_name      text,
    approved_at        bigint,
    break_glass_reason text,
    reviewer_id        text,
    reviewer_name      text,
    reviewed_at        bigint,
    acted_at           bigint,
    -- No answer can arrive after this time.
    act_deadline       bigint,
    ended_at           bigint,
    -- JSON.
    ending             text    NOT NULL DEFAULT '{}',
    -- Numbers of the audit entries.
    intent_entry         bigint  NOT NULL,
    act_entry            bigint,
    outcome_entry        bigint,
    rereads            bigint  NOT NULL DEFAULT 0,
    reread_at          bigint,
    -- First of the later reads that found the lock unchanged.
    still_held_since   bigint,
    CHECK ((acted_at IS NULL) = (act_entry IS NULL)),
    CHECK (state <> 'pending' OR (acted_at IS NULL AND ended_at IS NULL)),
    CHECK (state IN ('pending', 'outcome_unknown') OR ended_at IS NOT NULL)
);

CREATE INDEX unlocks_open ON unlocks (state, expires_at) WHERE state IN ('pending', 'outcome_unknown');
-- Over hashes, for one name: a name may be longer than an index entry.
CREATE INDEX unlocks_by_resource_hash ON unlocks USING hash (resource);
-- Break-glass unlocks that wait for a review.
CREATE INDEX unlocks_unreviewed ON unlocks (acted_at) WHERE break_glass_reason IS NOT NULL AND reviewed_at IS NULL;
-- Each server passes new forced releases to its inventory, a few times a second.
CREATE INDEX unlocks_released ON unlocks (ended_at) WHERE state = 'released';
-- The overview lists forced unlocks by the time of the release, newest first.
CREATE INDEX unlocks_by_release_time ON unlocks (acted_at, id) WHERE acted_at IS NOT NULL;
