//! `[lease]`: limits of the built-in lease service.

use std::time::Duration;

use super::lease_store::LeaseStores;
use super::limits::{ENDED_RETENTION, LOCK_DELAY, MAX_LIFETIME, MAX_TTL, RELEASED_RETENTION};
use super::reader::Section;
use super::value_parsers;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseConfig {
    /// `max_ttl`: longest TTL of a request. Default `1h`.
    pub max_ttl: Duration,
    /// `max_lifetime`: longest lifetime of one lease with renewals. Default `24h`; at least `max_ttl`.
    pub max_lifetime: Duration,
    /// `lock_delay`: time after a forced unlock during which the resource cannot be acquired. Default `0ms`.
    pub lock_delay: Duration,
    /// `released_retention`: how long a lease is known after its owner released it. Default `1h`.
    pub released_retention: Duration,
    /// `ended_retention`: how long a lease is known after it expired or was unlocked. Default `24h`.
    pub ended_retention: Duration,
    /// `store`, with `user`, `password`, `ca_file`, `cert_file`, `key_file`, `server_name` and `max_clock_skew`: a Postgres
    /// database or an etcd cluster for the leases, or a list of them. Default: they are in the server's `store`.
    pub store: Option<LeaseStores>,
}

pub const MAX_TTL_DEFAULT: Duration = Duration::from_secs(3600);
pub const MAX_LIFETIME_DEFAULT: Duration = Duration::from_secs(24 * 3600);
pub const LOCK_DELAY_DEFAULT: Duration = Duration::ZERO;
pub const RELEASED_RETENTION_DEFAULT: Duration = Duration::from_secs(3600);
pub const ENDED_RETENTION_DEFAULT: Duration = Duration::from_secs(24 * 3600);

impl Default for LeaseConfig {
    fn default() -> Self {
        Self {
            max_ttl: MAX_TTL_DEFAULT,
            max_lifetime: MAX_LIFETIME_DEFAULT,
            lock_delay: LOCK_DELAY_DEFAULT,
            released_retention: RELEASED_RETENTION_DEFAULT,
            ended_retention: ENDED_RETENTION_DEFAULT,
            store: None,
        }
    }
}

impl LeaseConfig {
    pub(super) fn read(mut section: Section<'_>) -> Self {
        let max_ttl = section.or("max_ttl", MAX_TTL_DEFAULT, &value_parsers::duration(&MAX_TTL));
        let max_lifetime = section.or(
            "max_lifetime",
            MAX_LIFETIME_DEFAULT,
            &value_parsers::duration(&MAX_LIFETIME),
        );
        if max_lifetime < max_ttl {
            let message = format!(
                "is {}, shorter than max_ttl ({})",
                value_parsers::span(&max_lifetime),
                value_parsers::span(&max_ttl)
            );
            let key = if section.has("max_lifetime") {
                "max_lifetime"
            } else {
                "max_ttl"
            };
            let origin = section.place_of(key);
            section.error_at(
                "max_lifetime",
                &origin,
                message,
                "Raise max_lifetime or lower max_ttl.".to_owned(),
            );
        }
        let lock_delay = section.or(
            "lock_delay",
            LOCK_DELAY_DEFAULT,
            &value_parsers::duration(&LOCK_DELAY),
        );
        let released_retention = section.or(
            "released_retention",
            RELEASED_RETENTION_DEFAULT,
            &value_parsers::duration(&RELEASED_RETENTION),
        );
        let ended_retention = section.or(
            "ended_retention",
            ENDED_RETENTION_DEFAULT,
            &value_parsers::duration(&ENDED_RETENTION),
        );
        let store = LeaseStores::read(&mut section);
        section.finish();
        Self {
            max_ttl,
            max_lifetime,
            lock_delay,
            released_retention,
            ended_retention,
            store,
        }
    }
}
