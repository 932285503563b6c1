-- How long the owner of a row of kind granted_after_wait had stood in line, in milliseconds.

ALTER TABLE lock_events ADD COLUMN waited_ms INTEGER;
