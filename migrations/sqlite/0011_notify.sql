-- Who is told when alerts fire, and what is on its way to them. Times are milliseconds since 1970 by our clock.

CREATE TABLE receivers (
    id            TEXT    PRIMARY KEY,
    name          TEXT    NOT NULL UNIQUE,
    kind          TEXT    NOT NULL CHECK (kind IN ('alertmanager', 'webhook', 'slack')),
    -- JSON. An address may hold what opens it: only the sender reads it whole.
    urls          TEXT    NOT NULL,
    -- Signs or opens; it must be known in clear to be used.
    secret        TEXT,
    created_at    INTEGER NOT NULL,
    created_by    TEXT    NOT NULL,
    last_ok_at    INTEGER,
    last_fault_at INTEGER,
    last_fault    TEXT
) STRICT;

-- One message; it goes to several receivers.
CREATE TABLE notices (
    id         TEXT    PRIMARY KEY,
    grp        TEXT    NOT NULL,
    -- JSON.
    notice     TEXT    NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;

CREATE INDEX notices_by_age ON notices (created_at);

CREATE TABLE deliveries (
    -- Of one receiver and one group they are sent in this order.
    seq         INTEGER PRIMARY KEY AUTOINCREMENT,
    notice_id   TEXT    NOT NULL REFERENCES notices (id) ON DELETE CASCADE,
    receiver_id TEXT    NOT NULL REFERENCES receivers (id) ON DELETE CASCADE,
    grp         TEXT    NOT NULL,
    state       TEXT    NOT NULL CHECK (state IN ('pending', 'delivered', 'dead')),
    -- Counts up with each claim: whoever claimed it earlier may not say how it ended.
    attempts    INTEGER NOT NULL DEFAULT 0,
    -- Since when it is tried; another start begins anew.
    since       INTEGER NOT NULL,
    -- Not before. A claim moves it on, so that another server takes over what one has left.
    next_at     INTEGER NOT NULL,
    ended_at    INTEGER,
    -- What came of the last attempt.
    answer      TEXT,
    CHECK ((state = 'pending') = (ended_at IS NULL))
) STRICT;

CREATE INDEX deliveries_due ON deliveries (next_at) WHERE state = 'pending';
CREATE INDEX deliveries_in_line ON deliveries (receiver_id, grp, seq) WHERE state = 'pending';
CREATE INDEX deliveries_of_receiver ON deliveries (receiver_id, state);
CREATE INDEX deliveries_of_notice ON deliveries (notice_id);

-- What each receiver was last told of a group: the same again within the window is not sent.
CREATE TABLE notice_groups (
    receiver_id TEXT    NOT NULL REFERENCES receivers (id) ON DELETE CASCADE,
    grp         TEXT    NOT NULL,
    digest      TEXT    NOT NULL,
    at          INTEGER NOT NULL,
    PRIMARY KEY (receiver_id, grp)
) STRICT;

CREATE INDEX notice_groups_by_age ON notice_groups (at);

-- What an Alertmanager must be told again and again: that it still fires, and a few times that it has ended.
CREATE TABLE standing_alerts (
    receiver_id TEXT    NOT NULL REFERENCES receivers (id) ON DELETE CASCADE,
    fingerprint TEXT    NOT NULL,
    -- JSON.
    alert       TEXT    NOT NULL,
    -- It has ended: how often that is still said.
    sends_left  INTEGER,
    next_at     INTEGER NOT NULL,
    PRIMARY KEY (receiver_id, fingerprint)
) STRICT;

CREATE INDEX standing_alerts_due ON standing_alerts (next_at);
