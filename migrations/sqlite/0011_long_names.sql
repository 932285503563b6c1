-- Index entries have no limit in SQLite: other indexes over long names are for Postgres alone.
SELECT 1;
