//! Records within the longest window of any rule: forced unlocks, fencing rejections, refused acquires, failed
//! calls. Read incrementally and grouped by second, so that a flood on one lock does not hide another.

use domain::alerts::{ConditionKind, CountedEvent, Counts, RefusedAcquire, Rule};
use domain::lease::StoreTime;
use domain::names::BackendName;

use crate::alerts::event_source::Ledger;
use crate::history::signals::{Signal, SignalKind};
use lease::{RejectionPosition, RejectionSpan};

/// A transaction may commit a lower id later: younger records are read again, in milliseconds.
const SETTLES_MS: i64 = 10_000;
/// Settled rejections in memory: the newest. Clients choose the names in them.
const REJECTIONS_MAX: usize = 50_000;
/// How long after its start a row of signals can grow, in milliseconds; longer if a server could not write.
const SIGNALS_GROW_MS: i64 = 180_000;
const SIGNALS_REREAD_MS: i64 = 60_000;
/// Window of rules without their own, in milliseconds.
const WINDOW_MS: i64 = 300_000;

#[derive(Default)]
pub(super) struct CountedEvents {
    /// How far back rejections were read, and the position up to which they are final.
    settled: Option<(i64, RejectionPosition)>,
    rejections: Vec<CountedEvent>,
    /// Rejections after that position.
    rejections_young: Vec<CountedEvent>,
    unlocks: Vec<CountedEvent>,
    failures: Vec<CountedEvent>,
    /// How far back signals were read, and when all of them were.
    signals: Option<(i64, i64)>,
}

/// Refused acquires since a time, ordered by time.
pub(super) struct RefusedRead {
    pub(super) since: i64,
    pub(super) refused: Vec<RefusedAcquire>,
}

impl CountedEvents {
    /// Ordered by time.
    pub(super) fn in_order(&self) -> Vec<&CountedEvent> {
        let rejections = self.rejections.iter().chain(&self.rejections_young);
        let mut all: Vec<&CountedEvent> = rejections.chain(&self.unlocks).chain(&self.failures).collect();
        all.sort_by_key(|record| record.at);
        all
    }

    /// Forced unlocks and fencing rejections.
    pub(super) async fn read_records(
        &mut self,
        ledger: &dyn Ledger,
        rules: &[Rule],
        now: i64,
    ) -> Result<(), sqlx::Error> {
        let window_ms = longest_window(rules, |kind| {
            matches!(
                kind,
                ConditionKind::FencingRejections | ConditionKind::ForcedUnlocks | ConditionKind::BreakGlass
            )
        });
        let Some(window_ms) = window_ms else { return Ok(()) };
        self.unlocks = ledger.unlocks(now - window_ms).await?;
        let known = self
            .settled
            .clone()
            .filter(|(reach_ms, _)| *reach_ms >= window_ms);
        let after = match &known {
            Some((_, position)) if position.is_complete() => position.clone(),
            // A shard did not answer before: where it does now, its window is read from the beginning.
            Some((_, position)) => position.or(&ledger.last_rejection_before(now - window_ms).await?),
            None => ledger.last_rejection_before(now - window_ms).await?,
        };
        let settled = ledger.last_rejection_before(now - SETTLES_MS).await?.max(&after);
        let since = StoreTime::from_ms(now - window_ms);
        let span = |after: &RejectionPosition, to| RejectionSpan {
            after: after.clone(),
            to,
            since,
        };
        let newly_settled = match settled == after {
            true => Vec::new(),
            false => ledger.rejections(span(&after, Some(settled.clone()))).await?,
        };
        self.rejections_young = ledger.rejections(span(&settled, None)).await?;
        if known.is_none() {
            self.rejections.clear();
        }
        self.rejections.retain(|record| record.at > now - window_ms);
        self.rejections.extend(newly_settled);
        let excess = self.rejections.len().saturating_sub(REJECTIONS_MAX);
        self.rejections.drain(..excess);
        self.settled = Some((window_ms, settled));
        Ok(())
    }

    /// Failed calls, and refused acquires for prefix baselines; `None` if no rule uses them.
    pub(super) async fn read_signals(
        &mut self,
        ledger: &dyn Ledger,
        rules: &[Rule],
        now: i64,
    ) -> Result<Option<RefusedRead>, sqlx::Error> {
        let window_ms = longest_window(rules, |kind| {
            matches!(
                kind,
                ConditionKind::Contention | ConditionKind::RenewalFailures | ConditionKind::ReleaseFailures
            )
        });
        let Some(window_ms) = window_ms else {
            return Ok(None);
        };
        let known = self
            .signals
            .filter(|(reach_ms, read_at)| *reach_ms >= window_ms && now - read_at < SIGNALS_REREAD_MS);
        let from = match known {
            Some(_) => now - window_ms.min(SIGNALS_GROW_MS),
            None => now - window_ms,
        };
        let signals = ledger.signals(from).await?;
        let (refused, failed) = split(signals);
        self.failures
            .retain(|record| record.at < from && record.at > now - window_ms);
        self.failures.extend(failed);
        self.signals = known.or(Some((window_ms, now)));
        Ok(Some(RefusedRead { since: from, refused }))
    }
}

/// Refused acquires and failed calls, each ordered by time.
pub(in crate::alerts) fn split(signals: Vec<Signal>) -> (Vec<RefusedAcquire>, Vec<CountedEvent>) {
    let (mut refused, mut failed) = (Vec::new(), Vec::new());
    for signal in signals {
        let counter = match signal.kind {
            SignalKind::AcquireRefused => {
                refused.push(RefusedAcquire {
                    at: signal.at,
                    backend: BackendName::builtin(),
                    prefix: signal.prefix.to_string(),
                    times: signal.times,
                });
                continue;
            }
            SignalKind::RenewalFailed => Counts::RenewalFailed,
            SignalKind::ReleaseFailed => Counts::ReleaseFailed,
        };
        failed.push(CountedEvent {
            at: signal.at,
            what: counter,
            lock: None,
            backend: BackendName::builtin(),
            owner: None,
            times: u32::try_from(signal.times).unwrap_or(u32::MAX),
            how: String::new(),
        });
    }
    (refused, failed)
}

/// Longest window of enabled rules of a kind, in milliseconds; `None` without such a rule.
fn longest_window(rules: &[Rule], is_selected: impl Fn(ConditionKind) -> bool) -> Option<i64> {
    let rules = rules
        .iter()
        .filter(|rule| rule.is_enabled && is_selected(rule.condition.kind));
    rules
        .map(|rule| rule.condition.value("window").unwrap_or(WINDOW_MS))
        .max()
}
