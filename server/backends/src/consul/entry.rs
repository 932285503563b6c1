//! Keys and sessions as Consul's API writes them. Pure.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

/// Flags that Consul's own clients set on the keys of semaphores.
pub(super) const SEMAPHORE_FLAGS: u64 = 0xe0f6_9a2b_aa41_4de0;

/// One key.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct KeyEntry<'a> {
    #[serde(borrow)]
    pub(super) key: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(super) session: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(super) value: Option<Cow<'a, str>>,
    pub(super) flags: u64,
    pub(super) lock_index: u64,
    pub(super) create_index: u64,
    pub(super) modify_index: u64,
}

/// A key that a session holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HeldKey {
    pub(super) key: String,
    pub(super) session: String,
    pub(super) lock_index: u64,
    pub(super) create_index: u64,
    pub(super) modify_index: u64,
    pub(super) flags: u64,
}

impl KeyEntry<'_> {
    pub(super) fn held(&self) -> Option<HeldKey> {
        let session = self.session.as_ref().filter(|session| !session.is_empty())?;
        Some(HeldKey {
            key: self.key.clone().into_owned(),
            session: session.clone().into_owned(),
            lock_index: self.lock_index,
            create_index: self.create_index,
            modify_index: self.modify_index,
            flags: self.flags,
        })
    }

    /// The value's bytes; empty if Consul wrote no base64.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let text = self.value.as_deref().unwrap_or_default();
        STANDARD.decode(text).unwrap_or_default()
    }
}

/// One session.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct ConsulSession {
    #[serde(rename = "ID")]
    pub(super) id: String,
    #[serde(default)]
    pub(super) name: String,
    #[serde(default)]
    pub(super) node: String,
    /// In nanoseconds.
    #[serde(default)]
    lock_delay: u64,
    #[serde(default)]
    pub(super) behavior: String,
    /// A duration as Go writes it; empty without one.
    #[serde(default, rename = "TTL")]
    pub(super) ttl: String,
    #[serde(default)]
    node_checks: Option<Vec<String>>,
    #[serde(default)]
    service_checks: Option<Vec<ServiceCheck>>,
    /// The only list of checks before 1.7.
    #[serde(default)]
    checks: Option<Vec<String>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ServiceCheck {
    #[serde(rename = "ID")]
    id: String,
}

impl ConsulSession {
    pub(super) fn lock_delay_ms(&self) -> i64 {
        i64::try_from(self.lock_delay / 1_000_000).unwrap_or(i64::MAX)
    }

    /// `None`: the session has no TTL.
    pub(super) fn ttl_ms(&self) -> Option<i64> {
        duration_ms(&self.ttl).filter(|ms| *ms > 0)
    }

    /// Health checks whose failure invalidates the session.
    pub(super) fn checks(&self) -> Vec<&str> {
        let mut checks: Vec<&str> = Vec::new();
        for list in [&self.node_checks, &self.checks].into_iter().flatten() {
            checks.extend(list.iter().map(String::as_str));
        }
        let services = self.service_checks.iter().flatten();
        checks.extend(services.map(|check| check.id.as_str()));
        checks.sort_unstable();
        checks.dedup();
        checks
    }
}

/// A duration as Go writes it, `1h2m3.5s`, in milliseconds.
fn duration_ms(text: &str) -> Option<i64> {
    let mut total = 0.0;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest[..digits].parse().ok()?;
        let tail = &rest[digits..];
        let end = tail.find(|c: char| c.is_ascii_digit()).unwrap_or(tail.len());
        let factor = match &tail[..end] {
            "h" => 3_600_000.0,
            "m" => 60_000.0,
            "s" => 1_000.0,
            "ms" => 1.0,
            _ => return None,
        };
        total += number * factor;
        rest = &tail[end..];
    }
    (!text.is_empty() && total.is_finite()).then_some(total as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_of_go_are_parsed() {
        // Each unit, several units, fractions, and texts that are no durations.
        for (text, ms) in [
            ("10s", 10_000),
            ("1h0m0s", 3_600_000),
            ("1m30s", 90_000),
            ("1.5s", 1_500),
            ("20ms", 20),
        ] {
            assert_eq!(duration_ms(text), Some(ms), "{text}");
        }
        for text in ["", "s", "10", "10x", "-1s", "1..2s"] {
            assert_eq!(duration_ms(text), None, "{text}");
        }
    }

    #[test]
    fn a_key_without_a_session_is_not_held() {
        // As Consul 1.8.7 writes a released key, a held one, and a key of a version that writes an empty session.
        let entry = |session: &str| {
            let text = format!(
                r#"{{"LockIndex":2,"Key":"a\"b","Flags":5,"Value":null{session},"CreateIndex":3,"ModifyIndex":4}}"#
            );
            let entry: KeyEntry<'_> = serde_json::from_str(&text).unwrap();
            entry.held().map(|held| (held.key, held.session, held.lock_index))
        };
        assert_eq!(entry(""), None);
        assert_eq!(entry(r#","Session":"""#), None);
        assert_eq!(
            entry(r#","Session":"s-1""#),
            Some(("a\"b".to_owned(), "s-1".to_owned(), 2))
        );
    }
}
