//! Keyspace notifications as data: what the server's setting means, which channels to hear, which key a message
//! names. Pure.

use super::glob;

/// What `notify-keyspace-events` leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Setting {
    /// Nothing is sent, or nothing that tells of locks.
    Off,
    /// One channel per key: the server itself sends only what fits our patterns.
    Keyspace,
    /// One channel per event: all keys of the database arrive, and are filtered here.
    Keyevent,
    /// The account may not ask; both are subscribed, and the first message tells.
    Untold,
}

/// The value to set: keys' own channels; generic commands, strings, hashes, expiry and eviction.
pub(super) const WANTED: &str = "Kg$hxe";

impl Setting {
    pub(super) fn of(flags: &str) -> Self {
        let has = |flag| flags.contains(flag);
        let tells = has('A') || ['g', '$', 'h', 'x'].into_iter().any(has);
        match (has('K'), has('E')) {
            _ if !tells => Self::Off,
            (true, _) => Self::Keyspace,
            (false, true) => Self::Keyevent,
            (false, false) => Self::Off,
        }
    }

    /// The classes that locks need and that `flags` leaves out.
    pub(super) fn missing(flags: &str) -> String {
        let has = |flag: &char| flags.contains(*flag) || flags.contains('A');
        ['g', '$', 'h', 'x', 'e']
            .iter()
            .filter(|flag| !has(flag))
            .collect()
    }

    /// What to subscribe to, as Redis patterns.
    pub(super) fn channels(self, database: i64, patterns: &[String]) -> Vec<String> {
        let keyspace = || {
            patterns
                .iter()
                .map(|pattern| format!("{}{pattern}", keyspace_prefix(database)))
        };
        let keyevent = || format!("{}*", keyevent_prefix(database));
        match self {
            Self::Off => Vec::new(),
            Self::Keyspace => keyspace().collect(),
            Self::Keyevent => vec![keyevent()],
            Self::Untold => keyspace().chain([keyevent()]).collect(),
        }
    }
}

/// Takes the key out of a message if it may be a lock that changed.
pub(super) struct Filter {
    keyspace: String,
    keyevent: String,
    patterns: Vec<String>,
}

impl Filter {
    pub(super) fn new(database: i64, patterns: &[String]) -> Self {
        Self {
            keyspace: keyspace_prefix(database),
            keyevent: keyevent_prefix(database),
            patterns: patterns.to_vec(),
        }
    }

    pub(super) fn key<'a>(&self, channel: &'a [u8], payload: &'a [u8]) -> Option<&'a [u8]> {
        let (key, event) = match channel.strip_prefix(self.keyspace.as_bytes()) {
            Some(key) => (key, payload),
            None => (payload, channel.strip_prefix(self.keyevent.as_bytes())?),
        };
        // Someone looked for a key that is not there: nothing changed.
        let fits = event != b"keymiss"
            && self
                .patterns
                .iter()
                .any(|pattern| glob::matches(pattern.as_bytes(), key));
        fits.then_some(key)
    }
}

fn keyspace_prefix(database: i64) -> String {
    format!("__keyspace@{database}__:")
}

fn keyevent_prefix(database: i64) -> String {
    format!("__keyevent@{database}__:")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_without_channels_or_without_classes_is_off() {
        // Redis itself accepts "K" alone and then sends nothing.
        for (flags, expected) in [
            ("", Setting::Off),
            ("K", Setting::Off),
            ("Kl", Setting::Off),
            ("AK", Setting::Keyspace),
            ("AKE", Setting::Keyspace),
            ("xE", Setting::Keyevent),
        ] {
            assert_eq!(Setting::of(flags), expected, "{flags}");
        }
        assert_eq!(Setting::missing("xE"), "g$he");
        assert_eq!(Setting::missing(WANTED), "");
    }

    #[test]
    fn both_kinds_of_messages_name_the_key_and_others_nothing() {
        // A key of another database or another pattern is not ours; a key may hold any bytes.
        let filter = Filter::new(3, &["lock:*".to_owned()]);
        assert_eq!(
            filter.key(b"__keyspace@3__:lock:\xff", b"set"),
            Some(&b"lock:\xff"[..])
        );
        assert_eq!(filter.key(b"__keyevent@3__:del", b"lock:a"), Some(&b"lock:a"[..]));
        assert_eq!(filter.key(b"__keyevent@3__:keymiss", b"lock:a"), None);
        assert_eq!(filter.key(b"__keyevent@3__:del", b"cache:a"), None);
        assert_eq!(filter.key(b"__keyspace@0__:lock:a", b"set"), None);
    }
}
