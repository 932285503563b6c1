-- Two roles for a store on Postgres: leasehold_owner owns the tables and runs `leasehold migrate`. The server uses leasehold, which
-- cannot change the definition of a table, and can only read and append to the audit log.
--
-- Run this file as a superuser in the database of the store: before the first `leasehold migrate`, and after each one. Every
-- statement may be repeated. Tables that leasehold owns, from a store with one role, get the new owner.

DO $$
BEGIN
    IF to_regrole('leasehold_owner') IS NULL THEN CREATE ROLE leasehold_owner LOGIN; END IF;
    IF to_regrole('leasehold') IS NULL THEN CREATE ROLE leasehold LOGIN; END IF;
END $$;

-- Converts a store with one role. This must precede the grants, because the privileges of an owner pass to the new owner.
REASSIGN OWNED BY leasehold TO leasehold_owner;

DO $$
BEGIN
    -- Other roles cannot connect, so they cannot hold locks in this database.
    EXECUTE format('REVOKE ALL ON DATABASE %I FROM PUBLIC', current_database());
    EXECUTE format('REVOKE ALL ON DATABASE %I FROM leasehold', current_database());
    EXECUTE format('GRANT CONNECT ON DATABASE %I TO leasehold_owner, leasehold', current_database());
END $$;

REVOKE ALL ON SCHEMA public FROM PUBLIC, leasehold;
GRANT USAGE, CREATE ON SCHEMA public TO leasehold_owner;
GRANT USAGE ON SCHEMA public TO leasehold;

-- Grants on existing tables, and on those that later migrations create.
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO leasehold;
GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA public TO leasehold;
ALTER DEFAULT PRIVILEGES FOR ROLE leasehold_owner IN SCHEMA public
    GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO leasehold;
ALTER DEFAULT PRIVILEGES FOR ROLE leasehold_owner IN SCHEMA public
    GRANT USAGE, SELECT ON SEQUENCES TO leasehold;

-- The audit log: read and append, never change, delete or truncate. The list of migrations: read.
DO $$
BEGIN
    IF to_regclass('public.audit_entries') IS NOT NULL THEN
        REVOKE ALL ON public.audit_entries FROM leasehold;
        GRANT SELECT, INSERT ON public.audit_entries TO leasehold;
    END IF;
    IF to_regclass('public._sqlx_migrations') IS NOT NULL THEN
        REVOKE ALL ON public._sqlx_migrations FROM leasehold;
        GRANT SELECT ON public._sqlx_migrations TO leasehold;
    END IF;
END $$;
