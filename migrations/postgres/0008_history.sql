-- What happened to locks, as the console saw it: kept for days, pruned from the front.

CREATE TABLE lock_events (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- Milliseconds since 1970 by the console's clock: when it was seen.
    at            bigint NOT NULL,
    kind          text   NOT NULL,
    backend       text   NOT NULL,
    source        text   NOT NULL,
    -- Names are bytes on some backends.
    resource      bytea  NOT NULL,
    owner_id      text,
    -- As text: tokens of others exceed what an integer holds.
    fencing_token text
);

CREATE INDEX lock_events_of ON lock_events (backend, resource, id);
CREATE INDEX lock_events_by_age ON lock_events (at);

-- Times that nobody watched: the console was not running, or more happened than it could write down.
CREATE TABLE history_gaps (
    began bigint NOT NULL,
    ended bigint NOT NULL,
    lost  bigint NOT NULL
);

-- When something was written last, and by whom: of several servers one writes, the one with the highest token.
CREATE TABLE history_writer (
    only_row int    PRIMARY KEY CHECK (only_row = 1),
    alive_at bigint,
    token    bigint NOT NULL
);

INSERT INTO history_writer (only_row, alive_at, token) VALUES (1, NULL, 0);
