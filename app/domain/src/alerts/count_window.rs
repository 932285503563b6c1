//! Counts the recorded events of each subject within a window; used by the live rules and the
//! preview.

use std::collections::{HashMap, VecDeque};

use super::backend_conditions::{CountedEvent, WINDOW_MS, counts, sentence};
use super::evaluate::{EvaluationResult, Subject};
use super::rule::Rule;

/// Sliding window over events sorted by time.
pub(super) struct CountWindow<'h> {
    index: usize,
    rule: &'h Rule,
    window_ms: i64,
    count_min: i64,
    entries: VecDeque<&'h CountedEvent>,
    by_subject: HashMap<Subject, SubjectCount<'h>>,
    total: i64,
}

struct SubjectCount<'h> {
    times: i64,
    last: &'h CountedEvent,
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

    /// All events in the window, of any subject.
    pub(super) const fn total(&self) -> i64 {
        self.total
    }

    /// Whether the rule counts this event.
    pub(super) fn accepts(&self, event: &CountedEvent) -> bool {
        counts(self.rule.condition.kind, event.what) && event.is_in_scope(self.rule)
    }

    /// Adds an event that the rule [`accepts`](Self::accepts) and that is not older than those
    /// before it.
    pub(super) fn add(&mut self, event: &'h CountedEvent) {
        debug_assert!(self.entries.back().is_none_or(|last| last.at <= event.at));
        let times = i64::from(event.times);
        self.total += times;
        let counted = self.by_subject.entry(event.subject()).or_insert(SubjectCount {
            times: 0,
            last: event,
        });
        counted.times += times;
        counted.last = event;
        self.entries.push_back(event);
    }

    /// Removes events that have left the window.
    pub(super) fn expire(&mut self, now: i64) {
        while let Some(event) = self
            .entries
            .front()
            .filter(|event| event.at <= now - self.window_ms)
        {
            let subject = event.subject();
            let times = i64::from(event.times);
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

    /// Every subject with enough events.
    pub(super) fn found(&self) -> Vec<EvaluationResult> {
        let enough = self
            .by_subject
            .iter()
            .filter(|(_, counted)| counted.times >= self.count_min);
        enough
            .map(|(subject, counted)| EvaluationResult {
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
