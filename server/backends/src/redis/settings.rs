//! Settings shared by all servers of a backend.

use std::time::Duration;

use domain::names::Resource;

use super::glob;
use super::rows::Rows;
use config::BackendConfig;
use config::redis::{RedisConfig, RedisWake};
use runtime::clock::Clock;

pub(super) struct Settings {
    pub(super) clock: Clock,
    pub(super) rows: Rows,
    pub(super) patterns: Vec<String>,
    pub(super) poll_interval: Duration,
    pub(super) timeout: Duration,
    /// Library whose waiters a forced unlock wakes.
    pub(super) wake: RedisWake,
}

impl Settings {
    pub(super) fn new(config: &BackendConfig, redis: &RedisConfig, clock: Clock) -> Self {
        let mut patterns = redis.patterns.clone();
        patterns.retain(|pattern| !pattern.is_empty());
        if patterns.iter().any(|pattern| pattern == "*") {
            patterns = vec!["*".to_owned()];
        }
        Self {
            clock,
            rows: Rows::new(redis.value_display),
            patterns,
            poll_interval: config.poll_interval,
            timeout: config.timeout,
            wake: redis.wake,
        }
    }

    /// Whether the patterns include it. Names come from URLs too: no other key is ever read for
    /// them.
    pub(super) fn is_ours(&self, resource: &Resource) -> bool {
        self.fits(resource.as_bytes())
    }

    pub(super) fn fits(&self, key: &[u8]) -> bool {
        self.patterns
            .iter()
            .any(|pattern| glob::matches(pattern.as_bytes(), key))
    }
}
