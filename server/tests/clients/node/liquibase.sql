--liquibase formatted sql

--changeset orders:1
SELECT pg_advisory_lock(${key});
