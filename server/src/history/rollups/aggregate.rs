//! Aggregates changes in memory, at every step at once; changed rows are written every few seconds.
//!
//! **Invariant:** rows carry the id of the process that wrote them and are replaced only by that process with larger
//! values: a restart or a second replica adds rows and overwrites none.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use domain::history::renewal_runs::Beat;
use domain::history::rollup::Rollup;
use domain::history::template::template;
use domain::lock_detail::EventKind;
use domain::names::{BackendName, Resource};
use domain::token::FencingToken;

use super::STEPS_S;
use super::wait_inference::WaitInference;
use crate::history::limits::SAMPLE_MS_MAX;
use crate::history::metrics::ActivitySums;
use inventory::{GROUPS_MAX, LockChange, OTHER, WatchedBackend};
use lease::{Activity, ActivityEntry};
use runtime::telemetry::instruments;
use runtime::telemetry::instruments::BackendAttributes;

/// Resource names with a cached template.
const TEMPLATES_KEPT: usize = 20_000;

/// Leases whose loss was already counted.
const COUNTED_LOSSES_MAX: usize = 10_000;

pub(super) type RollupKey = (BackendName, Arc<str>);
/// Length in seconds, and start in milliseconds since 1970.
pub(super) type Stretch = (i64, i64);

/// A value, and whether it has grown since it was written.
#[derive(Debug, Default)]
pub(super) struct Growing<T> {
    pub(super) sum: T,
    pub(super) is_dirty: bool,
}

/// Milliseconds during which a backend was observed, and during which its waiters were known.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Coverage {
    pub(super) watched_ms: i64,
    pub(super) waits_ms: i64,
}

pub(in crate::history) struct Gatherer {
    pub(super) process_id: String,
    pub(super) sums: HashMap<Stretch, HashMap<RollupKey, Growing<Rollup>>>,
    pub(super) coverage: HashMap<Stretch, HashMap<BackendName, Growing<Coverage>>>,
    /// Values of the current round.
    round: HashMap<RollupKey, Rollup>,
    /// Integrals at the last sample.
    last_integrals: HashMap<RollupKey, Integrals>,
    sampled_at: i64,
    /// Milliseconds between two samples after which the time counts as unobserved.
    sample_ms_max: i64,
    wait_inference: WaitInference,
    names: HashMap<Resource, Arc<str>>,
    /// Leases whose loss was counted: each is one hold, however often its owner retries.
    counted_losses: HashSet<(Resource, FencingToken)>,
    /// Templates of the lease service with their own row.
    known: HashSet<Arc<str>>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Integrals {
    held_ms: u64,
    waiting_ms: u64,
    dual_owners: u64,
}

impl Gatherer {
    /// Starts observation.
    pub(in crate::history) fn new(now_ms: i64) -> Self {
        Self::sampling(runtime::random::short_id(), now_ms, SAMPLE_MS_MAX)
    }

    /// As the process with this id, with at most this long between two samples.
    pub(in crate::history) fn sampling(process_id: String, now_ms: i64, sample_ms_max: i64) -> Self {
        Self {
            process_id,
            sample_ms_max,
            sums: HashMap::new(),
            coverage: HashMap::new(),
            round: HashMap::new(),
            last_integrals: HashMap::new(),
            sampled_at: now_ms,
            wait_inference: WaitInference::default(),
            names: HashMap::new(),
            counted_losses: HashSet::new(),
            known: HashSet::new(),
        }
    }

    /// Samples every backend. Only the leader counts; the others remember the position.
    pub(in crate::history) fn sample(&mut self, now_ms: i64, backends: &[WatchedBackend], is_writer: bool) {
        let elapsed = now_ms - std::mem::replace(&mut self.sampled_at, now_ms);
        let is_continuous = (1..=self.sample_ms_max).contains(&elapsed);
        let middle = now_ms - elapsed.clamp(0, self.sample_ms_max) / 2;
        // Removed backends start again when they return.
        let before = std::mem::take(&mut self.last_integrals);
        for backend in backends {
            if is_writer && is_continuous && backend.is_watched {
                self.add_coverage(backend, middle, elapsed);
            }
            for group in &backend.groups {
                let key = (backend.name.clone(), group.template.clone());
                let current = Integrals {
                    held_ms: group.held_ms,
                    waiting_ms: group.waiting_ms,
                    dual_owners: group.dual_owners,
                };
                self.last_integrals.insert(key.clone(), current);
                let previous = before.get(&key).copied().unwrap_or_default();
                // The template was evicted and added again: it started at zero.
                let previous = if previous.held_ms > current.held_ms {
                    Integrals::default()
                } else {
                    previous
                };
                let has_grown =
                    current.held_ms > previous.held_ms || current.dual_owners > previous.dual_owners;
                if !is_writer || !is_continuous || !has_grown {
                    continue;
                }
                let times = current.dual_owners.saturating_sub(previous.dual_owners);
                if times > 0 {
                    instruments().suspected(
                        &BackendAttributes {
                            name: backend.name.as_str().into(),
                            system: backend.kind.as_str(),
                        },
                        times,
                    );
                }
                let sum = self.round.entry(key).or_default();
                sum.held_ms += current.held_ms - previous.held_ms;
                sum.waiting_ms += current.waiting_ms.saturating_sub(previous.waiting_ms);
                sum.dual_owners += current.dual_owners.saturating_sub(previous.dual_owners);
            }
        }
        self.close_round(middle);
    }

