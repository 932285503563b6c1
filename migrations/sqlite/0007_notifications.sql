-- Receivers of notifications, and the outbox. Times are milliseconds since 1970 by the server's clock.

CREATE TABLE receivers (
    id            TEXT    PRIMARY KEY,
    name          TEXT    NOT NULL UNIQUE,
    kind          TEXT    NOT NULL CHECK (kind IN ('alertmanager', 'webhook', 'slack')),
    -- JSON, sealed: an address may contain a secret.
    urls          TEXT    NOT NULL,
    -- Sealed and not hashed: sending needs the clear text.
    secret        TEXT,
    created_at    INTEGER NOT NULL,
    created_by    TEXT    NOT NULL,
    last_ok_at    INTEGER,
    last_fault_at INTEGER,
    last_fault    TEXT
) STRICT;

-- One message, for one or several receivers.
CREATE TABLE notifications (
    id         TEXT    PRIMARY KEY,
    group_key  TEXT    NOT NULL,
    -- JSON.
    body       TEXT    NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;

CREATE INDEX notifications_by_age ON notifications (created_at);

CREATE TABLE deliveries (
    -- Deliveries of one receiver and one group are sent in this order.
    seq             INTEGER PRIMARY KEY AUTOINCREMENT,
    notification_id TEXT    NOT NULL REFERENCES notifications (id) ON DELETE CASCADE,
    receiver_id     TEXT    NOT NULL REFERENCES receivers (id) ON DELETE CASCADE,
    group_key       TEXT    NOT NULL,
    state           TEXT    NOT NULL CHECK (state IN ('pending', 'delivered', 'dead')),
    -- Increases with each claim: an earlier claimant can no longer write a result.
    attempts        INTEGER NOT NULL DEFAULT 0,
    -- Start of the attempts; a retry of a dead letter sets it again.
    attempts_since  INTEGER NOT NULL,
    -- Not before. A claim moves it on, so that another server takes over if the claimant stops.
    next_at         INTEGER NOT NULL,
    ended_at        INTEGER,
    -- Result of the last attempt.
    answer          TEXT,
    CHECK ((state = 'pending') = (ended_at IS NULL))
) STRICT;

CREATE INDEX deliveries_due ON deliveries (next_at) WHERE state = 'pending';
CREATE INDEX deliveries_queue ON deliveries (receiver_id, group_key, seq) WHERE state = 'pending';
CREATE INDEX deliveries_by_receiver ON deliveries (receiver_id, state);
CREATE INDEX deliveries_by_notification ON deliveries (notification_id);

-- The last message to each receiver about a group: the same message within the window is not sent again.
CREATE TABLE notification_groups (
    receiver_id TEXT    NOT NULL REFERENCES receivers (id) ON DELETE CASCADE,
    group_key   TEXT    NOT NULL,
    digest      TEXT    NOT NULL,
    at          INTEGER NOT NULL,
    -- Number of alerts in that message: a group that has grown is sent again.
    size        INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (receiver_id, group_key)
) STRICT;

CREATE INDEX notification_groups_by_age ON notification_groups (at);

-- Alerts that an Alertmanager must receive repeatedly: while they fire, and a few times after they resolved.
CREATE TABLE active_alerts (
    receiver_id TEXT    NOT NULL REFERENCES receivers (id) ON DELETE CASCADE,
    fingerprint TEXT    NOT NULL,
    -- JSON.
    alert       TEXT    NOT NULL,
    -- Resolved: how often it is still sent.
    sends_left  INTEGER,
    next_at     INTEGER NOT NULL,
    PRIMARY KEY (receiver_id, fingerprint)
) STRICT;

CREATE INDEX active_alerts_due ON active_alerts (next_at);
