-- The overview reads forced unlocks by the moment of the act, newest first.
CREATE INDEX unlocks_acted ON unlocks (acted_at, id) WHERE acted_at IS NOT NULL;
