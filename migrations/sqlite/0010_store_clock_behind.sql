-- How far the store's clock is behind the wall clock, in milliseconds: a running server does not follow a wall clock that is set
-- ahead. The next start does, and moves the leases that have not expired along.
ALTER TABLE store_meta ADD COLUMN clock_behind_ms INTEGER NOT NULL DEFAULT 0;
