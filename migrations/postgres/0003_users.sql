-- Users, API tokens, roles and sessions. Times are milliseconds since 1970 by the server's clock. Secrets are stored as
-- hashes: passwords with Argon2id, random secrets with SHA-256 in hex.
--
-- Lineage: ids named *_by_id are those of a user, of an API token, or `system` for a command on the server. A root user is
-- the user at the start of a chain of tokens and links; null where unknown.

CREATE TABLE users (
    id            text    PRIMARY KEY,
    name          text    NOT NULL UNIQUE,
    -- Null: signs in at the identity provider, or has no password yet.
    password_hash text,
    -- Identity at the provider.
    issuer        text,
    subject       text,
    created_at    bigint  NOT NULL,
    disabled_at   bigint,
    UNIQUE (issuer, subject),
    CHECK ((issuer IS NULL) = (subject IS NULL))
);

CREATE TABLE api_tokens (
    id            text    PRIMARY KEY,
    name          text    NOT NULL UNIQUE,
    secret_hash   text    NOT NULL UNIQUE,
    created_at    bigint  NOT NULL,
    -- Name at that time.
    created_by    text    NOT NULL,
    created_by_id text,
    root_user_id  text,
    -- The token that this one replaces: it inherits the leases of that one.
    successor_of  text REFERENCES api_tokens (id),
    expires_at    bigint,
    last_used_at  bigint,
    revoked_at    bigint 
);

CREATE INDEX api_tokens_by_creator ON api_tokens (created_by_id) WHERE created_by_id IS NOT NULL;

-- One role of one user or one API token, on everything or on one backend or prefix.
CREATE TABLE role_grants (
    id       text PRIMARY KEY,
    user_id  text REFERENCES users (id),
    token_id text REFERENCES api_tokens (id),
    role     text NOT NULL,
    backend  text,
    prefix   text,
    CHECK ((user_id IS NULL) <> (token_id IS NULL))
);

CREATE INDEX role_grants_by_user ON role_grants (user_id) WHERE user_id IS NOT NULL;
CREATE INDEX role_grants_by_token ON role_grants (token_id) WHERE token_id IS NOT NULL;

CREATE TABLE sessions (
    id                 text    PRIMARY KEY,
    secret_hash        text    NOT NULL UNIQUE,
    user_id            text    NOT NULL REFERENCES users (id),
    -- password, link or oidc
    method             text    NOT NULL,
    created_at         bigint  NOT NULL,
    last_seen_at       bigint  NOT NULL,
    -- When the user last entered a password or came back from the identity provider.
    authenticated_at   bigint  NOT NULL,
    ended_at           bigint,
    ip                 text,
    user_agent         text,
    -- Creator of the link that opened the session; null for a session from a password or an identity provider.
    link_created_by_id text,
    root_user_id       text
);

CREATE INDEX sessions_by_user ON sessions (user_id, created_at);
-- What came from a user, a token or a session is found without reading every session. The parent of what a session created is the
-- session: `created_by_id` and `link_created_by_id` may have its id.
CREATE INDEX sessions_by_link_creator ON sessions (link_created_by_id) WHERE link_created_by_id IS NOT NULL;

-- One-time links: for the first admin, and for the demo.
CREATE TABLE one_time_links (
    secret_hash   text    PRIMARY KEY,
    -- setup: creates the first admin. user: signs that user in.
    purpose       text    NOT NULL CHECK (purpose IN ('setup', 'user')),
    user_id       text    REFERENCES users (id),
    created_at    bigint  NOT NULL,
    created_by_id text,
    root_user_id  text,
    expires_at    bigint  NOT NULL,
    used_at       bigint 
);

CREATE INDEX one_time_links_by_creator ON one_time_links (created_by_id) WHERE created_by_id IS NOT NULL;

-- Actions of one principal that let it act as another user, or made that user an approver.
CREATE TABLE account_changes (
    id         text    PRIMARY KEY,
    user_id    text    NOT NULL REFERENCES users (id),
    kind       text    NOT NULL CHECK (kind IN ('created', 'link', 'password', 'approver')),
    by_id      text    NOT NULL,
    by_root_user_id text,
    by_kind    text    NOT NULL CHECK (by_kind IN ('user', 'token', 'system')),
    changed_at bigint  NOT NULL
);

CREATE INDEX account_changes_by_user ON account_changes (user_id, changed_at);

-- Sign-ins through the identity provider from which a session came: each opens one. Kept until the cookie of the sign-in, which
-- has everything else, has expired.
CREATE TABLE oidc_finished_flows (
    secret_hash text   PRIMARY KEY,
    begun_at    bigint NOT NULL
);

CREATE INDEX oidc_finished_flows_by_age ON oidc_finished_flows (begun_at);

-- Settings of the whole server. `principals_revision` increases when users, tokens or role grants change: each server
-- notices it within a second and reloads them.
CREATE TABLE settings (
    key   text PRIMARY KEY,
    value text NOT NULL
);

INSERT INTO settings (key, value) VALUES ('principals_revision', '0'), ('read_only', 'no');
