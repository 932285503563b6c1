-- Servers on Postgres follow its clock: the column is for SQLite alone.
SELECT 1;
