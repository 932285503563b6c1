-- Who stands behind a token, a link, a session and an account, and why a forced unlock is protected. Ids are those of a
-- person, a token, or `system` for a command at the server; a root is the person at the start of a chain of tokens and
-- links, null where it is unknown. Times are milliseconds since 1970 by our clock.

-- JSON: null where the tier is standard.
ALTER TABLE unlocks ADD COLUMN tier_reason TEXT;
-- Of the session that began it.
ALTER TABLE unlocks ADD COLUMN by_root_id TEXT;

ALTER TABLE tokens ADD COLUMN created_by_id TEXT;
ALTER TABLE tokens ADD COLUMN root_id TEXT;
ALTER TABLE links ADD COLUMN created_by_id TEXT;
ALTER TABLE links ADD COLUMN root_id TEXT;
-- Of the link that opened it; null for a session that began with a password or at an identity provider.
ALTER TABLE sessions ADD COLUMN link_by_id TEXT;
ALTER TABLE sessions ADD COLUMN root_id TEXT;

-- Only names that can be of nobody else: a token may be called like a person.
UPDATE tokens SET
    created_by_id = (SELECT people.id FROM people WHERE people.name = tokens.created_by),
    root_id       = (SELECT people.id FROM people WHERE people.name = tokens.created_by)
WHERE NOT EXISTS (SELECT 1 FROM tokens AS other WHERE other.name = tokens.created_by);

CREATE INDEX tokens_by_maker ON tokens (created_by_id) WHERE created_by_id IS NOT NULL;

-- What one principal did that lets it act as another person, or makes that person an approver.
CREATE TABLE account_changes (
    id         TEXT    PRIMARY KEY,
    person_id  TEXT    NOT NULL REFERENCES people (id),
    kind       TEXT    NOT NULL CHECK (kind IN ('created', 'link', 'password', 'approver')),
    by_id      TEXT    NOT NULL,
    by_root_id TEXT,
    by_kind    TEXT    NOT NULL CHECK (by_kind IN ('person', 'token', 'system')),
    changed_at BIGINT  NOT NULL
);

CREATE INDEX account_changes_of_person ON account_changes (person_id, changed_at);
