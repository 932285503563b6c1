//! Attacks on a running server, one file per attack. Each was possible once, or would be with one check fewer.

mod title_injection;
