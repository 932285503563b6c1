//! Counts without events, by second: refused acquires by template, failed renewals, failed releases. Read by alert
//! rules and previews; `lease_signals` has one row per minute.
//!
//! **Invariant:** a row carries the id of the process that wrote it and is replaced only by that process with larger
//! values, so counts of several replicas add up, and a killed server's counts remain.

mod store;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use lease::LeaseMetrics;

pub use store::read;

/// Length of a row in milliseconds.
const MINUTE_MS: i64 = 60_000;
/// How long rows stay in memory because a clock change may still add to them, in milliseconds.
const KEPT_MS: i64 = 2 * MINUTE_MS;

domain::wire_enum! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum SignalKind {
        AcquireRefused = "acquire_refused",
        RenewalFailed = "renewal_failed",
        ReleaseFailed = "release_failed",
    }
}

/// A count of one second by one server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signal {
    /// Start of the second in milliseconds since 1970.
    pub at: i64,
    pub kind: SignalKind,
    /// Template of the names; empty for the lease service as a whole.
    pub prefix: Arc<str>,
    pub times: u64,
}

type RowKey = (i64, SignalKind, Arc<str>);

#[derive(Debug, Default)]
struct Minute {
    /// Counts by second of the minute.
    seconds: BTreeMap<u8, u64>,
    is_dirty: bool,
}

/// Rows of this process that may still grow or are not yet written.
#[derive(Debug)]
pub(super) struct Signals {
    process_id: String,
    minutes: HashMap<RowKey, Minute>,
    /// Failed renewals and releases at the last round.
    failures: [u64; 2],
}

impl Signals {
    pub(super) fn new(metrics: &LeaseMetrics) -> Self {
        Self {
            process_id: runtime::random::short_id(),
            minutes: HashMap::new(),
            failures: failures(metrics),
        }
    }

    /// Adds refused acquires by template, and failures since the last round.
    pub(super) fn count(&mut self, refused: HashMap<Arc<str>, u64>, metrics: &LeaseMetrics, now_ms: i64) {
        for (template, times) in refused {
            self.add(SignalKind::AcquireRefused, template, now_ms, times);
        }
        let now = failures(metrics);
        let before = std::mem::replace(&mut self.failures, now);
        for (index, kind) in [SignalKind::RenewalFailed, SignalKind::ReleaseFailed]
            .into_iter()
            .enumerate()
        {
            self.add(kind, "".into(), now_ms, now[index].saturating_sub(before[index]));
        }
    }

    fn add(&mut self, kind: SignalKind, prefix: Arc<str>, at_ms: i64, times: u64) {
        if times == 0 {
            return;
        }
        let offset_ms = at_ms.rem_euclid(MINUTE_MS);
        let minute = self.minutes.entry((at_ms - offset_ms, kind, prefix)).or_default();
        let second = u8::try_from(offset_ms / 1_000).unwrap_or(0);
        *minute.seconds.entry(second).or_default() += times;
        minute.is_dirty = true;
    }

    pub(super) fn is_dirty(&self) -> bool {
        self.minutes.values().any(|minute| minute.is_dirty)
    }

    /// Call after the commit of [`write`](Self::write).
    pub(super) fn mark_written(&mut self, now_ms: i64) {
        self.minutes.retain(|(at, ..), minute| {
            minute.is_dirty = false;
            at + KEPT_MS > now_ms
        });
    }
}

fn failures(metrics: &LeaseMetrics) -> [u64; 2] {
    [metrics.losses.read(), metrics.release_failures.read()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_dated_to_their_second_and_kept_until_written() {
        let metrics = LeaseMetrics::default();
        let mut signals = Signals::new(&metrics);
        let refused = |times| HashMap::from([(Arc::from("job:{n}"), times)]);
        signals.count(refused(2), &metrics, 61_900);
        metrics.losses.add(3);
        signals.count(refused(1), &metrics, 62_000);
        let key = |kind, prefix: &str| (60_000, kind, Arc::from(prefix));
        let of = |signals: &Signals, key: &RowKey| signals.minutes[key].seconds.clone();
        let refused = of(&signals, &key(SignalKind::AcquireRefused, "job:{n}"));
        assert_eq!(refused, BTreeMap::from([(1, 2), (2, 1)]));
        assert_eq!(
            of(&signals, &key(SignalKind::RenewalFailed, "")),
            BTreeMap::from([(2, 3)])
        );
        assert!(signals.is_dirty());
        signals.mark_written(62_000);
        assert!(
            !signals.is_dirty() && signals.minutes.len() == 2,
            "they may still grow"
        );
        signals.mark_written(60_000 + KEPT_MS);
        assert!(signals.minutes.is_empty());
    }
}
