-- The row that appenders of the audit log lock for the time of their transaction. An advisory lock could be taken by any
-- role that may connect; this row only by a role that may update the table.
CREATE TABLE audit_append_lock (
    id BOOLEAN PRIMARY KEY DEFAULT true CHECK (id)
);

INSERT INTO audit_append_lock DEFAULT VALUES;
