//! Keyspace notifications: meaning of the server's setting, channels to subscribe, key of a
//! message. Pure.

use super::glob;

/// Meaning of `notify-keyspace-events`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NotificationSetting {
    /// No notifications, or none about locks.
    Off,
    /// One channel per key: the server sends only keys that match our patterns.
    Keyspace,
    /// One channel per event: all keys of the database arrive, and are filtered here.
    Keyevent,
    /// The account may not read the setting; both are subscribed, and the first message
    /// decides.
    Unknown,
}

/// The recommended value: keyspace channels; generic commands, strings, hashes, expiry and
/// eviction.
pub(super) const RECOMMENDED_FLAGS: &str = "Kg$hxe";

impl NotificationSetting {
    pub(super) fn parse(flags: &str) -> Self {
        let has = |flag| flags.contains(flag);
        let has_any = has('A') || ['g', '$', 'h', 'x'].into_iter().any(has);
        match (has('K'), has('E')) {
            _ if !has_any => Self::Off,
            (true, _) => Self::Keyspace,
            (false, true) => Self::Keyevent,
            (false, false) => Self::Off,
        }
    }

    /// Required classes that `flags` lacks.
    pub(super) fn missing_flags(flags: &str) -> String {
        let has = |flag: &char| flags.contains(*flag) || flags.contains('A');
        ['g', '$', 'h', 'x', 'e']
            .iter()
            .filter(|flag| !has(flag))
            .collect()
    }

    /// Patterns to subscribe.
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
            Self::Unknown => keyspace().chain([keyevent()]).collect(),
        }
    }
}

/// Extracts the key from a message if it may be a changed lock.
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
        // A lookup of a missing key: nothing changed.
        let is_change = event != b"keymiss"
            && self
                .patterns
                .iter()
                .any(|pattern| glob::matches(pattern.as_bytes(), key));
        is_change.then_some(key)
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
        // Redis accepts "K" alone and then sends nothing.
        for (flags, expected) in [
            ("", NotificationSetting::Off),
            ("K", NotificationSetting::Off),
            ("Kl", NotificationSetting::Off),
            ("AK", NotificationSetting::Keyspace),
            ("AKE", NotificationSetting::Keyspace),
            ("xE", NotificationSetting::Keyevent),
        ] {
            assert_eq!(NotificationSetting::parse(flags), expected, "{flags}");
        }
        assert_eq!(NotificationSetting::missing_flags("xE"), "g$he");
        assert_eq!(NotificationSetting::missing_flags(RECOMMENDED_FLAGS), "");
    }

    #[test]
    fn both_kinds_of_messages_name_the_key_and_others_nothing() {
        // A key of another database or pattern is ignored; a key may contain any bytes.
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
