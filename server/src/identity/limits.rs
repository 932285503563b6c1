//! Limits of users and sessions, with their units.

use std::time::Duration;

/// Idle timeout of a session.
pub const SESSION_IDLE: Duration = Duration::from_secs(30 * 60);
/// Maximum lifetime of a session.
pub const SESSION_MAX: Duration = Duration::from_secs(12 * 3600);
/// Interval at which the last request of a session is stored.
pub const SESSION_SEEN_EVERY: Duration = Duration::from_secs(60);
/// Age limit of "fresh" authentication, required for sensitive steps.
pub const FRESH: Duration = Duration::from_secs(15 * 60);
/// After creating a user, or giving them a link, a password or an approving role, a principal is not independent of
/// them for this long.
pub const INDEPENDENT_AFTER: Duration = Duration::from_secs(24 * 3600);
/// Lifetime of a one-time link.
pub const LINK_MAX: Duration = Duration::from_secs(60 * 60);
/// Time limit of a sign-in through the identity provider.
pub const FLOW_MAX: Duration = Duration::from_secs(10 * 60);
/// Bytes of the path to return to afterwards, which a cookie keeps.
pub const NEXT_PATH_BYTES_MAX: usize = 1_024;
/// Allowed difference between the clock of the provider, or of another server, and ours.
pub const SKEW_MAX: Duration = Duration::from_secs(60);
/// Timeout of one request to the provider.
pub const PROVIDER_TIMEOUT: Duration = Duration::from_secs(5);
pub const PROVIDER_ANSWER_BYTES_MAX: usize = 256 * 1024;
/// Cache lifetime of the provider's metadata.
pub const PROVIDER_CACHE_TTL: Duration = Duration::from_secs(10 * 60);
/// Minimum interval between key reloads caused by an unknown key.
pub const PROVIDER_KEYS_INTERVAL_MIN: Duration = Duration::from_secs(60);
/// Pause after the provider did not answer.
pub const PROVIDER_RETRY_PAUSE: Duration = Duration::from_secs(5);
/// Values of the roles claim.
pub const CLAIM_VALUES_MAX: usize = 1_000;
/// Users with the same name at the provider.
pub const NAMESAKES_MAX: usize = 999;
/// Interval at which a server checks for changes by other replicas or commands.
pub const DIRECTORY_POLL_INTERVAL: Duration = Duration::from_millis(500);
/// After a read for a missing token or user that found nothing new: the pause before the next such read.
pub const REREAD_PAUSE: Duration = Duration::from_millis(20);

/// Interval at which an open stream checks that its session or token is still valid.
pub const STREAM_CHECK_INTERVAL: Duration = Duration::from_secs(5);
/// Lifetime of a token that expires. A shorter one would be over before its first request.
pub const TOKEN_LIFETIME_MIN: Duration = Duration::from_secs(1);
/// Ten years of any length.
pub const TOKEN_LIFETIME_MAX: Duration = Duration::from_secs(3_660 * 86_400);
/// Interval at which token use is stored, and thereby visible to other replicas.
pub const TOKEN_USED_EVERY: Duration = Duration::from_secs(3);

/// Characters of a password.
pub const PASSWORD_CHARS_MIN: usize = 12;
/// Limits the cost of hashing one password.
pub const PASSWORD_BYTES_MAX: usize = 1024;
/// Bytes of a user's or a token's name.
pub const NAME_BYTES_MAX: usize = 64;
/// Tokens in a chain of successors whose leases the latest inherits. To exceed it, each would have to be replaced
/// within the lifetime of one lease.
pub const PREDECESSORS_MAX: usize = 100;
/// Concurrent hashes for all clients: each costs 19 MiB and a core.
pub const HASHES_SHARED: usize = 1;
/// Concurrent hashes for known users: with a session, or at a source from which they signed in before.
pub const HASHES_RESERVED: usize = 1;
/// Attempts waiting for a hash, per kind.
pub const HASH_QUEUE_MAX: usize = 32;
/// Longest wait in that queue.
pub const HASH_QUEUE_WAIT_MAX: Duration = Duration::from_secs(2);
/// Value of `Retry-After` when the queue is full.
pub const HASH_QUEUE_RETRY: Duration = Duration::from_secs(2);

/// Sources of one IPv6 site (a /48) that may use their whole rate at the same time.
const SOURCES_PER_SITE: u32 = 5;

/// A burst of attempts, and the time after which one more is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    pub burst: u32,
    pub every: Duration,
}

impl Rate {
    const fn new(burst: u32, every_ms: u64) -> Self {
        Self {
            burst,
            every: Duration::from_millis(every_ms),
        }
    }

    /// The rate of an IPv6 site, for the rate of one source.
    pub fn of_site(self) -> Self {
        Self {
            burst: self.burst * SOURCES_PER_SITE,
            every: self.every / SOURCES_PER_SITE,
        }
    }
}

/// Failed sign-ins from one source: an IPv4 address or an IPv6 /64.
pub const SOURCE_RATE: Rate = Rate::new(5, 60_000);
/// Failed sign-ins for one name, from all sources where it never signed in.
pub const NAME_RATE: Rate = Rate::new(20, 10_000);
/// Failed sign-ins from all such sources, for all names.
pub const EVERYONE_RATE: Rate = Rate::new(100, 200);
/// Failed sign-ins for one name, from one source where it signed in before.
pub const PAIR_RATE: Rate = Rate::new(5, 60_000);
/// Failed re-authentications in one session.
pub const SESSION_RATE: Rate = Rate::new(5, 60_000);
/// Sign-ins through the provider that one source begins and does not finish, and refused answers.
pub const PROVIDER_RATE: Rate = Rate::new(60, 2_000);
/// Invalid one-time links from one source.
pub const LINK_RATE: Rate = Rate::new(10, 6_000);
/// Buckets in memory; the oldest is dropped.
pub const BUCKETS_MAX: usize = 10_000;
/// Attempts waiting for concurrent attempts of the same bucket.
pub const BUCKET_WAITERS_MAX: u32 = 8;
/// Sources and names of successful sign-ins in memory.
pub const KNOWN_PAIRS_MAX: usize = 10_000;
/// How far back they are read at start.
pub const KNOWN_PAIRS_SINCE: Duration = ENDED_RETENTION;
/// Sessions and one-time links are deleted so long after they were created or have expired.
pub const ENDED_RETENTION: Duration = Duration::from_secs(30 * 24 * 3600);
/// Interval between deletions.
pub const PRUNE_EVERY: Duration = Duration::from_secs(3600);
/// Rows per deletion.
pub const PRUNED_MAX: i64 = 500;
/// Characters of a name that are compared; no valid name is longer.
pub const NAME_CHARS_COUNTED: usize = 64;

const _: () = assert!(NAME_CHARS_COUNTED >= NAME_BYTES_MAX);
const _: () = assert!(FRESH.as_secs() < SESSION_IDLE.as_secs());
const _: () = assert!(SESSION_IDLE.as_secs() < SESSION_MAX.as_secs());
const _: () = assert!(SESSION_MAX.as_secs() < ENDED_RETENTION.as_secs());
const _: () = assert!(DIRECTORY_POLL_INTERVAL.as_millis() < 1_000);
