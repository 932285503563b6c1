//! Replay of conditions on a prefix: windows that slide from one event to the next.

mod window;

use std::collections::HashMap;

use self::window::{PrefixName, SlidingWindow};
use super::PastEvent;
use super::lock_table::{LockRef, LockTable};
use super::preview_track::PreviewTrack;
use crate::alerts::baseline::RefusedAcquire;
use crate::alerts::holdings::{Entry, Holdings, Occurrence};
use crate::alerts::rule::Rule;

pub(super) struct Prefixes<'r> {
    rule: &'r Rule,
    from: i64,
    /// Indexed by the number of the lock.
    tracks: Vec<Track>,
    /// Indexed by the number of the prefix.
    windows: Vec<Option<SlidingWindow>>,
    entries: Vec<Entry>,
}

#[derive(Default)]
struct Track {
    /// `None`: not yet compared with the rule's scope.
    is_covered: Option<bool>,
    holdings: Holdings,
}

impl<'r> Prefixes<'r> {
    pub(super) const fn new(rule: &'r Rule, from: i64) -> Self {
        Self {
            rule,
            from,
            tracks: Vec::new(),
            windows: Vec::new(),
            entries: Vec::new(),
        }
    }

    pub(super) fn is_held(&self, number: u32) -> bool {
        let track = self.tracks.get(number as usize);
        track.is_some_and(|track| track.holdings.is_open())
    }

    pub(super) fn forget(&mut self, number: u32) {
        if let Some(track) = self.tracks.get_mut(number as usize) {
            *track = Track::default();
        }
    }

    /// Refusals have a template and no name: a rule on one tenant of many counts none.
    pub(super) fn refused(&mut self, table: &mut LockTable, all: &[RefusedAcquire]) {
        if self.rule.condition.kind != crate::alerts::ConditionKind::Contention {
            return;
        }
        let mut groups: HashMap<(&_, &str), Vec<(i64, i64)>> = HashMap::new();
        for one in all.iter().filter(|one| one.at >= self.from) {
            let times = i64::try_from(one.times).unwrap_or(i64::MAX);
            let of = groups.entry((&one.backend, &one.prefix)).or_default();
            of.push((one.at, times));
        }
        for ((backend, prefix), mut refusals) in groups {
            let scope = &self.rule.scope;
            if !scope.has_backend(backend) || !scope.prefix.covers(prefix.as_bytes()) {
                continue;
            }
            let Some(number) = table.prefix(backend, prefix.to_owned()) else {
                continue;
            };
            refusals.sort_unstable();
            self.window(number).refused(refusals);
        }
    }

    fn window(&mut self, number: u32) -> &mut SlidingWindow {
        let index = number as usize;
        if self.windows.len() <= index {
            self.windows.resize_with(index + 1, || None);
        }
        let (rule, from) = (self.rule, self.from);
        self.windows[index].get_or_insert_with(|| SlidingWindow::new(rule, from))
    }

    pub(super) fn event(
        &mut self,
        number: u32,
        lock: &LockRef<'_>,
        event: &PastEvent<'_>,
        board: &mut PreviewTrack,
    ) {
        let index = number as usize;
        if self.tracks.len() <= index {
            self.tracks.resize_with(index + 1, Track::default);
        }
        let (track, scope) = (&mut self.tracks[index], &self.rule.scope);
        let is_covered = *track
            .is_covered
            .get_or_insert_with(|| scope.has_backend(lock.backend) && scope.prefix.covers(lock.name));
        if !is_covered {
            return;
        }
        board.read(1);
        let occurrence = Occurrence {
            at: event.at,
            kind: event.kind,
            ttl_ms: event.ttl_ms,
            waiters: event.waiters,
            renewals: event.run.map_or(1, |run| run.count),
        };
        let mut entries = std::mem::take(&mut self.entries);
        track
            .holdings
            .apply(&occurrence, &mut |entry| entries.push(entry));
        if entries.contains(&Entry::Acquired) {
            board.acquired(occurrence.ttl_ms.is_some());
        }
        if let Some((prefix, name)) = lock.prefix.filter(|_| !entries.is_empty()) {
            let rule = self.rule;
            let window = self.window(prefix);
            for entry in entries.drain(..) {
                window.add(rule, (lock.backend, name), event.at, entry, board);
            }
        }
        entries.clear();
        self.entries = entries;
    }

    pub(super) fn gap(&mut self, table: &LockTable, gap: (i64, i64), board: &mut PreviewTrack) {
        self.each(table, |window, rule, name| window.gap(rule, name, gap, board));
    }

    pub(super) fn finish(&mut self, table: &LockTable, to: i64, board: &mut PreviewTrack) {
        self.each(table, |window, rule, name| window.finish(rule, name, to, board));
    }

    fn each(&mut self, table: &LockTable, mut act: impl FnMut(&mut SlidingWindow, &Rule, PrefixName<'_>)) {
        for (number, window) in (0_u32..).zip(&mut self.windows) {
            if let (Some(window), Some((backend, name))) = (window, table.prefix_name(number)) {
                act(window, self.rule, (backend, name));
            }
        }
    }
}