    fn add_coverage(&mut self, backend: &WatchedBackend, at: i64, elapsed: i64) {
        for step in STEPS_S {
            let all = self.coverage.entry((step, start(at, step))).or_default();
            let growing = all.entry(backend.name.clone()).or_default();
            growing.is_dirty = true;
            growing.sum.watched_ms += elapsed;
            growing.sum.waits_ms += if backend.reports_waiters { elapsed } else { 0 };
        }
    }

    /// Adds an observed change. The lease service reports its own activity more precisely.
    pub(in crate::history) fn change(&mut self, change: &LockChange, beat: Option<Beat>) {
        self.add_renewal(change, beat);
        if change.backend != BackendName::builtin() {
            self.add_transition(change);
        }
    }

    fn add_renewal(&mut self, change: &LockChange, beat: Option<Beat>) {
        let Some(beat) = beat else { return };
        let key = (change.backend.clone(), change.template.clone());
        let sum = self.round.entry(key).or_default();
        sum.renewals.add(beat.interval_ms);
        beat.late_ms.into_iter().for_each(|ms| sum.late.add(ms));
    }

    /// Adds a change of any backend, without the interval of a renewal.
    fn add_transition(&mut self, change: &LockChange) {
        let at = change.at.timestamp_millis();
        let id = || {
            (
                change.backend.clone(),
                change.source.clone(),
                change.resource.clone(),
            )
        };
        let sum = self
            .round
            .entry((change.backend.clone(), change.template.clone()))
            .or_default();
        let mut waited = Vec::new();
        match change.kind {
            EventKind::Acquired | EventKind::Reclaimed | EventKind::ShareAcquired => {
                sum.acquired += 1;
                sum.reclaimed += u64::from(change.kind == EventKind::Reclaimed);
                change
                    .ttl_ms
                    .into_iter()
                    .for_each(|ms| sum.ttls.add(i64::from(ms)));
                waited = change
                    .waiters
                    .map_or(waited, |now| self.wait_inference.now(id(), now, at));
            }
            EventKind::Released | EventKind::Expired | EventKind::Revoked => {
                sum.expired += u64::from(change.kind == EventKind::Expired);
                sum.unlocked += u64::from(change.kind == EventKind::Revoked);
                change.held_ms.into_iter().for_each(|ms| sum.holds.add(ms));
                sum.holds_uncertain += u64::from(change.is_held_uncertain);
                self.wait_inference.free(&id(), at);
            }
            EventKind::ShareReleased => {
                change.held_ms.into_iter().for_each(|ms| sum.holds.add(ms));
                sum.holds_uncertain += u64::from(change.is_held_uncertain);
            }
            EventKind::Waiting | EventKind::FewerWaiting => {
                waited = change
                    .waiters
                    .map_or(waited, |now| self.wait_inference.now(id(), now, at));
            }
            EventKind::Renewed => {
                change
                    .ttl_ms
                    .into_iter()
                    .for_each(|ms| sum.ttls.add(i64::from(ms)));
            }
            // Its wait is inferred from the queue length.
            EventKind::GrantedAfterWait
            | EventKind::Rejected
            | EventKind::Lost
            | EventKind::Unwatched
            | EventKind::WatchedAgain => {}
        }
        let key = (change.backend.clone(), change.template.clone());
        self.add_waits(key, &change.resource, &waited);
    }

    /// Adds a change of a simulated past: the lease service reported no activity.
    pub(in crate::history) fn add_simulated(&mut self, change: &LockChange, beat: Option<Beat>) {
        self.add_renewal(change, beat);
        self.add_transition(change);
    }

