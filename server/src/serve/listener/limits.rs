//! Limits of connections, with their units.

use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Open connections; the limit of open files may allow fewer.
pub const CONNECTIONS_MAX: usize = 30_000;
/// One source (an IPv4 address or an IPv6 /64) may hold all slots divided by this: large, because one machine may
/// hold thousands of leases with an event stream each.
pub const SHARE_DIVISOR: usize = 2;
/// Open files reserved for the store, backends and logs.
pub const FILES_KEPT: u64 = 256;
/// Timeout from accept to the end of the first request's headers, TLS handshake included.
pub const FIRST_REQUEST_MAX: Duration = Duration::from_secs(15);
/// Idle timeout: no request in progress and no byte written. Longer than the 90 s that clients keep connections, so
/// that clients close first.
pub const SILENCE_MAX: Duration = Duration::from_secs(120);
/// Timeout from a request's headers to the end of its body.
pub const BODY_MAX: Duration = Duration::from_secs(30);
/// Bytes of an unread body that are drained before the response.
pub const DRAINED_BYTES_MAX: usize = 1024 * 1024;
/// Timeout of the draining.
pub const DRAIN_MAX: Duration = Duration::from_secs(2);
/// Header bytes per request.
pub const HEADER_BYTES_MAX: u32 = 64 * 1024;
/// Concurrent requests per HTTP/2 connection.
pub const STREAMS_MAX: u32 = 250;
/// Interval at which certificate files are checked.
pub const CERTIFICATE_CHECK_INTERVAL: Duration = Duration::from_secs(5);
/// Bytes of a certificate file, including its chain.
pub const CERTIFICATE_BYTES_MAX: u64 = 1024 * 1024;

const _: () = assert!(FIRST_REQUEST_MAX.as_secs() < SILENCE_MAX.as_secs());
const _: () = assert!(SILENCE_MAX.as_secs() > 90);
const _: () = assert!(BODY_MAX.as_secs() < SILENCE_MAX.as_secs());

/// Limits of one listener; tests use smaller ones.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    pub connections_max: usize,
    pub connections_per_source_max: usize,
    pub first_request_max: Duration,
    pub silence_max: Duration,
    pub body_max: Duration,
}

impl Limits {
    /// Limits that fit the open files of this process.
    pub fn from_process() -> Self {
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

/// Maximum number of open files of this process, after raising the limit.
pub fn open_files() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    limit.maximum.or(limit.current).unwrap_or(u64::MAX)
}

/// Raises the limit of open files as far as allowed. Best effort: with fewer files there are fewer connections.
pub fn raise_open_files() {
    let limit = getrlimit(Resource::Nofile);
    let wanted = Rlimit {
        current: limit.maximum.or(Some(CONNECTIONS_MAX as u64 * 2)),
        maximum: limit.maximum,
    };
    if let Err(error) = setrlimit(Resource::Nofile, wanted) {
        tracing::debug!("the limit of open files cannot be raised: {error}");
    }
}
