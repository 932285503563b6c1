-- The store's clock is the server's and what is added to it: a server whose clock was set back does not take the store's
-- time back with it.
ALTER TABLE store_meta
    ADD COLUMN clock_shift_ms bigint NOT NULL DEFAULT 0 CHECK (clock_shift_ms >= 0),
    -- Where the store's clock had come to, for a process that starts after the step.
    ADD COLUMN clock_ms       bigint NOT NULL DEFAULT 0;
