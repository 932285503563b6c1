//! `[notify]`: where notifications may go beside the open internet, and how long they are tried.

use std::time::Duration;

use secrecy::SecretString;

use super::limits::{NOTIFY_GIVE_UP, NOTIFY_GROWTH_FACTOR, NOTIFY_RESEND};
use super::network::Network;
use super::reader::Section;
use super::{rules, secrets};

#[derive(Debug, Clone)]
pub struct NotifyConfig {
    /// `allow`: inner networks in which receivers may be, by plain HTTP too. Default: none.
    pub allow: Vec<Network>,
    /// `resend`: how often an Alertmanager is told again what still fires. Default `1m`.
    pub resend: Duration,
    /// `give_up`: how long a message is tried before it becomes a dead letter. Default `1h`.
    pub give_up: Duration,
    /// `growth_factor`: a group is notified again once it has so many times the alerts of its last message. Default 2.
    pub growth_factor: u32,
    /// `secret_key` or `secret_key_file`: seals what opens receivers in the store. Default with SQLite: a file beside the
    /// store, made at the first start.
    pub secret_key: Option<SecretString>,
    /// `secret_key_before` or `secret_key_before_file`: opens what an earlier key sealed, which is then sealed anew.
    pub secret_key_before: Option<SecretString>,
}

pub(crate) const KEY_BYTES: usize = 32;
pub const RESEND_DEFAULT: Duration = Duration::from_secs(60);
pub const GIVE_UP_DEFAULT: Duration = Duration::from_secs(3600);
pub const GROWTH_FACTOR_DEFAULT: u32 = 2;

impl Default for NotifyConfig {
    fn default() -> Self {
        Self {
            allow: Vec::new(),
            resend: RESEND_DEFAULT,
            give_up: GIVE_UP_DEFAULT,
            growth_factor: GROWTH_FACTOR_DEFAULT,
            secret_key: None,
            secret_key_before: None,
        }
    }
}

impl NotifyConfig {
    pub(super) fn read(mut section: Section<'_>) -> Self {
        let allow = section.list(
            "allow",
            Some(&[]),
            "networks in which receivers may be, such as allow = [\"10.0.0.0/8\", \"127.0.0.1/32\"]",
            &|text| network(text).map(drop),
        );
        let allow = allow.unwrap_or_default();
        let config = Self {
            allow: allow.iter().filter_map(|text| network(text).ok()).collect(),
            resend: section.or("resend", RESEND_DEFAULT, &rules::duration(&NOTIFY_RESEND)),
            give_up: section.or("give_up", GIVE_UP_DEFAULT, &rules::duration(&NOTIFY_GIVE_UP)),
            growth_factor: section.or(
                "growth_factor",
                GROWTH_FACTOR_DEFAULT,
                &rules::integer_within(&NOTIFY_GROWTH_FACTOR),
            ),
            secret_key: key(&mut section, "secret_key", "secret_key_file"),
            secret_key_before: key(&mut section, "secret_key_before", "secret_key_before_file"),
        };
        section.finish();
        config
    }
}

fn key(section: &mut Section<'_>, name: &'static str, file: &'static str) -> Option<SecretString> {
    let fits = "64 hex digits, as openssl rand -hex 32 makes them, or the path of a file that holds them";
    section.secret(name, file, fits, &check_key, secrets::hidden)
}

fn network(text: &str) -> Result<Network, String> {
    if text.ends_with("/0") {
        return Err("is every address: then nothing would be kept from them".to_owned());
    }
    text.parse::<Network>().map_err(str::to_owned)
}

/// The 32 bytes of a key written as 64 hex digits.
pub(crate) fn key_bytes(text: &str) -> Option<[u8; KEY_BYTES]> {
    let text = text.as_bytes();
    let mut bytes = [0; KEY_BYTES];
    if text.len() != 2 * KEY_BYTES {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        let digit = |digit: u8| char::from(digit).to_digit(16);
        let (high, low) = (digit(*pair.first()?)?, digit(*pair.get(1)?)?);
        *byte = u8::try_from(high * 16 + low).ok()?;
    }
    Some(bytes)
}

/// # Errors
/// What it is instead of a key, without quoting it.
pub(crate) fn check_key(text: &str) -> Result<(), String> {
    match key_bytes(text) {
        Some(bytes) if bytes.iter().all(|byte| *byte == bytes[0]) => {
            Err("is one byte again and again".to_owned())
        }
        Some(_) => Ok(()),
        None => Err("is not 64 hex digits".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_sixty_four_hex_digits_that_somebody_drew() {
        // Short, long, other letters, and what is written to get past.
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
