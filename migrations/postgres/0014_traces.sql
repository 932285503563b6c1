-- The trace that began or ended a holding of the built-in lease service, where its client was in one: 32 hexadecimal digits.

ALTER TABLE lock_events ADD COLUMN trace_id text;
