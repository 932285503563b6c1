-- The token that this one succeeds: it inherits the leases that the other acquired.

ALTER TABLE tokens ADD COLUMN successor_of TEXT REFERENCES tokens (id);
