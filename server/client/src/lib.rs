//! Holds leases of a Leasehold server, and reports immediately when one is lost.
//!
#![doc = concat!("```no_run\n", include_str!("../examples/hold.rs"), "```")]
//!
//! # What holds
//! - A lease counts as held until its **deadline**: the moment *before* the last successful request was sent, plus the
//!   `remainingMs` of its answer. Neither the time of the answer nor `expiresAt` counts, and the wall clock is never read. So the
//!   deadline is not later than the expiry on the server.
//! - It is renewed after a third of the time left, with jitter. A renewal that fails (no connection, no answer, 5xx) is
//!   tried again, with back-off, until the deadline and not past it; every request is bounded by what is left.
//! - A response that the lease is gone (410, 404) ends it at once. So does its event stream, usually within a second; nothing
//!   relies on that stream.
//! - A loss is final: a response that arrives after the deadline revives nothing. Renewals and releases name only the
//!   lease id, so an old lease never affects the next one of its resource.
//!
//! # What does not
//! No client can stop a paused process from writing: between a check and the write that follows it, the process can be
//! stopped for any length of time. [`Lease::checkpoint`] narrows that gap. Only the protected resource
//! closes it, by comparing [`Lease::fencing_token`].
//!
//! # Clocks
//! On Linux time is `CLOCK_BOOTTIME`, which continues while the machine is suspended: a lease that expired during suspend is lost
//! when the machine wakes, before anything else happens. Timers of tokio do not count suspend. [`Lease::lost`] therefore reads
//! the clock at least once a second, and may be that late after a suspend; [`Lease::is_lost`] and [`Lease::checkpoint`] are never
//! late. Elsewhere it is the monotonic clock of the standard library, which may stop during suspend.

mod acquire;
mod batch;
mod client;
pub mod clock;
mod dto;
mod events;
mod http_call;
mod lease;
mod lease_state;
mod loss;
mod renewer;
mod request;
mod rng;
mod schedule;
#[cfg(test)]
mod test_server;
mod withdrawal;

pub use client::{Builder, Client, ClientError};
pub use clock::Moment;
pub use lease::{Lease, ReleaseError};
pub use lease_state::{CheckpointError, LeaseState};
pub use loss::Loss;
pub use request::{AcquireError, AcquireProgress, HeldBy, Request};
