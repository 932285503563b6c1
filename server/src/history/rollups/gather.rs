//! Adds up what happened, in memory, at every step at once; what changed is written every few seconds.
//!
//! **Invariant:** rows carry the part of the process that wrote them and are only ever replaced by their own process with
//! more: a restart or a second server adds rows and spoils none.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use domain::detail::EventKind;
use domain::history::fold::Beat;
use domain::history::rollup::Rollup;
use domain::history::template::template;
use domain::names::{BackendName, Resource};
use domain::token::FencingToken;

use super::STEPS_S;
use super::lines::Lines;
use crate::history::limits::LOOK_MS_MAX;
use crate::history::metered;
use crate::inventory::{Change, GROUPS_MAX, OTHER, WatchedBackend};
use crate::lease::{Tallied, What};
use crate::telemetry::meters;
use crate::telemetry::meters::Of;

/// Names of resources whose template is remembered.
const TEMPLATES_KEPT: usize = 20_000;

/// Leases of which it is remembered that their loss was told.
const TOLD_LOST_KEPT: usize = 10_000;

pub(super) type Key = (BackendName, Arc<str>);
/// Length in seconds, and beginning in milliseconds since 1970.
pub(super) type Stretch = (i64, i64);

/// A sum that grows, and whether it has since it was written.
#[derive(Debug, Default)]
pub(super) struct Growing<T> {
    pub(super) sum: T,
    pub(super) is_dirty: bool,
}

/// How long a backend was watched, and how long it could tell who waits, in milliseconds.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Coverage {
    pub(super) watched_ms: i64,
    pub(super) waits_ms: i64,
}

pub(in crate::history) struct Gatherer {
    pub(super) part: String,
    pub(super) sums: HashMap<Stretch, HashMap<Key, Growing<Rollup>>>,
    pub(super) coverage: HashMap<Stretch, HashMap<BackendName, Growing<Coverage>>>,
    /// Of this round.
    round: HashMap<Key, Rollup>,
    /// Integrals as they were at the last look.
    looked: HashMap<Key, Integrals>,
    looked_at: i64,
    lines: Lines,
    names: HashMap<Resource, Arc<str>>,
    /// Leases whose owners were told that they had lost them, the last ones: each is one hold, however often it asks.
    told_lost: HashSet<(Resource, FencingToken)>,
    /// Templates of the lease service that have a row of their own.
    known: HashSet<Arc<str>>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Integrals {
    held_ms: u64,
    waiting_ms: u64,
    believers: u64,
}

impl Gatherer {
    /// Watches from now on.
    pub(in crate::history) fn new(now_ms: i64) -> Self {
        Self {
            part: format!("{:08x}", rand::random::<u32>()),
            sums: HashMap::new(),
            coverage: HashMap::new(),
            round: HashMap::new(),
            looked: HashMap::new(),
            looked_at: now_ms,
            lines: Lines::default(),
            names: HashMap::new(),
            told_lost: HashSet::new(),
            known: HashSet::new(),
        }
    }

    /// One look at every backend. Only the writer counts it; the others remember where they would go on.
    pub(in crate::history) fn look(&mut self, now_ms: i64, backends: &[WatchedBackend], is_writer: bool) {
        let elapsed = now_ms - std::mem::replace(&mut self.looked_at, now_ms);
        let was_there = (1..=LOOK_MS_MAX).contains(&elapsed);
        let middle = now_ms - elapsed.clamp(0, LOOK_MS_MAX) / 2;
        // Those that are not there any more begin anew when they come back.
        let before = std::mem::take(&mut self.looked);
        for backend in backends {
            if is_writer && was_there && backend.is_watched {
                self.cover(backend, middle, elapsed);
            }
            for group in &backend.groups {
                let key = (backend.name.clone(), group.template.clone());
                let is = Integrals {
                    held_ms: group.held_ms,
                    waiting_ms: group.waiting_ms,
                    believers: group.believers,
                };
                self.looked.insert(key.clone(), is);
                let was = before.get(&key).copied().unwrap_or_default();
                // Its place was given to another and back: it began anew.
                let was = if was.held_ms > is.held_ms {
                    Integrals::default()
                } else {
                    was
                };
                let grown = is.held_ms > was.held_ms || is.believers > was.believers;
                if !is_writer || !was_there || !grown {
                    continue;
                }
                let times = is.believers.saturating_sub(was.believers);
                if times > 0 {
                    meters().suspected(
                        &Of {
                            name: backend.name.as_str().into(),
                            system: backend.kind.wire(),
                        },
                        times,
                    );
                }
                let sum = self.round.entry(key).or_default();
                sum.held_ms += is.held_ms - was.held_ms;
                sum.waiting_ms += is.waiting_ms.saturating_sub(was.waiting_ms);
                sum.believers += is.believers.saturating_sub(was.believers);
            }
        }
        self.close_round(middle);
    }

    fn cover(&mut self, backend: &WatchedBackend, at: i64, elapsed: i64) {
        for step in STEPS_S {
            let all = self.coverage.entry((step, start(at, step))).or_default();
            let growing = all.entry(backend.name.clone()).or_default();
            growing.is_dirty = true;
            growing.sum.watched_ms += elapsed;
            growing.sum.waits_ms += if backend.tells_waiters { elapsed } else { 0 };
        }
    }

