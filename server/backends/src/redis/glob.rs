//! Redis's glob, as in `SCAN MATCH` and `KEYS`: `*`, `?`, `[abc]`, `[^a-z]`, `\x`. Pure, on
//! bytes.
//!
//! Filters notifications; the server itself filters keys of a scan. A test compares the two.

/// Whether the whole `name` matches `pattern`. Time is at most `pattern × name`: only the last
/// `*` backtracks.
pub(super) fn matches(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at, mut read) = (0, 0);
    // Where to continue if the part after the last `*` does not match: after the star, with one
    // more byte consumed.
    let mut retry: Option<(usize, usize)> = None;
    loop {
        if pattern.get(at) == Some(&b'*') {
            at += 1;
            retry = Some((at, read));
            continue;
        }
        let step = match name.get(read) {
            None if at == pattern.len() => return true,
            None => return false,
            Some(byte) => match_element(&pattern[at..], *byte),
        };
        if let Some(length) = step {
            at += length;
            read += 1;
        } else if let Some((star, swallowed)) = retry {
            at = star;
            read = swallowed + 1;
            retry = Some((star, read));
        } else {
            return false;
        }
    }
}

/// Length of the first element of `pattern` if it matches `byte`.
fn match_element(pattern: &[u8], byte: u8) -> Option<usize> {
    match pattern {
        [] => None,
        [b'?', ..] => Some(1),
        [b'[', class @ ..] => class_of(class, byte).map(|length| length + 1),
        [b'\\', escaped, ..] => (*escaped == byte).then_some(2),
        [literal, ..] => (*literal == byte).then_some(1),
    }
}

/// Length of a class including its `]`, if it contains `byte`. An unterminated class extends to
/// the pattern's end.
fn class_of(class: &[u8], byte: u8) -> Option<usize> {
    let negated = class.first() == Some(&b'^');
    let mut at = usize::from(negated);
    let mut found = false;
    let length = loop {
        match &class[at..] {
            [] => break at,
            [b'\\', escaped, ..] => {
                found |= *escaped == byte;
                at += 2;
            }
            [b']', ..] => break at + 1,
            [from, b'-', to, ..] => {
                found |= (*from.min(to)..=*from.max(to)).contains(&byte);
                at += 3;
            }
            [literal, ..] => {
                found |= *literal == byte;
                at += 1;
            }
        }
    };
    (found != negated).then_some(length)
}

/// The literal beginning of a pattern: a sample key for permission checks.
pub(super) fn literal_prefix(pattern: &[u8]) -> Vec<u8> {
    let mut prefix = Vec::new();
    let mut rest = pattern;
    loop {
        match rest {
            [] | [b'*' | b'?' | b'[', ..] => return prefix,
            [b'\\', escaped, after @ ..] => {
                prefix.push(*escaped);
                rest = after;
            }
            [literal, after @ ..] => {
                prefix.push(*literal);
                rest = after;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::{RedisOptions, Throwaway};

    #[test]
    fn glob_elements_match_like_redis() {
        // One line per element and edge case; the next test compares with a server.
        for (pattern, name, expected) in [
            ("lock:*", "lock:a", true),
            ("lock:*", "lock:", true),
            ("lock:*", "lock", false),
            ("*:lock", "a:lock:b:lock", true),
            ("h?llo", "hello", true),
            ("h?llo", "hllo", false),
            ("h[ae]llo", "hallo", true),
            ("h[^e]llo", "hello", false),
            ("h[a-c]llo", "hbllo", true),
            ("h[c-a]llo", "hbllo", true),
            (r"h\*llo", "h*llo", true),
            (r"h\*llo", "hxllo", false),
            (r"[\]]", "]", true),
            ("[a", "a", true),
            (r"a\", r"a\", true),
            ("**a**", "bab", true),
            ("", "", true),
            ("", "a", false),
        ] {
            assert_eq!(
                matches(pattern.as_bytes(), name.as_bytes()),
                expected,
                "{pattern} {name}"
            );
        }
        assert!(matches(b"lock:*", b"lock:\xff\x00"));
    }

    #[tokio::test]
    async fn a_server_matches_the_same_keys() {
        // Every short pattern over the special characters with every short key, as KEYS and
        // SCAN MATCH match it.
        let server = Throwaway::redis(RedisOptions::default()).await.unwrap();
        let client = ::redis::Client::open(server.url()).unwrap();
        let mut connection = client.get_multiplexed_async_connection().await.unwrap();
        let keys = words(b"ab-]\\*", 3);
        let mut load = ::redis::pipe();
        for key in &keys {
            load.cmd("SET").arg(key.as_slice()).arg(1).ignore();
        }
        load.exec_async(&mut connection).await.unwrap();
        let mut patterns = words(b"ab*?", 4);
        patterns.extend(words(b"ab-[]^\\*", 4));
        for chunk in patterns.chunks(200) {
            let mut ask = ::redis::pipe();
            for pattern in chunk {
                ask.cmd("SCAN")
                    .arg(0)
                    .arg("MATCH")
                    .arg(pattern.as_slice())
                    .arg("COUNT")
                    .arg(100_000);
            }
            let answers: Vec<(u64, Vec<Vec<u8>>)> = ask.query_async(&mut connection).await.unwrap();
            for (pattern, (_, mut theirs)) in chunk.iter().zip(answers) {
                let mut ours: Vec<_> = keys.iter().filter(|key| matches(pattern, key)).cloned().collect();
                ours.sort();
                theirs.sort();
                assert_eq!(ours, theirs, "{:?}", String::from_utf8_lossy(pattern));
            }
        }
    }

    /// Every word of 1 to `length` letters.
    fn words(letters: &[u8], length: usize) -> Vec<Vec<u8>> {
        let mut words: Vec<Vec<u8>> = letters.iter().map(|letter| vec![*letter]).collect();
        let mut last = words.clone();
        for _ in 1..length {
            last = last
                .iter()
                .flat_map(|word| letters.iter().map(|l| [word.as_slice(), &[*l]].concat()))
                .collect();
            words.extend(last.iter().cloned());
        }
        words
    }

    #[test]
    fn a_hostile_pattern_matches_in_bounded_time() {
        // Recursive matchers take exponential time for this one.
        assert!(!matches(&b"*a".repeat(2_000), &b"a".repeat(1_999)));
    }

    #[test]
    fn the_literal_prefix_ends_at_the_first_wild_element() {
        // The sample key must itself match the pattern's beginning.
        assert_eq!(literal_prefix(br"lock\*:a?"), b"lock*:a");
        assert_eq!(literal_prefix(b"*"), b"");
    }
}
