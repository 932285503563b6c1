-- Who is told when alerts fire, and what is on its way to them. Times are milliseconds since 1970 by our clock.

CREATE TABLE receivers (
    id            text    PRIMARY KEY,
    name          text    NOT NULL UNIQUE,
    kind          text    NOT NULL CHECK (kind IN ('alertmanager', 'webhook', 'slack')),
    -- JSON. An address may hold what opens it: only the sender reads it whole.
    urls          text    NOT NULL,
    -- Signs or opens; it must be known in clear to be used.
    secret        text,
    created_at    bigint  NOT NULL,
    created_by    text    NOT NULL,
    last_ok_at    bigint ,
    last_fault_at bigint ,
    last_fault    TEXT
);

-- One message; it goes to several receivers.
CREATE TABLE notices (
    id         text    PRIMARY KEY,
    grp        text    NOT NULL,
    -- JSON.
    notice     text    NOT NULL,
    created_at bigint  NOT NULL
);

CREATE INDEX notices_by_age ON notices (created_at);

CREATE TABLE deliveries (
    -- Of one receiver and one group they are sent in this order.
    seq         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    notice_id   text    NOT NULL REFERENCES notices (id) ON DELETE CASCADE,
    receiver_id text    NOT NULL REFERENCES receivers (id) ON DELETE CASCADE,
    grp         text    NOT NULL,
    state       text    NOT NULL CHECK (state IN ('pending', 'delivered', 'dead')),
    -- Counts up with each claim: whoever claimed it earlier may not say how it ended.
    attempts    bigint  NOT NULL DEFAULT 0,
    -- Since when it is tried; another start begins anew.
    since       bigint  NOT NULL,
    -- Not before. A claim moves it on, so that another server takes over what one has left.
    next_at     bigint  NOT NULL,
    ended_at    bigint ,
    -- What came of the last attempt.
    answer      text,
    CHECK ((state = 'pending') = (ended_at IS NULL))
);

CREATE INDEX deliveries_due ON deliveries (next_at) WHERE state = 'pending';
CREATE INDEX deliveries_in_line ON deliveries (receiver_id, grp, seq) WHERE state = 'pending';
CREATE INDEX deliveries_of_receiver ON deliveries (receiver_id, state);
CREATE INDEX deliveries_of_notice ON deliveries (notice_id);

-- What each receiver was last told of a group: the same again within the window is not sent.
CREATE TABLE notice_groups (
    receiver_id text    NOT NULL REFERENCES receivers (id) ON DELETE CASCADE,
    grp         text    NOT NULL,
    digest      text    NOT NULL,
    at          bigint  NOT NULL,
    PRIMARY KEY (receiver_id, grp)
);

CREATE INDEX notice_groups_by_age ON notice_groups (at);

-- What an Alertmanager must be told again and again: that it still fires, and a few times that it has ended.
CREATE TABLE standing_alerts (
    receiver_id text    NOT NULL REFERENCES receivers (id) ON DELETE CASCADE,
    fingerprint text    NOT NULL,
    -- JSON.
    alert       text    NOT NULL,
    -- It has ended: how often that is still said.
    sends_left  bigint ,
    next_at     bigint  NOT NULL,
    PRIMARY KEY (receiver_id, fingerprint)
);

CREATE INDEX standing_alerts_due ON standing_alerts (next_at);
