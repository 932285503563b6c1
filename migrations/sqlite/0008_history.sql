-- What happened to locks, as the console saw it: kept for days, pruned from the front. With SQLite in a file of its own.

CREATE TABLE lock_events (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    -- Milliseconds since 1970 by the console's clock: when it was seen.
    at            INTEGER NOT NULL,
    kind          TEXT    NOT NULL,
    backend       TEXT    NOT NULL,
    source        TEXT    NOT NULL,
    -- Names are bytes on some backends.
    resource      BLOB    NOT NULL,
    owner_id      TEXT,
    -- As text: tokens of others exceed what an integer holds.
    fencing_token TEXT
) STRICT;

CREATE INDEX lock_events_of ON lock_events (backend, resource, id);
CREATE INDEX lock_events_by_age ON lock_events (at);

-- Times that nobody watched: the console was not running, or more happened than it could write down.
CREATE TABLE history_gaps (
    began INTEGER NOT NULL,
    ended INTEGER NOT NULL,
    lost  INTEGER NOT NULL
) STRICT;

-- When something was written last, and by whom: of several servers one writes, the one with the highest token.
CREATE TABLE history_writer (
    only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
    alive_at INTEGER,
    token    INTEGER NOT NULL
) STRICT;

INSERT INTO history_writer (only_row, alive_at, token) VALUES (1, NULL, 0);
