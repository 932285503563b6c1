//! Checks that the keys of a Redis backend fit its `mode`: number of addresses, accounts, names.
//!
//! No address is repeated in a message: it may contain a password.

use std::collections::BTreeMap;

use secrecy::ExposeSecret;
use url::Url;

use super::{RedisConfig, RedisMode, RedisWake};
use crate::provenance::Origin;
use crate::reader::Section;

/// Fewest nodes of a Redlock: with fewer, losing one loses the quorum.
const REDLOCK_NODES_MIN: usize = 3;

impl RedisConfig {
    pub(super) fn check_topology(&self, section: &Section<'_>) {
        let count = self.urls.len();
        match self.mode {
            RedisMode::Standalone if count > 1 => error(
                section,
                urls_key(section),
                format!("has {count} addresses, but mode is \"standalone\""),
                "Write one address, or set mode to \"cluster\", \"sentinel\" or \"redlock\".",
            ),
            RedisMode::Redlock if count < REDLOCK_NODES_MIN || count.is_multiple_of(2) => error(
                section,
                urls_key(section),
                format!("has {count} nodes, but mode is \"redlock\""),
                "Name all nodes of the Redlock: an odd number, at least 3, of which more than half are a quorum.",
            ),
            _ => {}
        }
        self.check_wake(section);
        if let Some((first, second)) = self.repeated() {
            error(
                section,
                urls_key(section),
                format!("values {first} and {second} name the same server"),
                "Name each server once.",
            );
        }
        if self.mode == RedisMode::Cluster && self.parsed().any(|url| !matches!(url.path(), "" | "/" | "/0"))
        {
            error(
                section,
                urls_key(section),
                "names a database, but mode is \"cluster\"".to_owned(),
                "Remove the path: a cluster has database 0 only.",
            );
        }
    }

    /// The waiters' signal is in a key of its own, which a cluster may store on another node.
    fn check_wake(&self, section: &Section<'_>) {
        let is_several = matches!(self.mode, RedisMode::Cluster | RedisMode::Redlock);
        if self.wake != RedisWake::None && is_several {
            error(
                section,
                "wake",
                format!("is set, but mode is {:?}", self.mode.as_str()),
                "Remove it: these libraries use one server.",
            );
        }
    }

    pub(super) fn check_accounts(&self, section: &Section<'_>) {
        if self.unlock_password.is_some() && self.unlock_user.is_none() {
            section.report_missing("unlock_user", "Name the account that the password belongs to.");
        }
        if self.unlock_url.is_some() && self.unlock_user.is_some() {
            error(
                section,
                "unlock_user",
                "unlock_url is given too".to_owned(),
                "Remove one of unlock_url and unlock_user.",
            );
        }
        if self.unlock_url.is_some() && self.mode != RedisMode::Standalone {
            let key = present_key(section, &["unlock_url", "unlock_url_file"]);
            error(
                section,
                key,
                format!("names one server, but mode is {:?}", self.mode.as_str()),
                "Write unlock_user and unlock_password instead, the account for forced unlocks on every data node.",
            );
        }
        if self.mode == RedisMode::Sentinel {
            self.check_sentinel(section);
        } else {
            let keys = [
                "master_name",
                "sentinel_user",
                "sentinel_password",
                "sentinel_password_file",
            ];
            for key in keys.into_iter().filter(|key| section.has(key)) {
                error(
                    section,
                    key,
                    format!("is set, but mode is {:?}", self.mode.as_str()),
                    "Remove it, or set mode = \"sentinel\".",
                );
            }
        }
    }

    fn check_sentinel(&self, section: &Section<'_>) {
        if self.master_name.is_none() && !section.has("master_name") {
            section.report_missing(
                "master_name",
                "Write the name that the Sentinels monitor, such as master_name = \"mymaster\".",
            );
        }
        if self
            .parsed()
            .any(|url| !url.username().is_empty() || url.password().is_some())
        {
            error(
                section,
                urls_key(section),
                "an address has a user or a password, but mode is \"sentinel\"".to_owned(),
                "Remove it from the address. Write user and password for the data nodes, and sentinel_user and \
                 sentinel_password for the Sentinels.",
            );
        }
    }

    fn parsed(&self) -> impl Iterator<Item = Url> {
        self.urls
            .iter()
            .filter_map(|url| Url::parse(url.expose_secret()).ok())
    }

    /// Positions of two addresses with the same host and port, from 1.
    fn repeated(&self) -> Option<(usize, usize)> {
        let mut seen = BTreeMap::new();
        for (at, url) in self.parsed().enumerate() {
            let server = (url.host_str().map(str::to_lowercase), url.port().unwrap_or(6379));
            if let Some(first) = seen.insert(server, at + 1) {
                return Some((first, at + 1));
            }
        }
        None
    }
}

fn urls_key(section: &Section<'_>) -> &'static str {
    present_key(section, &["urls", "urls_file"])
}

fn present_key(section: &Section<'_>, keys: &[&'static str; 2]) -> &'static str {
    keys.iter()
        .copied()
        .find(|key| section.has(key))
        .unwrap_or(keys[0])
}

fn error(section: &Section<'_>, key: &str, message: String, remedy: &str) {
    let origin: Origin = section.place_of(key);
    section.error_at(key, &origin, message, remedy.to_owned());
}