    fn add_waits(&mut self, key: RollupKey, resource: &Resource, waited: &[i64]) {
        if waited.is_empty() {
            return;
        }
        let sum = self.round.entry(key).or_default();
        for ms in waited {
            sum.waits.add(*ms);
            sum.most_waited
                .add(&resource.text(), u64::try_from(*ms).unwrap_or(0));
        }
    }

    /// Ends a round.
    pub(in crate::history) fn close_interval(&mut self, now_ms: i64) {
        for ((backend, _, resource), waited) in self.wait_inference.abandoned_waits() {
            let key = (backend, template(resource.as_bytes()).into());
            self.add_waits(key, &resource, &waited);
        }
        self.close_round(now_ms);
    }

    /// Adds the activity of the local lease service; returns the refused acquires by template.
    pub(in crate::history) fn add_activity(&mut self, all: &[ActivityEntry]) -> HashMap<Arc<str>, u64> {
        let mut refused: HashMap<Arc<str>, u64> = HashMap::new();
        let (of, builtin) = (BackendAttributes::builtin(), BackendName::builtin());
        let mut metrics = ActivitySums::default();
        for entry in all {
            let key = (builtin.clone(), self.template_of(&entry.resource));
            metrics.add(&of, &key.1, entry);
            let template = key.1.clone();
            let sum = self.round.entry(key).or_default();
            match &entry.what {
                Activity::Granted { ttl_ms, reclaimed } => {
                    sum.acquired += 1;
                    sum.reclaimed += u64::from(*reclaimed);
                    sum.ttls.add(*ttl_ms);
                }
                Activity::Refused | Activity::TimedOut => {
                    sum.refused += 1;
                    *refused.entry(template).or_default() += 1;
                }
                Activity::Waited { ms, .. } => {
                    sum.waits.add(*ms);
                    sum.most_waited
                        .add(&entry.resource.text(), u64::try_from(*ms).unwrap_or(0));
                }
                Activity::Released { held_ms } => sum.holds.add(*held_ms),
                Activity::Expired { held_ms } => {
                    sum.expired += 1;
                    sum.holds.add(*held_ms);
                }
                Activity::Revoked { held_ms } => {
                    sum.unlocked += 1;
                    sum.holds.add(*held_ms);
                }
                Activity::Lost {
                    token, believed_ms, ..
                } => {
                    sum.lost += 1;
                    self.add_lost_hold(&of, &template, (&entry.resource, *token), *believed_ms);
                }
                Activity::Rejected { .. } => sum.rejected += 1,
            }
        }
        metrics.record(&of);
        refused
    }

    /// Adds how long the owner held a lost lease; once per lease.
    fn add_lost_hold(
        &mut self,
        of: &BackendAttributes,
        template: &Arc<str>,
        (resource, token): (&Resource, FencingToken),
        ms: Option<i64>,
    ) {
        let Some(ms) = ms else { return };
        if self.counted_losses.len() >= COUNTED_LOSSES_MAX {
            self.counted_losses.clear();
        }
        if self.counted_losses.insert((resource.clone(), token)) {
            instruments().record_holds(of, template, "lost", &[ms]);
        }
    }

    fn template_of(&mut self, resource: &Resource) -> Arc<str> {
        if let Some(found) = self.names.get(resource) {
            return found.clone();
        }
        let text: Arc<str> = template(resource.as_bytes()).into();
        let text = match self.known.get(&text) {
            Some(known) => known.clone(),
            None if self.known.len() < GROUPS_MAX => {
                self.known.insert(text.clone());
                text
            }
            None => OTHER.into(),
        };
        if self.names.len() >= TEMPLATES_KEPT {
            self.names.clear();
        }
        self.names.insert(resource.clone(), text.clone());
        text
    }

    fn close_round(&mut self, at: i64) {
        for (key, sum) in self.round.drain() {
            if sum.is_empty() {
                continue;
            }
            for step in STEPS_S {
                let all = self.sums.entry((step, start(at, step))).or_default();
                let growing = all.entry(key.clone()).or_default();
                growing.sum.merge(&sum);
                growing.is_dirty = true;
            }
        }
    }

    /// Drops rows that are complete and written.
    pub(in crate::history) fn forget(&mut self, now_ms: i64) {
        let is_over = |(step, at): &Stretch| at + step * 1_000 + 2 * SAMPLE_MS_MAX < now_ms;
        self.sums
            .retain(|stretch, all| !is_over(stretch) || all.values().any(|row| row.is_dirty));
        self.coverage
            .retain(|stretch, all| !is_over(stretch) || all.values().any(|row| row.is_dirty));
    }
}

fn start(at: i64, step_s: i64) -> i64 {
    at - at.rem_euclid(step_s * 1_000)
}
