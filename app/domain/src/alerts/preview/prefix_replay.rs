//! Replay of conditions on a prefix: windows that slide from one event to the next.

mod window_replay;

use std::collections::HashMap;
use std::sync::Arc;

use self::window_replay::{PrefixName, SlidingWindow};
use super::lock_table::{LockRef, LockTable};
use super::preview_output::PreviewOutput;
use super::{CurrentState, Gap, PastEvent};
use crate::alerts::baseline::RefusedAcquire;
use crate::alerts::holdings::{Entry, Holdings, Occurrence};
use crate::alerts::rule::Rule;
use crate::alerts::rule_windows::RuleWindows;
use crate::alerts::usual_hold_time::HoldLength;

#[derive(Clone)]
pub(super) struct Prefixes {
    rule: Arc<Rule>,
    from: i64,
    /// Indexed by the number of the lock.
    tracks: Vec<Track>,
    /// Indexed by the number of the prefix.
    windows: Vec<Option<SlidingWindow>>,
    entries: Vec<Entry>,
}

#[derive(Clone, Default)]
struct Track {
    /// `None`: not yet compared with the rule's scope.
    is_covered: Option<bool>,
    holdings: Holdings,
}

impl Prefixes {
    pub(super) const fn new(rule: Arc<Rule>, from: i64) -> Self {
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

    /// Replaces the refusals since a time. They have a template and no name: a rule on one
    /// tenant of many counts none.
    pub(super) fn refused(&mut self, table: &mut LockTable, since: i64, all: &[RefusedAcquire]) {
        if self.rule.condition.kind != crate::alerts::ConditionKind::Contention {
            return;
        }
        let mut groups: HashMap<(&_, &str), Vec<(i64, i64)>> = HashMap::new();
        for window in self.windows.iter_mut().flatten() {
            window.forget_refused(since);
        }
        for refusal in all.iter().filter(|refusal| refusal.at >= self.from.max(since)) {
            let times = i64::try_from(refusal.times).unwrap_or(i64::MAX);
            let counts = groups.entry((&refusal.backend, &refusal.prefix)).or_default();
            counts.push((refusal.at, times));
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
        let (rule, from) = (&self.rule, self.from);
        self.windows[index].get_or_insert_with(|| SlidingWindow::new(rule, from))
    }

    pub(super) fn event(
        &mut self,
        number: u32,
        lock: &LockRef<'_>,
        event: &PastEvent<'_>,
        preview: &mut PreviewOutput,
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
        preview.read(1);
        let occurrence = Occurrence {
            at: event.at,
            kind: event.kind,
            holder: event.holder(),
            is_uncertain: event.not_before.is_some(),
            ttl_ms: event.ttl_ms,
            waiters: event.waiters,
            renewals: event.run.map_or(1, |run| run.count),
        };
        let mut entries = std::mem::take(&mut self.entries);
        let held = track
            .holdings
            .apply(&occurrence, &mut |entry| entries.push(entry));
        if held == Some(HoldLength::Uncertain) {
            preview.uncertain_hold();
        }
        if entries.contains(&Entry::Acquired) {
            preview.acquired(occurrence.ttl_ms.is_some());
        }
        if lock.prefix.is_none() && !entries.is_empty() {
            preview.not_counted();
        }
        if let Some((prefix, name)) = lock.prefix.filter(|_| !entries.is_empty()) {
            let rule = &self.rule.clone();
            let window = self.window(prefix);
            for entry in entries.drain(..) {
                window.add(rule, (lock.backend, name), event.at, entry, preview);
            }
        }
        entries.clear();
        self.entries = entries;
    }

    pub(super) fn gap(&mut self, table: &LockTable, gap: &Gap, preview: &mut PreviewOutput) {
        self.for_each_window(table, |window, rule, name| {
            if gap.backend.as_ref().is_none_or(|backend| backend == name.0) {
                window.gap(rule, name, (gap.began, gap.ended), preview);
            }
        });
    }

    pub(super) fn finish(
        &mut self,
        table: &LockTable,
        present: &dyn CurrentState,
        to: i64,
        preview: &mut PreviewOutput,
    ) {
        self.for_each_window(table, |window, rule, name| {
            let unobserved = present.unobserved_since(name.0);
            let to = unobserved.map_or(to, |since| since.min(to));
            window.finish(rule, name, to, preview);
        });
    }

    pub(super) fn into_windows(self, table: &LockTable, uncounted: u64) -> RuleWindows {
        let windows = (0_u32..).zip(self.windows);
        let windows = windows.filter_map(|(number, window)| {
            Some((table.prefix_name(number)?.clone(), window?.into_entries()))
        });
        RuleWindows::of_replay(&self.rule, windows.collect(), uncounted)
    }

    fn for_each_window(
        &mut self,
        table: &LockTable,
        mut act: impl FnMut(&mut SlidingWindow, &Rule, PrefixName<'_>),
    ) {
        for (number, window) in (0_u32..).zip(&mut self.windows) {
            if let (Some(window), Some((backend, name))) = (window, table.prefix_name(number)) {
                act(window, &self.rule, (backend, name));
            }
        }
    }
}
