-- When, by the store's own clock, something was added to the server's clock last: whoever has not read the store's time since
-- then does not take it off again.
ALTER TABLE store_meta ADD COLUMN clock_raised_at bigint NOT NULL DEFAULT 0;
