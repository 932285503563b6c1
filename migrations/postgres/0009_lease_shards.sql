-- What a database keeps about itself when it is a shard of the lease service. Without a row it is not a shard.

CREATE TABLE lease_shard (
    only_row        int  PRIMARY KEY CHECK (only_row = 1),
    -- Of the console that the leases belong to.
    installation_id text NOT NULL,
    -- Position in `lease.store`, from 0.
    shard_index     int  NOT NULL,
    -- Fixed at creation: another number would move resources away from their fencing counters.
    shard_count     int  NOT NULL,
    -- The function from names to shards.
    name_hash       text NOT NULL,
    CHECK (shard_index >= 0 AND shard_index < shard_count)
);
