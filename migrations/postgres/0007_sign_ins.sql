-- Ways to the identity provider that were begun and did not come back yet. The secret is the browser's alone and is kept as
-- its hash; state, nonce and verifier are made from it. Times are milliseconds since 1970 by our clock.

CREATE TABLE sign_ins (
    secret   TEXT PRIMARY KEY,
    -- Where they were going, a path of ours.
    next     TEXT NOT NULL,
    -- 1: the provider was asked to ask for the password anew.
    again    BIGINT NOT NULL,
    begun_at BIGINT NOT NULL
);

CREATE INDEX sign_ins_by_age ON sign_ins (begun_at);
