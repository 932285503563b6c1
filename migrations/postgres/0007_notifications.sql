-- Receivers of notifications, and the outbox. Times are milliseconds since 1970 by the server's clock.

CREATE TABLE receivers (
    id            text    PRIMARY KEY,
    name          text    NOT NULL UNIQUE,
    kind          text    NOT NULL CHECK (kind IN ('alertmanager', 'webhook', 'slack')),
    -- JSON, sealed: an address may contain a secret.
    urls          text    NOT NULL,
    -- Sealed and not hashed: sending needs the clear text.
    secret        text,
    created_at    bigint  NOT NULL,
    created_by    text    NOT NULL,
    last_ok_at    bigint,
    last_fault_at bigint,
    last_fault    text
);

-- One message, for one or several receivers.
CREATE TABLE notifications (
    id         text    PRIMARY KEY,
    group_key  text    NOT NULL,
    -- JSON.
    body       text    NOT NULL,
    created_at bigint  NOT NULL
);

CREATE INDEX notifications_by_age ON notifications (created_at);

CREATE TABLE deliveries (
    -- Deliveries of one receiver and one group are sent in this order.
    seq             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    notification_id text    NOT NULL REFERENCES notifications (id) ON DELETE CASCADE,
    receiver_id     text    NOT NULL REFERENCES receivers (id) ON DELETE CASCADE,
    group_key       text    NOT NULL,
    state           text    NOT NULL CHECK (state IN ('pending', 'delivered', 'dead')),
    -- Increases with each claim: an earlier claimant can no longer write a result.
    attempts        bigint  NOT NULL DEFAULT 0,
    -- Start of the attempts; a retry of a dead letter sets it again.
    attempts_since  bigint  NOT NULL,
    -- Not before. A claim moves it on, so that another server takes over if the claimant stops.
    next_at         bigint  NOT NULL,
    ended_at        bigint,
    -- Result of the last attempt.
    answer          text,
    CHECK ((state = 'pending') = (ended_at IS NULL))
);

CREATE INDEX deliveries_due ON deliveries (next_at) WHERE state = 'pending';
CREATE INDEX deliveries_queue ON deliveries (receiver_id, group_key, seq) WHERE state = 'pending';
CREATE INDEX deliveries_by_receiver ON deliveries (receiver_id, state);
CREATE INDEX deliveries_by_notification ON deliveries (notification_id);

-- The last message to each receiver about a group: the same message within the window is not sent again.
CREATE TABLE notification_groups (
    receiver_id text    NOT NULL REFERENCES receivers (id) ON DELETE CASCADE,
    group_key   text    NOT NULL,
    digest      text    NOT NULL,
    at          bigint  NOT NULL,
    -- Number of alerts in that message: a group that has grown is sent again.
    size        bigint  NOT NULL DEFAULT 0,
    PRIMARY KEY (receiver_id, group_key)
);

CREATE INDEX notification_groups_by_age ON notification_groups (at);

-- Alerts that an Alertmanager must receive repeatedly: while they fire, and a few times after they resolved.
CREATE TABLE active_alerts (
    receiver_id text    NOT NULL REFERENCES receivers (id) ON DELETE CASCADE,
    fingerprint text    NOT NULL,
    -- JSON.
    alert       text    NOT NULL,
    -- Resolved: how often it is still sent.
    sends_left  bigint,
    next_at     bigint  NOT NULL,
    PRIMARY KEY (receiver_id, fingerprint)
);

CREATE INDEX active_alerts_due ON active_alerts (next_at);
