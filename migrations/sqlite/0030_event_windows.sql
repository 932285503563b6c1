-- Events that were first seen after an outage of their backend, and rows whose holders give signs of life.

-- The last reading before the event: it happened after this time and not later than `at`. NULL: no outage.
ALTER TABLE lock_events ADD COLUMN not_before INTEGER;
-- Without a TTL: the time without a sign of life after which the holder is not renewing.
ALTER TABLE lock_events ADD COLUMN stale_after_ms INTEGER;
-- Of the ended holds of a roll-up: those whose length is known only between two bounds.
ALTER TABLE history_rollups ADD COLUMN holds_uncertain INTEGER NOT NULL DEFAULT 0;
