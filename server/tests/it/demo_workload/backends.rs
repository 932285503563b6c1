//! The history of one lease, derived from samples of its identity and its time left.

use std::collections::BTreeSet;

use runtime::clock::Clock;

use testkit::within;

use super::MINUTE;

/// More than the grain of etcd's TTL, less than any renewal adds.
const RISE_MS: i64 = 2_000;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Sample {
    /// Which acquisition: a lease id, a value.
    pub(super) identity: String,
    pub(super) remaining_ms: i64,
}

#[derive(Debug, Default)]
struct Story {
    last: Option<Sample>,
    renewals: u32,
    renewed_at_ms: i64,
}

impl Story {
    fn record(&mut self, now_ms: i64, sample: Option<Sample>) {
        let before = self.last.as_ref().zip(sample.as_ref());
        match before.filter(|(last, now)| last.identity == now.identity) {
            None => self.renewals = 0,
            Some((last, now)) if now.remaining_ms > last.remaining_ms + RISE_MS => {
                (self.renewals, self.renewed_at_ms) = (self.renewals + 1, now_ms);
            }
            Some(_) => {}
        }
        self.last = sample;
    }
}

/// Renewed again and again by one and the same holder.
pub(super) async fn renews(what: &str, mut read: impl AsyncFnMut() -> Option<Sample>) {
    let mut story = Story::default();
    within(MINUTE, &format!("{what} renews"), async || {
        story.record(0, read().await);
        story.renewals >= 2
    })
    .await;
}

/// Renewed three times or more, then not for ten seconds, and still held.
pub(super) async fn falls_silent(what: &str, mut read: impl AsyncFnMut() -> Option<Sample>) {
    let (clock, mut story) = (Clock::start(), Story::default());
    within(MINUTE, &format!("{what} falls silent"), async || {
        let now_ms = clock.tick().0;
        story.record(now_ms, read().await);
        story.renewals >= 3 && now_ms - story.renewed_at_ms > 10_000 && story.last.is_some()
    })
    .await;
}

/// A short job's lock appears, then disappears. The order of the names is random, so the test does not wait for a
/// fixed name.
pub(super) async fn comes_and_goes(what: &str, mut there: impl AsyncFnMut() -> BTreeSet<String>) {
    let mut came = BTreeSet::new();
    within(MINUTE, &format!("{what} comes and goes"), async || {
        let now = there().await;
        let gone = came.difference(&now).next().is_some();
        came.extend(now);
        gone
    })
    .await;
}
