//! Sliding window of one prefix: entries counted per second, with their sums. Live rules and
//! previews add to it in the same order and evaluate the same sums.

use std::collections::VecDeque;

use super::condition_kind::ConditionKind;
use super::holdings::Entry;
use super::limits::EVALUATE_EVERY_MS;
use super::lock_conditions::share;
use super::rule::Condition;
use super::sorted_values::SortedValues;
use super::usual_hold_time::HoldLength;

/// Window of conditions that have no window parameter, in milliseconds.
const WINDOW_MS: i64 = 300_000;
/// Steps in which entries leave a window. Windows up to this many seconds are exact to the
/// second.
const STEPS_MAX: i64 = 1_440;
/// Different entries of one window; beyond that the oldest are dropped. 24 bytes each, and 16
/// for their values.
const ENTRIES_MAX: usize = 100_000;
/// Entries of one step that are compared for an equal one.
const COMPARED: usize = 64;

/// Length of the window in milliseconds: whole seconds, as evaluations are.
pub(super) fn window_ms(condition: &Condition) -> i64 {
    let ms = condition.value("window").unwrap_or(WINDOW_MS);
    round_up(ms, EVALUATE_EVERY_MS)
}

const fn round_up(ms: i64, step_ms: i64) -> i64 {
    ms + (-ms).rem_euclid(step_ms)
}

#[derive(Debug, Clone)]
pub(super) struct PrefixWindow {
    kind: ConditionKind,
    window_ms: i64,
    /// Entries of the same step leave the window together.
    step_ms: i64,
    /// Oldest first.
    entries: VecDeque<Counted>,
    sums: Sums,
    /// End of the step of the newest entry that was dropped for lack of room.
    dropped_at: Option<i64>,
}

/// Equal entries of one step.
#[derive(Debug, Clone, Copy)]
struct Counted {
    /// End of the step.
    at: i64,
    entry: Entry,
    times: u32,
}

/// Sums over one prefix in a window.
#[derive(Debug, Clone, Default)]
pub(super) struct Sums {
    pub(super) acquired: i64,
    pub(super) contended: i64,
    pub(super) lost: i64,
    /// Waits in milliseconds, or hold times as thousandths of the TTL.
    pub(super) values: SortedValues,
    /// Waits or holds of uncertain length, which have no value.
    pub(super) uncertain: i64,
    /// Of the newest hold.
    pub(super) ttl_ms: i64,
}

/// What an entry adds to the [`Sums`] of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Contribution {
    Acquired,
    Contended,
    Lost,
    Value(i64),
    Uncertain,
}

impl Contribution {
    /// `None`: the condition does not use it.
    fn new(kind: ConditionKind, entry: Entry) -> Option<Self> {
        let value = |length: HoldLength, value: &dyn Fn(i64) -> i64| {
            Some(
                length
                    .known_ms()
                    .map_or(Self::Uncertain, |ms| Self::Value(value(ms))),
            )
        };
        match (kind, entry) {
            (ConditionKind::Contention, Entry::Acquired) => Some(Self::Acquired),
            (ConditionKind::Contention, Entry::Contended) => Some(Self::Contended),
            (ConditionKind::LeaseLosses, Entry::Lost) => Some(Self::Lost),
            (ConditionKind::WaitP95, Entry::Waited(length)) => value(length, &|ms| ms),
            // Only holds without a renewal: a holder that renews may work for longer than its
            // TTL.
            (ConditionKind::HoldNearTtl, Entry::Held { length, ttl_ms }) => {
                value(length, &|ms| share(ms, ttl_ms))
            }
            _ => None,
        }
    }
}

impl PrefixWindow {
    pub(super) fn new(condition: &Condition) -> Self {
        let window_ms = window_ms(condition);
        Self {
            kind: condition.kind,
            window_ms,
            step_ms: round_up((window_ms / STEPS_MAX).max(1), EVALUATE_EVERY_MS),
            entries: VecDeque::new(),
            sums: Sums::default(),
            dropped_at: None,
        }
    }

    pub(super) const fn window_ms(&self) -> i64 {
        self.window_ms
    }

    /// Whether the condition counts such an entry.
    pub(super) fn accepts(&self, entry: Entry) -> bool {
        Contribution::new(self.kind, entry).is_some()
    }

    /// Adds an entry that the condition [`accepts`](Self::accepts).
    pub(super) fn add(&mut self, at: i64, entry: Entry) {
        self.count(entry, 1);
        if let Entry::Held { ttl_ms, .. } = entry {
            self.sums.ttl_ms = ttl_ms;
        }
        let newest = self.entries.back().map_or(i64::MIN, |last| last.at);
        let at = round_up(at, self.step_ms).max(newest);
        let same_step = self
            .entries
            .iter_mut()
            .rev()
            .take_while(|counted| counted.at == at);
        if let Some(equal) = same_step.take(COMPARED).find(|counted| counted.entry == entry) {
            equal.times = equal.times.saturating_add(1);
            return;
        }
        self.entries.push_back(Counted { at, entry, times: 1 });
        if self.entries.len() > ENTRIES_MAX {
            self.dropped_at = self.entries.front().map(|oldest| oldest.at);
            self.remove_oldest();
        }
    }

    /// Removes entries that have left the window.
    pub(super) fn slide(&mut self, now: i64) {
        while self
            .entries
            .front()
            .is_some_and(|oldest| oldest.at <= now - self.window_ms)
        {
            self.remove_oldest();
        }
        self.dropped_at = self.dropped_at.filter(|at| *at > now - self.window_ms);
    }

    fn remove_oldest(&mut self) {
        if let Some(Counted { entry, times, .. }) = self.entries.pop_front() {
            self.count(entry, -i64::from(times));
        }
    }

    fn count(&mut self, entry: Entry, times: i64) {
        let sums = &mut self.sums;
        match Contribution::new(self.kind, entry) {
            Some(Contribution::Acquired) => sums.acquired += times,
            Some(Contribution::Contended) => sums.contended += times,
            Some(Contribution::Lost) => sums.lost += times,
            Some(Contribution::Uncertain) => sums.uncertain += times,
            Some(Contribution::Value(value)) if times > 0 => sums.values.insert(value),
            Some(Contribution::Value(value)) => {
                let times = u32::try_from(times.unsigned_abs()).unwrap_or(u32::MAX);
                sums.values.remove(value, times);
            }
            None => {}
        }
    }

    /// When the oldest entry leaves the window.
    pub(super) fn next_change(&self) -> Option<i64> {
        self.entries.front().map(|oldest| oldest.at + self.window_ms)
    }

    pub(super) const fn sums(&self) -> &Sums {
        &self.sums
    }

    /// There were more entries in the window than are stored.
    pub(super) const fn is_cut(&self) -> bool {
        self.dropped_at.is_some()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}
