//! Attacks on a running server, one file per attack. Each was possible once, or would be with one check fewer.

mod address_rotation;
mod audit_flood;
mod audit_log_rights;
mod backend_probe;
mod export_by_link;
mod foreign_casualty;
mod foreign_lease;
mod foreign_rules;
mod health_details;
mod large_postgres_values;
mod large_redis_values;
mod memory;
mod name_flood;
mod neighbour_silence;
mod oversized_password;
mod parallel_guesses;
mod protected_casualty;
mod read_only_release;
mod rejection_flood;
mod rights_lost_before_claim;
mod scope_lost_after_intent;
mod stage;
mod title_injection;
mod token_in_clear;
mod unknown_tokens;
