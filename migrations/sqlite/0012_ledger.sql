-- The ledger is read by time: for charts and pages of a range.

CREATE INDEX fencing_rejections_by_time ON fencing_rejections (at, id);