    /// A change that was seen. What the lease service did, it tells better itself.
    pub(in crate::history) fn change(&mut self, change: &Change, beat: Option<Beat>) {
        let is_ours = change.backend == BackendName::builtin();
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
        if let Some(beat) = beat {
            sum.renewals.add(beat.interval_ms);
            beat.late_ms.into_iter().for_each(|ms| sum.late.add(ms));
        }
        if is_ours {
            return;
        }
        let mut waited = Vec::new();
        match change.kind {
            EventKind::Acquired | EventKind::Reclaimed => {
                sum.acquired += 1;
                sum.reclaimed += u64::from(change.kind == EventKind::Reclaimed);
                change
                    .ttl_ms
                    .into_iter()
                    .for_each(|ms| sum.ttls.add(i64::from(ms)));
                waited = change.waiters.map_or(waited, |now| self.lines.now(id(), now, at));
            }
            EventKind::Released | EventKind::Expired | EventKind::Revoked => {
                sum.expired += u64::from(change.kind == EventKind::Expired);
                sum.unlocked += u64::from(change.kind == EventKind::Revoked);
                change.held_ms.into_iter().for_each(|ms| sum.holds.add(ms));
                sum.holds_uncertain += u64::from(change.is_held_uncertain);
                self.lines.free(&id(), at);
            }
            EventKind::Waiting | EventKind::FewerWaiting => {
                waited = change.waiters.map_or(waited, |now| self.lines.now(id(), now, at));
            }
            EventKind::Renewed => {
                change
                    .ttl_ms
                    .into_iter()
                    .for_each(|ms| sum.ttls.add(i64::from(ms)));
            }
            // Its wait is counted by the line that grew shorter.
            EventKind::GrantedAfterWait
            | EventKind::Rejected
            | EventKind::Lost
            | EventKind::Unwatched
            | EventKind::WatchedAgain => {}
        }
        let key = (change.backend.clone(), change.template.clone());
        self.waited(key, &change.resource, &waited);
    }

    fn waited(&mut self, key: Key, resource: &Resource, waited: &[i64]) {
        if waited.is_empty() {
            return;
        }
        let sum = self.round.entry(key).or_default();
        for ms in waited {
            sum.waits.add(*ms);
            sum.heavy.add(&resource.text(), u64::try_from(*ms).unwrap_or(0));
        }
    }

    /// The changes of a round are all here.
    pub(in crate::history) fn settle(&mut self, now_ms: i64) {
        for ((backend, _, resource), waited) in self.lines.given_up() {
            let key = (backend, template(resource.as_bytes()).into());
            self.waited(key, &resource, &waited);
        }
        self.close_round(now_ms);
    }

    /// Adds what the lease service of this process did; answers how many acquires were refused, by template.
    pub(in crate::history) fn tallied(&mut self, all: &[Tallied]) -> HashMap<Arc<str>, u64> {
        let mut refused: HashMap<Arc<str>, u64> = HashMap::new();
        let of = Of::builtin();
        for one in all {
            let key = (BackendName::builtin(), self.template_of(&one.resource));
            metered::tallied(&of, &key.1, one);
            let template = key.1.clone();
            let sum = self.round.entry(key).or_default();
            match &one.what {
                What::Granted { ttl_ms, reclaimed } => {
                    sum.acquired += 1;
                    sum.reclaimed += u64::from(*reclaimed);
                    sum.ttls.add(*ttl_ms);
                }
                What::Refused | What::TimedOut => {
                    sum.refused += 1;
                    *refused.entry(template).or_default() += 1;
                }
                What::Waited { ms, .. } => {
                    sum.waits.add(*ms);
                    sum.heavy
                        .add(&one.resource.text(), u64::try_from(*ms).unwrap_or(0));
                }
                What::Released { held_ms } => sum.holds.add(*held_ms),
                What::Expired { held_ms } => {
                    sum.expired += 1;
                    sum.holds.add(*held_ms);
                }
                What::Revoked { held_ms } => {
                    sum.unlocked += 1;
                    sum.holds.add(*held_ms);
                }
                What::Lost {
                    token, believed_ms, ..
                } => {
                    sum.lost += 1;
                    self.lost(&of, &template, (&one.resource, *token), *believed_ms);
                }
                What::Rejected { .. } => sum.rejected += 1,
            }
        }
        refused
    }

    /// How long the owner believed that it held it; once for each lease.
    fn lost(
        &mut self,
        of: &Of,
        template: &Arc<str>,
        (resource, token): (&Resource, FencingToken),
        ms: Option<i64>,
    ) {
        let Some(ms) = ms else { return };
        if self.told_lost.len() >= TOLD_LOST_KEPT {
            self.told_lost.clear();
        }
        if self.told_lost.insert((resource.clone(), token)) {
            meters().held(of, template, "lost", ms);
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

    /// What is over and written is forgotten.
    pub(in crate::history) fn forget(&mut self, now_ms: i64) {
        let is_over = |(step, at): &Stretch| at + step * 1_000 + 2 * LOOK_MS_MAX < now_ms;
        self.sums
            .retain(|stretch, all| !is_over(stretch) || all.values().any(|one| one.is_dirty));
        self.coverage
            .retain(|stretch, all| !is_over(stretch) || all.values().any(|one| one.is_dirty));
    }
}

fn start(at: i64, step_s: i64) -> i64 {
    at - at.rem_euclid(step_s * 1_000)
}
