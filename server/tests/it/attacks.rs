//! Attacks on a running server, one file per attack. Each was possible once, or would be with one check fewer.

mod foreign_lease;
mod large_postgres_values;
mod large_redis_values;
mod memory;
mod protected_casualty;
mod read_only_release;
mod rights_lost_before_claim;
mod scope_lost_after_intent;
mod title_injection;
