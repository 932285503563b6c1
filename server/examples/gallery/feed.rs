//! Feeds the inventory what the made-up backends report: first the past, so that it knows how often holders renew, then a
//! scan at each beat.

use std::collections::HashSet;
use std::sync::Arc;

use ::backends::{Batch, ClockReading as BackendClock, Pass, SourcePass};
use chrono::TimeDelta;
use domain::backend::{BackendStatus, WatchState};
use domain::names::Source;
use domain::observation::{Coverage, ObservedLock};
use domain::reported::Reported;
use domain::tick::Tick;
use inventory::{Inventory, InventoryWriter};
use runtime::clock::ClockReading;

use crate::backends::{KINDS, Kind};
use crate::canned::{BEAT_MS, Moment};
use crate::locks::{self, CannedLock};
use crate::scenes::Scene;

/// Scans before the gallery opened: long enough to see six renewals that come every 20 s.
const PAST_MS: i64 = 160_000;
/// Age of the last observation of a stale backend, and when it is renewed: before it counts as down.
const STALE_MS: i64 = 14_000;
const STALE_MS_MAX: i64 = 26_000;
/// Time since the last answer of a backend that is down.
const DOWN_MS: i64 = 60_000;
/// In the scene with many locks; a whole scan of them takes seconds in a debug build.
const MANY: usize = 50_000;
const MANY_POLL_MS: i64 = 60_000;
const MANY_SCAN_MS: i64 = 40_000;

struct Feed {
    kind: &'static Kind,
    status: BackendStatus,
    writer: InventoryWriter,
    /// Read by each scan.
    locks: Vec<CannedLock>,
    /// Read only by whole scans of the scene with many locks.
    bulk: Vec<CannedLock>,
    /// When the last whole scan began.
    scanned_ms: i64,
}

/// The backends of one scene.
pub(crate) struct Feeds {
    feeds: Vec<Feed>,
    beat: u64,
}

impl Feeds {
    /// Replaces what the inventory holds by the locks of this scene.
    pub(crate) fn open(scene: Scene, inventory: &Arc<Inventory>, now: Moment) -> Self {
        let configured = KINDS
            .iter()
            .filter_map(|kind| Some((kind, scene.status(kind.status)?)));
        let configured: Vec<_> = configured.collect();
        let poll_interval_ms = (scene == Scene::Many).then_some(MANY_POLL_MS);
        let infos = configured.iter().map(|(kind, _)| kind.info(poll_interval_ms));
        inventory.reconfigure(infos.collect(), &HashSet::new());
        inventory.set_identity_rules(scene.identity_rules());
        let mut all = scene.locks();
        all.retain(|lock| configured.iter().any(|(kind, _)| kind.name == lock.backend));
        let bulk = match scene {
            Scene::Many => locks::bulk(MANY - all.len()).collect(),
            _ => Vec::new(),
        };
        let locks_of = |locks: &[CannedLock], kind: &Kind| -> Vec<CannedLock> {
            let matching = locks.iter().filter(|lock| lock.backend == kind.name);
            matching.cloned().collect()
        };
        let feed = |(kind, status): (&'static Kind, BackendStatus)| {
            let describe = |_: &Source| (kind.safety(), 0);
            let writer = inventory.feed(&kind.backend_name(), now.reading(), describe)?;
            let feed = Feed {
                kind,
                status,
                writer,
                locks: locks_of(&all, kind),
                bulk: locks_of(&bulk, kind),
                scanned_ms: now.elapsed_ms,
            };
            feed.observe_past(now);
            Some(feed)
        };
        Self {
            feeds: configured.into_iter().filter_map(feed).collect(),
            beat: now.beat,
        }
    }

    /// Brings the inventory up to this moment.
    pub(crate) fn advance(&mut self, now: Moment) {
        if now.beat == self.beat {
            return;
        }
        self.beat = now.beat;
        for feed in &mut self.feeds {
            feed.advance(now);
        }
    }
}

