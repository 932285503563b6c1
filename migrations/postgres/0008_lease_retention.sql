-- Idempotency keys past their window are deleted in the order of their creation.
CREATE INDEX idempotency_keys_by_time ON idempotency_keys (created_at);

-- Rows are deleted as fast as they are written, so the space of dead rows is needed soon: a fiftieth of the table, not a fifth.
ALTER TABLE leases SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
ALTER TABLE idempotency_keys SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
