//! Limits of people and sessions, with their units.

use std::time::Duration;

/// A session without a request ends after this.
pub const SESSION_IDLE: Duration = Duration::from_secs(30 * 60);
/// And after this in any case.
pub const SESSION_MAX: Duration = Duration::from_secs(12 * 3600);
/// How often a session's last request is written down.
pub const SESSION_SEEN_EVERY: Duration = Duration::from_secs(60);
/// "Just signed in": good for what asks for it again.
pub const FRESH: Duration = Duration::from_secs(15 * 60);
/// Whoever created a user, or gave them a link, a password or an approving role, is not independent of them for this long.
pub const INDEPENDENT_AFTER: Duration = Duration::from_secs(24 * 3600);
/// A one-time link may be opened for this long.
pub const LINK_MAX: Duration = Duration::from_secs(60 * 60);
/// From being sent to the identity provider to coming back.
pub const FLOW_MAX: Duration = Duration::from_secs(10 * 60);
/// Ways to the provider that are remembered; of more, the oldest are forgotten.
pub const FLOWS_MAX: i64 = 10_000;
/// How far the provider's clock may be from ours.
pub const SKEW_MAX: Duration = Duration::from_secs(60);
/// One answer of the provider.
pub const PROVIDER_PATIENCE: Duration = Duration::from_secs(5);
pub const PROVIDER_ANSWER_BYTES_MAX: usize = 256 * 1024;
/// How long what it says of itself is good for.
pub const PROVIDER_KEPT: Duration = Duration::from_secs(10 * 60);
/// How often its keys are asked for at most, when it signs with one that we do not know.
pub const PROVIDER_KEYS_EVERY: Duration = Duration::from_secs(60);
/// How long it is not asked again after it did not answer.
pub const PROVIDER_AWAY: Duration = Duration::from_secs(5);
/// Words of the claim that brings roles.
pub const WORDS_MAX: usize = 1_000;
/// People of the same name at the provider.
pub const NAMESAKES_MAX: usize = 999;
/// How often a server looks whether another one, or a command, changed something.
pub const DIRECTORY_LOOK: Duration = Duration::from_millis(500);
/// After a read for a missing token or user that found nothing new: the pause before the next such read.
pub const REREAD_PAUSE: Duration = Duration::from_millis(20);

/// How often a stream that stays open looks whether its session's or its token's time is over.
pub const STREAM_LOOK: Duration = Duration::from_secs(5);
/// How often it is written down that tokens were used: other servers know it by then.
pub const TOKEN_USED_EVERY: Duration = Duration::from_secs(3);

/// Characters of a password.
pub const PASSWORD_CHARS_MIN: usize = 12;
/// Longer ones would let anybody make us hash for long.
pub const PASSWORD_BYTES_MAX: usize = 1024;
/// Bytes of a person's or a token's name.
pub const NAME_BYTES_MAX: usize = 64;
/// Tokens of one chain of successors whose leases the latest inherits. Each of them would have to be replaced within the
/// lifetime of one lease before this is reached.
pub const PREDECESSORS_MAX: usize = 100;
/// Passwords hashed at once for anyone: each costs 19 MiB and a core.
pub const HASHES_SHARED: usize = 1;
/// And for people who are known: with a session, or at a source from which they signed in before.
pub const HASHES_RESERVED: usize = 1;
/// Attempts that wait for a hash, of each of the two kinds.
pub const HASH_QUEUE_MAX: usize = 32;
/// Longest wait in that queue.
pub const HASH_QUEUE_WAIT_MAX: Duration = Duration::from_secs(2);
/// After a full queue, when to try again.
pub const HASH_QUEUE_RETRY: Duration = Duration::from_secs(2);

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
}

/// Failed sign-ins from one source: an IPv4 address or an IPv6 /64.
pub const SOURCE_RATE: Rate = Rate::new(5, 60_000);
/// At one name, from all sources where it never signed in.
pub const NAME_RATE: Rate = Rate::new(20, 10_000);
/// From all such sources, at all names.
pub const EVERYONE_RATE: Rate = Rate::new(100, 200);
/// At one name, from one source where it signed in before.
pub const PAIR_RATE: Rate = Rate::new(5, 60_000);
/// Failed re-authentications in one session.
pub const SESSION_RATE: Rate = Rate::new(5, 60_000);
/// Sign-ins through the provider that one source begins without coming back, and answers of its that are refused.
pub const PROVIDER_RATE: Rate = Rate::new(60, 2_000);
/// One-time links from one source that do not work.
pub const LINK_RATE: Rate = Rate::new(10, 6_000);
/// Buckets that are remembered; of more, the oldest is dropped.
pub const BUCKETS_MAX: usize = 10_000;
/// Attempts that wait for others of the same bucket to end.
pub const BUCKET_WAITERS_MAX: u32 = 8;
/// Sources and names that are remembered for a successful sign-in.
pub const KNOWN_PAIRS_MAX: usize = 10_000;
/// How far back they are read at the start.
pub const KNOWN_PAIRS_SINCE: Duration = Duration::from_secs(30 * 24 * 3600);
/// Characters of a name that count; no name of ours is longer.
pub const NAME_CHARS_COUNTED: usize = 64;

const _: () = assert!(NAME_CHARS_COUNTED >= NAME_BYTES_MAX);
const _: () = assert!(FRESH.as_secs() < SESSION_IDLE.as_secs());
const _: () = assert!(SESSION_IDLE.as_secs() < SESSION_MAX.as_secs());
const _: () = assert!(DIRECTORY_LOOK.as_millis() < 1_000);