impl Feed {
    /// What was observed before `now`.
    fn observe_past(&self, now: Moment) {
        let age_ms = match self.status {
            BackendStatus::Starting => return,
            BackendStatus::Down if self.locks.is_empty() => return self.fail(now),
            BackendStatus::Down => DOWN_MS,
            BackendStatus::Stale => STALE_MS,
            BackendStatus::Live | BackendStatus::Partial => 0,
        };
        self.writer.watching(WatchState::Live);
        self.writer.probed(self.kind.probe());
        if let Some(cluster) = self.kind.cluster(now) {
            self.writer.clusters(vec![cluster], Tick(now.elapsed_ms));
        }
        let last_ms = now.elapsed_ms - age_ms;
        let first_ms = last_ms - PAST_MS;
        // Where a backend does not report when a lock was acquired, it is held since it was first seen.
        let is_unreported = |lock: &&CannedLock| !self.kind.has_queue() && -lock.held < first_ms;
        let acquisitions = self.locks.iter().filter(is_unreported).map(|lock| -lock.held);
        // Holders that stopped renewing when the gallery opened have renewed before it, whenever this scene is opened.
        let scans = [-PAST_MS, first_ms]
            .into_iter()
            .flat_map(|from| (0..PAST_MS / BEAT_MS).map(move |n| from + n * BEAT_MS));
        // Where a backend does not report since when a client waits, it waits since it was first seen.
        let wait_starts = self
            .locks
            .iter()
            .flat_map(|lock| &lock.queue)
            .map(|wait| -wait.waited);
        let mut moments: Vec<i64> = acquisitions
            .chain(wait_starts)
            .chain(scans)
            .filter(|at| *at < last_ms)
            .collect();
        moments.sort_unstable();
        moments.dedup();
        for at in moments {
            self.scan(now.at(at), &[]);
        }
        for failure in self.kind.past_failures(now) {
            self.writer.failed(failure, false);
        }
        self.scan(now.at(last_ms), &self.bulk);
        if age_ms > 0 {
            self.fail(now);
        }
    }

    fn advance(&mut self, now: Moment) {
        let since_ms = now.elapsed_ms - self.scanned_ms;
        match self.status {
            BackendStatus::Starting => {}
            BackendStatus::Down => self.fail(now),
            BackendStatus::Stale => {
                if since_ms + STALE_MS > STALE_MS_MAX {
                    self.scan(now.at(now.elapsed_ms - STALE_MS), &[]);
                    self.scanned_ms = now.elapsed_ms;
                }
                self.fail(now);
            }
            BackendStatus::Live | BackendStatus::Partial if self.bulk.is_empty() => self.scan(now, &[]),
            BackendStatus::Live | BackendStatus::Partial => {
                if since_ms > MANY_SCAN_MS {
                    self.scan(now, &self.bulk);
                    self.scanned_ms = now.elapsed_ms;
                } else {
                    self.writer.accept(self.batch(now, &[]));
                }
            }
        }
    }

    fn fail(&self, now: Moment) {
        let is_refused = self.status == BackendStatus::Down;
        self.writer
            .failed(self.kind.failure(self.status, now), is_refused);
    }

    /// One scan that ended at `at`.
    fn scan(&self, at: Moment, bulk: &[CannedLock]) {
        // Scans take a few milliseconds, sometimes more.
        let beat = at.elapsed_ms.div_euclid(BEAT_MS);
        let duration_ms = if beat % 11 == 0 { 9 } else { 1 + beat.rem_euclid(4) };
        self.writer.begin(at.at(at.elapsed_ms - duration_ms).reading());
        self.writer.accept(self.batch(at, bulk));
        let coverage = match self.status {
            BackendStatus::Partial => Coverage::Partial {
                seen: 4,
                of: Some(5),
                why: "node 5 of 5 does not answer".into(),
            },
            _ => Coverage::Complete,
        };
        let fault = (!coverage.is_complete()).then(|| "node 5 of 5 does not answer".to_owned());
        let mut sources: Vec<&str> = self.locks.iter().filter_map(|lock| lock.source).collect();
        sources.push(self.kind.source);
        sources.sort_unstable();
        sources.dedup();
        let part = |source: &&'static str| SourcePass {
            source: Source::fixed(source),
            coverage: coverage.clone(),
            fault: fault.clone(),
        };
        let clock = BackendClock {
            backend_now: at.wall + TimeDelta::milliseconds(12),
            our_now: at.wall,
            error_ms: 1,
        };
        let pass = Pass {
            sources: sources.iter().map(part).collect(),
            clock: Reported::Value(clock),
        };
        self.writer.end(pass, at.reading());
    }

    fn batch(&self, at: Moment, bulk: &[CannedLock]) -> Batch {
        let held = self
            .locks
            .iter()
            .chain(bulk)
            .filter(|lock| lock.is_held(at.elapsed_ms));
        Batch {
            sent_at: Tick(at.elapsed_ms),
            locks: held
                .map(|lock| lock.observe(self.kind, at))
                .collect::<Vec<ObservedLock>>(),
            gone: Vec::new(),
        }
    }
}

impl Moment {
    pub(crate) fn reading(self) -> ClockReading {
        ClockReading {
            wall: self.wall,
            tick: Tick(self.elapsed_ms),
        }
    }

    /// The moment `elapsed_ms` after the gallery opened.
    fn at(self, elapsed_ms: i64) -> Self {
        Self {
            wall: self.wall - TimeDelta::milliseconds(self.elapsed_ms - elapsed_ms),
            elapsed_ms,
            beat: u64::try_from(elapsed_ms / BEAT_MS).unwrap_or(0),
        }
    }
}
