//! Limits of connections, with their units.

use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Open at once; the system's limit of open files may leave fewer.
pub const CONNECTIONS_MAX: usize = 30_000;
/// One source (an IPv4 address or an IPv6 /64) may hold all places divided by this. No less, because one machine may hold
/// thousands of leases with an event stream each.
pub const SHARE_DIVISOR: usize = 2;
/// Files that are kept for everything that is no connection: the store, backends, logs.
pub const FILES_KEPT: u64 = 256;
/// From accept to the end of the first request's headers, TLS handshake included.
pub const FIRST_REQUEST_MAX: Duration = Duration::from_secs(15);
/// Without a request under way and without a byte written: idle, stuck in the next request's headers, or not reading its
/// answer. Longer than the 90 s that clients keep connections for, so that it is they who close.
pub const SILENCE_MAX: Duration = Duration::from_secs(120);
/// From a request's headers to the end of its body.
pub const BODY_MAX: Duration = Duration::from_secs(30);
/// Of a request that is answered before its body was read: so much of the body is read and dropped before the answer.
pub const DRAINED_BYTES_MAX: usize = 1024 * 1024;
/// And for so long.
pub const DRAIN_MAX: Duration = Duration::from_secs(2);
/// Headers of one request.
pub const HEADER_BYTES_MAX: u32 = 64 * 1024;
/// Requests at once on one connection of HTTP/2.
pub const STREAMS_MAX: u32 = 250;
/// How often the certificate's files are looked at.
pub const CERTIFICATE_LOOK: Duration = Duration::from_secs(5);
/// Size of a certificate's file, chain included, in bytes.
pub const CERTIFICATE_BYTES_MAX: u64 = 1024 * 1024;

const _: () = assert!(FIRST_REQUEST_MAX.as_secs() < SILENCE_MAX.as_secs());
const _: () = assert!(SILENCE_MAX.as_secs() > 90);
const _: () = assert!(BODY_MAX.as_secs() < SILENCE_MAX.as_secs());

/// What one listener keeps to. Tests are less patient.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    pub connections_max: usize,
    pub connections_per_source_max: usize,
    pub first_request_max: Duration,
    pub silence_max: Duration,
    pub body_max: Duration,
}

impl Limits {
    /// Fit for the files that this process may open.
    pub fn of_process() -> Self {
        let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let connections = usize::try_from(files.saturating_sub(FILES_KEPT)).unwrap_or(usize::MAX);
        let connections_max = connections.clamp(64, CONNECTIONS_MAX);
        Self {
            connections_max,
            connections_per_source_max: connections_max / SHARE_DIVISOR,
            first_request_max: FIRST_REQUEST_MAX,
            silence_max: SILENCE_MAX,
            body_max: BODY_MAX,
        }
    }
}

/// How many files this process may open once it has asked for all it can have.
pub fn open_files() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    limit.maximum.or(limit.current).unwrap_or(u64::MAX)
}

/// Asks the system for as many open files as it allows. It is a wish: with fewer there are fewer connections.
pub fn raise_open_files() {
    let limit = getrlimit(Resource::Nofile);
    let wanted = Rlimit {
        current: limit.maximum.or(Some(CONNECTIONS_MAX as u64 * 2)),
        maximum: limit.maximum,
    };
    if let Err(error) = setrlimit(Resource::Nofile, wanted) {
        tracing::debug!("the limit of open files stays: {error}");
    }
}
