//! `[notify]`: where notifications may go beside the open internet, and how long they are tried.

use std::time::Duration;

use super::limits::{NOTIFY_GIVE_UP, NOTIFY_RESEND};
use super::network::Network;
use super::reader::Section;
use super::rules;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotifyConfig {
    /// `allow`: inner networks in which receivers may be, by plain HTTP too. Default: none.
    pub allow: Vec<Network>,
    /// `resend`: how often an Alertmanager is told again what still fires. Default `1m`.
    pub resend: Duration,
    /// `give_up`: how long a message is tried before it becomes a dead letter. Default `1h`.
    pub give_up: Duration,
}

pub const RESEND_DEFAULT: Duration = Duration::from_secs(60);
pub const GIVE_UP_DEFAULT: Duration = Duration::from_secs(3600);

impl Default for NotifyConfig {
    fn default() -> Self {
        Self {
            allow: Vec::new(),
            resend: RESEND_DEFAULT,
            give_up: GIVE_UP_DEFAULT,
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
        };
        section.finish();
        config
    }
}

fn network(text: &str) -> Result<Network, String> {
    if text.ends_with("/0") {
        return Err("is every address: then nothing would be kept from them".to_owned());
    }
    text.parse::<Network>().map_err(str::to_owned)
}
