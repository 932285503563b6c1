-- Where the leases were moved to: a server refuses to grant from this store again.
ALTER TABLE store_meta ADD COLUMN moved_to text;
