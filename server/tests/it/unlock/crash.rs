//! A real server, killed at random moments of forced unlocks: no act without a record, ever.
