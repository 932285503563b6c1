-- One server uses an SQLite file, so it is never one of several shards: lease_shard is for Postgres alone.
SELECT 1;
