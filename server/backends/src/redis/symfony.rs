//! Symfony's locks since 5.2: a sorted set of tokens, whose scores are their expiries in milliseconds since 1970. Pure.
//!
//! A lock that is not shared has the member `__write__` besides its token. The key expires with the last of its members.
//! A token whose time is over stays until the next client removes it.

use super::fingerprint::Fingerprint;

const WRITE: &[u8] = b"__write__";
/// Base64 of 32 bytes.
const TOKEN_BYTES: usize = 44;

/// Content of such a set, without the tokens whose time is over.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SymfonyLock {
    /// With the time left, in milliseconds; sorted.
    pub(super) holds: Vec<(String, i64)>,
    pub(super) is_shared: bool,
}

impl SymfonyLock {
    /// `None`: a sorted set of another form. `pttl_ms` is the time left of the key, which tells the server's time.
    pub(super) fn parse(members: &[(Vec<u8>, Vec<u8>)], pttl_ms: i64) -> Option<Self> {
        let scored = |(member, score): &(Vec<u8>, Vec<u8>)| {
            let expires_ms = std::str::from_utf8(score).ok()?.parse::<i64>().ok()?;
            Some((member.clone(), expires_ms))
        };
        let members: Vec<(Vec<u8>, i64)> = members.iter().map(scored).collect::<Option<_>>()?;
        let last_ms = members.iter().map(|(_, expires_ms)| *expires_ms).max()?;
        let now_ms = last_ms.checked_sub(pttl_ms).filter(|_| pttl_ms >= 0)?;
        let mut lock = Self {
            holds: Vec::with_capacity(members.len()),
            is_shared: true,
        };
        for (member, expires_ms) in members {
            if member == WRITE {
                lock.is_shared = false;
            } else if !is_token(&member) {
                return None;
            } else if expires_ms > now_ms || expires_ms == last_ms {
                let token = String::from_utf8(member).ok()?;
                lock.holds.push((token, expires_ms.checked_sub(now_ms)?));
            }
        }
        lock.holds.sort_unstable();
        (!lock.holds.is_empty()).then_some(lock)
    }

    /// Mode and tokens. Without the scores: a refresh is no new acquisition. A `Lock` object of Symfony keeps its token.
    pub(super) fn generation(&self) -> String {
        self.generation_of(&self.holds)
    }

    /// The generation with each token alone.
    pub(super) fn generations(&self) -> impl Iterator<Item = String> {
        let holds = self.holds.iter();
        holds.map(move |hold| self.generation_of(std::slice::from_ref(hold)))
    }

    fn generation_of(&self, holds: &[(String, i64)]) -> String {
        let mut text = String::from(if self.is_shared { "read" } else { "write" });
        for (token, _) in holds {
            text.push('\n');
            text.push_str(token);
        }
        Fingerprint::from_value(text.as_bytes()).generation("zset:")
    }
}

fn is_token(member: &[u8]) -> bool {
    let is_base64 = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    member.len() == TOKEN_BYTES
        && member
            .split_last()
            .is_some_and(|(last, rest)| *last == b'=' && rest.iter().all(is_base64))
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "A+/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
    const B: &str = "BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB=";

    /// The key has 5 s left: the server's time is 5 s before the last score.
    fn parse(members: &[(&str, &str)]) -> Option<SymfonyLock> {
        let bytes = |(member, score): &(&str, &str)| (member.as_bytes().to_vec(), score.as_bytes().to_vec());
        let members: Vec<_> = members.iter().map(bytes).collect();
        SymfonyLock::parse(&members, 5_000)
    }

    #[test]
    fn a_refresh_keeps_the_generation_and_a_new_token_changes_it() {
        let first = parse(&[(A, "1764000005000"), ("__write__", "1764000005000")]).unwrap();
        assert_eq!(
            (&first.holds[..], first.is_shared),
            (&[(A.to_owned(), 5_000)][..], false)
        );
        let refreshed = parse(&[(A, "1764000009000"), ("__write__", "1764000009000")]).unwrap();
        assert_eq!(first.generation(), refreshed.generation());
        let next = parse(&[(B, "1764000005000"), ("__write__", "1764000005000")]).unwrap();
        let shared = parse(&[(A, "1764000005000")]).unwrap();
        assert!(shared.is_shared);
        assert_ne!(first.generation(), next.generation());
        assert_ne!(first.generation(), shared.generation());
    }

    #[test]
    fn a_token_whose_time_is_over_holds_nothing() {
        // Readers: one over by a second, one with two seconds left, one with five.
        let c = B.replace('B', "C");
        let lock = parse(&[(A, "1763999999000"), (B, "1764000002000"), (&c, "1764000005000")]).unwrap();
        let alone = |token: &str| parse(&[(token, "1764000005000")]).unwrap().generation();
        assert_eq!(lock.generations().collect::<Vec<_>>(), [alone(B), alone(&c)]);
        assert_eq!(lock.holds, [(B.to_owned(), 2_000), (c, 5_000)]);
    }

    #[test]
    fn other_sorted_sets_are_no_locks() {
        // One unknown member is enough: a wrong guess would offer to break a key that is no lock.
        for members in [
            vec![],
            vec![("__write__", "1764000005000")],
            vec![("job-1", "1764000005000")],
            vec![(A, "1764000005000"), ("job-1", "1764000005000")],
            vec![(A, "0.5")],
            vec![(&A[1..], "1764000005000")],
        ] {
            assert_eq!(parse(&members), None, "{members:?}");
        }
        let held = [(A.as_bytes().to_vec(), b"1764000005000".to_vec())];
        assert_eq!(SymfonyLock::parse(&held, -1), None, "its key has a TTL");
    }
}
