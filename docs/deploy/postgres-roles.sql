-- Two roles for a store on Postgres: leasehold_owner owns the tables and runs `leasehold migrate`; leasehold serves, may not
-- change tables, and may only read and append to the audit log.
--
-- Run it as a superuser in the database of the store, before the first `leasehold migrate` and again after it and after
-- each later one. Every statement may be repeated. Tables owned by leasehold, from a store with one role, get the new owner.

DO $$
BEGIN
    IF to_regrole('leasehold_owner') IS NULL THEN CREATE ROLE leasehold_owner LOGIN; END IF;
    IF to_regrole('leasehold') IS NULL THEN CREATE ROLE leasehold LOGIN; END IF;
END $$;

-- From one role to two. Before the grants: those of a former owner of the database would become the new owner's.
REASSIGN OWNED BY leasehold TO leasehold_owner;

DO $$
BEGIN
    -- No other role may connect, so that none can hold locks in this database.
    EXECUTE format('REVOKE ALL ON DATABASE %I FROM PUBLIC', current_database());
    EXECUTE format('REVOKE ALL ON DATABASE %I FROM leasehold', current_database());
    EXECUTE format('GRANT CONNECT ON DATABASE %I TO leasehold_owner, leasehold', current_database());
END $$;

REVOKE ALL ON SCHEMA public FROM PUBLIC, leasehold;
GRANT USAGE, CREATE ON SCHEMA public TO leasehold_owner;
GRANT USAGE ON SCHEMA public TO leasehold;

-- Existing tables, and those of later migrations.
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
