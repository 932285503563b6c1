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
pub const HASHES_AT_ONCE_MAX: usize = 2;
/// Wrong guesses from one place at one name before it must wait.
pub const GUESSES_FREE: u32 = 5;
/// Longest wait between two guesses: nobody is locked out for ever.
pub const GUESS_WAIT_MAX: Duration = Duration::from_secs(60);
/// Ways to the provider that one place begins, or answers of its that are refused, before it must wait.
pub const WAYS_FREE: u32 = 60;
/// A place that was quiet for so long after its wait begins anew.
pub const GUESSES_FORGOTTEN: Duration = Duration::from_secs(10 * 60);
/// Places and names that are remembered for their wrong guesses.
pub const GUESSERS_MAX: usize = 10_000;

const _: () = assert!(FRESH.as_secs() < SESSION_IDLE.as_secs());
const _: () = assert!(SESSION_IDLE.as_secs() < SESSION_MAX.as_secs());
const _: () = assert!(DIRECTORY_LOOK.as_millis() < 1_000);
