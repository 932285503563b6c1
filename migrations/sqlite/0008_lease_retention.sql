-- Idempotency keys past their window are deleted in the order of their creation.
CREATE INDEX idempotency_keys_by_time ON idempotency_keys (created_at);
