//! What was recorded of each subject within a window: the live rules and the preview count with it.

use std::collections::{HashMap, VecDeque};

use super::places::{Happened, WINDOW_MS, counts, sentence};
use super::round::{Found, Subject};
use super::rule::Rule;

/// Slides over occurrences in the order of their times.
pub(super) struct CountWindow<'h> {
    index: usize,
    rule: &'h Rule,
    window_ms: i64,
    count_min: i64,
    entries: VecDeque<&'h Happened>,
    by_subject: HashMap<Subject, SubjectCount<'h>>,
    total: i64,
}

struct SubjectCount<'h> {
    times: i64,
    last: &'h Happened,
}

impl<'h> CountWindow<'h> {
    pub(super) fn new(index: usize, rule: &'h Rule) -> Self {
        let condition = &rule.condition;
        let window_ms = condition.value("window").unwrap_or(WINDOW_MS);
        let count_min = condition.value("count").unwrap_or(1);
        Self {
            index,
            rule,
            window_ms,
            count_min,
            entries: VecDeque::new(),
            by_subject: HashMap::new(),
            total: 0,
        }
    }

    pub(super) const fn window_ms(&self) -> i64 {
        self.window_ms
    }

    /// All that happened in the window, of whatever subject.
    pub(super) const fn total(&self) -> i64 {
        self.total
    }

    /// Whether the rule counts it at all.
    pub(super) fn takes(&self, one: &Happened) -> bool {
        counts(self.rule.condition.kind, one.what) && one.is_in_scope(self.rule)
    }

    /// Adds one that the rule [`takes`](Self::takes) and that is not older than those before it.
    pub(super) fn add(&mut self, one: &'h Happened) {
        debug_assert!(self.entries.back().is_none_or(|last| last.at <= one.at));
        let times = i64::from(one.times);
        self.total += times;
        let counted = self
            .by_subject
            .entry(one.subject())
            .or_insert(SubjectCount { times: 0, last: one });
        counted.times += times;
        counted.last = one;
        self.entries.push_back(one);
    }

    /// Removes what is not in the window any more.
    pub(super) fn expire(&mut self, now: i64) {
        while let Some(one) = self.entries.front().filter(|one| one.at <= now - self.window_ms) {
            let subject = one.subject();
            let times = i64::from(one.times);
            self.total -= times;
            if let Some(counted) = self.by_subject.get_mut(&subject) {
                counted.times -= times;
                if counted.times == 0 {
                    self.by_subject.remove(&subject);
                }
            }
            self.entries.pop_front();
        }
    }

    /// Every subject of which enough was recorded.
    pub(super) fn found(&self) -> Vec<Found> {
        let enough = self
            .by_subject
            .iter()
            .filter(|(_, counted)| counted.times >= self.count_min);
        enough
            .map(|(subject, counted)| Found {
                rule: self.index,
                subject: subject.clone(),
                owner: counted.last.owner.clone(),
                holding: String::new(),
                measure: counted.times,
                why: sentence(
                    self.rule.condition.kind,
                    counted.times,
                    self.window_ms,
                    &counted.last.how,
                ),
            })
            .collect()
    }
}
