//! `[notify]`: allowed networks, retries and encryption of notifications.

use std::time::Duration;

use secrecy::SecretString;

use super::limits::{NOTIFY_GROUP_INTERVAL, NOTIFY_GROWTH_FACTOR, NOTIFY_MAX_RETRY_TIME, NOTIFY_RESEND};
use super::network::Network;
use super::reader::Section;
use super::{secrets, value_parsers};

#[derive(Debug, Clone)]
pub struct NotifyConfig {
    /// `allowed_networks`: internal networks with receivers, also by plain HTTP. Default: none.
    pub allowed_networks: Vec<Network>,
    /// `resend_interval`: interval at which firing alerts are resent to an Alertmanager. Default `1m`.
    pub resend_interval: Duration,
    /// `max_retry_time`: how long a message is retried before it becomes a dead letter. Default `1h`.
    pub max_retry_time: Duration,
    /// `growth_factor`: a group is notified again when it has this many times the alerts of its last message.
    /// Default 2.
    pub growth_factor: u32,
    /// `group_interval`: time between two messages about changes of one group. Default `10m`; 0: no pause.
    pub group_interval: Duration,
    /// `secret_key` or `secret_key_file`: encrypts receivers' secrets in the store. Default with SQLite: a file next
    /// to the store, created at the first start.
    pub secret_key: Option<SecretString>,
    /// `previous_secret_key` or `previous_secret_key_file`: decrypts secrets of an earlier key, which are then
    /// encrypted again.
    pub previous_secret_key: Option<SecretString>,
}

pub const KEY_BYTES: usize = 32;
pub const RESEND_DEFAULT: Duration = Duration::from_secs(60);
pub const MAX_RETRY_TIME_DEFAULT: Duration = Duration::from_secs(3600);
pub const GROWTH_FACTOR_DEFAULT: u32 = 2;
pub const GROUP_INTERVAL_DEFAULT: Duration = Duration::from_secs(600);

impl Default for NotifyConfig {
    fn default() -> Self {
        Self {
            allowed_networks: Vec::new(),
            resend_interval: RESEND_DEFAULT,
            max_retry_time: MAX_RETRY_TIME_DEFAULT,
            growth_factor: GROWTH_FACTOR_DEFAULT,
            group_interval: GROUP_INTERVAL_DEFAULT,
            secret_key: None,
            previous_secret_key: None,
        }
    }
}

impl NotifyConfig {
    pub(super) fn read(mut section: Section<'_>) -> Self {
        let allow = section.list(
            "allowed_networks",
            Some(&[]),
            "networks in which receivers may be, such as allowed_networks = [\"10.0.0.0/8\", \"127.0.0.1/32\"]",
            &|text| network(text).map(drop),
        );
        let allow = allow.unwrap_or_default();
        let config = Self {
            allowed_networks: allow.iter().filter_map(|text| network(text).ok()).collect(),
            resend_interval: section.or(
                "resend_interval",
                RESEND_DEFAULT,
                &value_parsers::duration(&NOTIFY_RESEND),
            ),
            max_retry_time: section.or(
                "max_retry_time",
                MAX_RETRY_TIME_DEFAULT,
                &value_parsers::duration(&NOTIFY_MAX_RETRY_TIME),
            ),
            growth_factor: section.or(
                "growth_factor",
                GROWTH_FACTOR_DEFAULT,
                &value_parsers::integer_within(&NOTIFY_GROWTH_FACTOR),
            ),
            group_interval: section.or(
                "group_interval",
                GROUP_INTERVAL_DEFAULT,
                &value_parsers::duration(&NOTIFY_GROUP_INTERVAL),
            ),
            secret_key: key(&mut section, "secret_key", "secret_key_file"),
            previous_secret_key: key(&mut section, "previous_secret_key", "previous_secret_key_file"),
        };
        section.finish();
        config
    }
}

fn key(section: &mut Section<'_>, name: &'static str, file: &'static str) -> Option<SecretString> {
    let expected = "64 hex digits, as printed by openssl rand -hex 32, or the path of a file that holds them";
    section.secret(name, file, expected, &check_key, secrets::hidden)
}

fn network(text: &str) -> Result<Network, String> {
    if text.ends_with("/0") {
        return Err("covers every address: receivers could then be anywhere in your network".to_owned());
    }
    text.parse::<Network>().map_err(str::to_owned)
}

/// The 32 bytes of a key of 64 hex digits.
pub fn key_bytes(text: &str) -> Option<[u8; KEY_BYTES]> {
    let text = text.as_bytes();
    let mut bytes = [0; KEY_BYTES];
    if text.len() != 2 * KEY_BYTES {
        return None;
    }
    for (byte, digits) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        let digit = |digit: u8| char::from(digit).to_digit(16);
        let (high, low) = (digit(*digits.first()?)?, digit(*digits.get(1)?)?);
        *byte = u8::try_from(high * 16 + low).ok()?;
    }
    Some(bytes)
}

/// # Errors
/// What is wrong, without quoting the value.
pub fn check_key(text: &str) -> Result<(), String> {
    match key_bytes(text) {
        Some(bytes) if bytes.iter().all(|byte| *byte == bytes[0]) => Err("repeats a single byte".to_owned()),
        Some(_) => Ok(()),
        None => Err("is not 64 hex digits".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_key_is_64_random_hex_digits() {
        // Too short, too long, other letters, and repeated bytes.
        assert!(check_key(&"0a".repeat(31)).is_err() && check_key(&"0aF1".repeat(16)).is_ok());
        for bad in [
            "",
            "abc",
            &"0".repeat(64),
            &"g".repeat(64),
            &"é".repeat(32),
            &"0a".repeat(33),
        ] {
            assert!(check_key(bad).is_err(), "{bad}");
        }
    }
}
