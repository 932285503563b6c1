//! The Postgres adapter against real servers.

mod advisory;
mod advisory_libraries;
mod advisory_names;
mod blocked;
mod cursor;
mod docs;
mod faults;
mod job_queues;
mod library_clients;
mod library_tables;
mod liquibase;
mod lock_tables;
mod mapping;
mod php_locks;
mod poolers;
mod presets;
mod release;
mod row_release;
mod session_ends;
mod sessions;
mod tables;
mod tls;
mod watch;
mod watched_postgres;
