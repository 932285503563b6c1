-- An index entry has at most 2,704 bytes here, and the name of a lock may have 64 KiB: an insert of a longer one failed. So the
-- audit log has an index over the beginnings of names, for ranges of names, and forced unlocks one over hashes, for one name.

DROP INDEX audit_entries_by_resource;
-- Queries compare this expression in addition to the whole name; 256 characters have at most 1,024 bytes.
CREATE INDEX audit_entries_by_resource_start ON audit_entries ((left(resource, 256)) COLLATE "C", seq);

DROP INDEX unlocks_by_resource;
CREATE INDEX unlocks_by_resource_hash ON unlocks USING hash (resource);
