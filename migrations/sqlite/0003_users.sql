-- Users, API tokens, roles and sessions. Times are milliseconds since 1970 by the server's clock. Secrets are stored as
-- hashes: passwords with Argon2id, random secrets with SHA-256 in hex.
--
-- Lineage: ids named *_by_id are those of a user, of an API token, or `system` for a command on the server. A root user is
-- the user at the start of a chain of tokens and links; null where unknown.

CREATE TABLE users (
    id            TEXT    PRIMARY KEY,
    name          TEXT    NOT NULL UNIQUE,
    -- Null: signs in at the identity provider, or has no password yet.
    password_hash TEXT,
    -- Identity at the provider.
    issuer        TEXT,
    subject       TEXT,
    created_at    INTEGER NOT NULL,
    disabled_at   INTEGER,
    UNIQUE (issuer, subject),
    CHECK ((issuer IS NULL) = (subject IS NULL))
) STRICT;

CREATE TABLE api_tokens (
    id            TEXT    PRIMARY KEY,
    name          TEXT    NOT NULL UNIQUE,
    secret_hash   TEXT    NOT NULL UNIQUE,
    created_at    INTEGER NOT NULL,
    -- Name at that time.
    created_by    TEXT    NOT NULL,
    created_by_id TEXT,
    root_user_id  TEXT,
    -- The token that this one replaces: it inherits the leases of that one.
    successor_of  TEXT REFERENCES api_tokens (id),
    expires_at    INTEGER,
    last_used_at  INTEGER,
    revoked_at    INTEGER
) STRICT;

CREATE INDEX api_tokens_by_creator ON api_tokens (created_by_id) WHERE created_by_id IS NOT NULL;

-- One role of one user or one API token, on everything or on one backend or prefix.
CREATE TABLE role_grants (
    id       TEXT PRIMARY KEY,
    user_id  TEXT REFERENCES users (id),
    token_id TEXT REFERENCES api_tokens (id),
    role     TEXT NOT NULL,
    backend  TEXT,
    prefix   TEXT,
    CHECK ((user_id IS NULL) <> (token_id IS NULL))
) STRICT;

CREATE INDEX role_grants_by_user ON role_grants (user_id) WHERE user_id IS NOT NULL;
CREATE INDEX role_grants_by_token ON role_grants (token_id) WHERE token_id IS NOT NULL;

CREATE TABLE sessions (
    id                 TEXT    PRIMARY KEY,
    secret_hash        TEXT    NOT NULL UNIQUE,
    user_id            TEXT    NOT NULL REFERENCES users (id),
    -- password, link or oidc
    method             TEXT    NOT NULL,
    created_at         INTEGER NOT NULL,
    last_seen_at       INTEGER NOT NULL,
    -- When the user last entered a password or came back from the identity provider.
    authenticated_at   INTEGER NOT NULL,
    ended_at           INTEGER,
    ip                 TEXT,
    user_agent         TEXT,
    -- Creator of the link that opened the session; null for a session from a password or an identity provider.
    link_created_by_id TEXT,
    root_user_id       TEXT
) STRICT;

CREATE INDEX sessions_by_user ON sessions (user_id, created_at);
-- What came from a user, a token or a session is found without reading every session. The parent of what a session created is the
-- session: `created_by_id` and `link_created_by_id` may have its id.
CREATE INDEX sessions_by_link_creator ON sessions (link_created_by_id) WHERE link_created_by_id IS NOT NULL;

-- One-time links: for the first admin, and for the demo.
CREATE TABLE one_time_links (
    secret_hash   TEXT    PRIMARY KEY,
    -- setup: creates the first admin. user: signs that user in.
    purpose       TEXT    NOT NULL CHECK (purpose IN ('setup', 'user')),
    user_id       TEXT    REFERENCES users (id),
    created_at    INTEGER NOT NULL,
    created_by_id TEXT,
    root_user_id  TEXT,
    expires_at    INTEGER NOT NULL,
    used_at       INTEGER
) STRICT;

CREATE INDEX one_time_links_by_creator ON one_time_links (created_by_id) WHERE created_by_id IS NOT NULL;

-- Actions of one principal that let it act as another user, or made that user an approver.
CREATE TABLE account_changes (
    id         TEXT    PRIMARY KEY,
    user_id    TEXT    NOT NULL REFERENCES users (id),
    kind       TEXT    NOT NULL CHECK (kind IN ('created', 'link', 'password', 'approver')),
    by_id      TEXT    NOT NULL,
    by_root_user_id TEXT,
    by_kind    TEXT    NOT NULL CHECK (by_kind IN ('user', 'token', 'system')),
    changed_at INTEGER NOT NULL
) STRICT;

CREATE INDEX account_changes_by_user ON account_changes (user_id, changed_at);

-- Sign-ins through the identity provider from which a session came: each opens one. Kept until the cookie of the sign-in, which
-- has everything else, has expired.
CREATE TABLE oidc_finished_flows (
    secret_hash TEXT    PRIMARY KEY,
    begun_at    INTEGER NOT NULL
) STRICT;

CREATE INDEX oidc_finished_flows_by_age ON oidc_finished_flows (begun_at);

-- Settings of the whole server. `principals_revision` increases when users, tokens or role grants change: each server
-- notices it within a second and reloads them.
CREATE TABLE settings (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT;

INSERT INTO settings (key, value) VALUES ('principals_revision', '0'), ('read_only', 'no');
