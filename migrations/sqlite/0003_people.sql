-- People, machines' tokens, what they may do, and sessions. Times are milliseconds since 1970 by our clock. Secrets are
-- kept as hashes: passwords slow (Argon2id), random ones quick (SHA-256, in hex).

CREATE TABLE people (
    id          TEXT    PRIMARY KEY,
    name        TEXT    NOT NULL UNIQUE,
    -- Absent: signs in elsewhere, or not yet.
    password    TEXT,
    -- Who an identity provider says that it is.
    issuer      TEXT,
    subject     TEXT,
    created_at  INTEGER NOT NULL,
    disabled_at INTEGER,
    UNIQUE (issuer, subject),
    CHECK ((issuer IS NULL) = (subject IS NULL))
) STRICT;

CREATE TABLE tokens (
    id         TEXT    PRIMARY KEY,
    name       TEXT    NOT NULL UNIQUE,
    secret     TEXT    NOT NULL UNIQUE,
    created_at INTEGER NOT NULL,
    created_by TEXT    NOT NULL,
    expires_at INTEGER,
    used_at    INTEGER,
    revoked_at INTEGER
) STRICT;

-- One role of one person or one token, on all backends and prefixes or on one.
CREATE TABLE grants (
    id        TEXT PRIMARY KEY,
    person_id TEXT REFERENCES people (id),
    token_id  TEXT REFERENCES tokens (id),
    role      TEXT NOT NULL,
    backend   TEXT,
    prefix    TEXT,
    CHECK ((person_id IS NULL) <> (token_id IS NULL))
) STRICT;

CREATE INDEX grants_of_person ON grants (person_id) WHERE person_id IS NOT NULL;
CREATE INDEX grants_of_token ON grants (token_id) WHERE token_id IS NOT NULL;

CREATE TABLE sessions (
    id               TEXT    PRIMARY KEY,
    secret           TEXT    NOT NULL UNIQUE,
    person_id        TEXT    NOT NULL REFERENCES people (id),
    -- password, link or oidc
    way              TEXT    NOT NULL,
    created_at       INTEGER NOT NULL,
    seen_at          INTEGER NOT NULL,
    -- When the person last proved who they are.
    authenticated_at INTEGER NOT NULL,
    ended_at         INTEGER,
    ip               TEXT,
    user_agent       TEXT
) STRICT;

CREATE INDEX sessions_of_person ON sessions (person_id, created_at);

-- One-time links: the first admin's, and the demo's.
CREATE TABLE links (
    secret     TEXT    PRIMARY KEY,
    -- setup: whoever opens it makes the first admin. person: signs that person in.
    purpose    TEXT    NOT NULL CHECK (purpose IN ('setup', 'person')),
    person_id  TEXT    REFERENCES people (id),
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    used_at    INTEGER
) STRICT;

-- Few words that hold for everybody. `directory` is a counter: it rises when people, tokens or grants change, so that
-- each server notices within a second.
CREATE TABLE settings (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT;

INSERT INTO settings (key, value) VALUES ('directory', '0'), ('read_only', 'no');

-- How careful a forced unlock must be, by prefix; the longest that covers a name counts.
CREATE TABLE tiers (
    id      TEXT PRIMARY KEY,
    backend TEXT,
    prefix  TEXT NOT NULL,
    tier    TEXT NOT NULL CHECK (tier IN ('standard', 'protected'))
) STRICT;
