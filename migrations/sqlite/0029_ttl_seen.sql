-- Where a backend does not tell the TTL of a lease: the most that was ever left of it, in milliseconds.

ALTER TABLE lock_events ADD COLUMN ttl_seen_ms INTEGER;
