-- Searching the record: each way to look for rows has its index, with the number behind it, so that a page of the newest
-- ones is found without reading the rows.

CREATE INDEX audit_rows_of_actor_name ON audit_rows (actor_name, seq);
CREATE INDEX audit_rows_of_backend ON audit_rows (backend, seq);
CREATE INDEX audit_rows_of_action ON audit_rows (action, seq);
CREATE INDEX audit_rows_of_outcome ON audit_rows (outcome, seq);
CREATE INDEX audit_rows_of_time ON audit_rows (created_at, seq);
