//! Output of a preview: firings, series of the worst measure, gaps.

use super::{Firing, Gap, Preview, SeriesPoint};
use crate::alerts::condition_kind::ConditionKind;
use crate::alerts::evaluate::EvaluationResult;
use crate::alerts::rule::Rule;
use crate::names::BackendName;

/// Points of the series.
const POINTS: i64 = 240;
/// Firings that are listed; the rest is counted.
const FIRINGS_MAX: usize = 1_000;

#[derive(Clone)]
pub(super) struct PreviewOutput {
    /// Until it is finished, `to` is the latest possible end.
    preview: Preview,
    /// Backends of the rule; empty: all.
    backends: Vec<BackendName>,
    /// Lower values are worse.
    is_falling: bool,
    /// Without an event the measure is 0.
    is_of_windows: bool,
    /// Length of one point, in milliseconds.
    step: i64,
}

/// Index of a firing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FiringNumber(usize);

/// Its holds are measured as a multiple of their own history, and in time.
fn has_two_parts(rule: &Rule) -> bool {
    rule.condition.kind == ConditionKind::LongHeld && rule.condition.main_value().is_some()
}

impl PreviewOutput {
    pub(super) fn new(rule: &Rule, from: i64, to: i64) -> Self {
        let point = |index| SeriesPoint {
            at: from + (to - from) * (index + 1) / POINTS,
            measure: None,
        };
        let preview = Preview {
            from,
            to,
            series: (0..POINTS).map(point).collect(),
            held: match has_two_parts(rule) {
                true => (0..POINTS).map(point).collect(),
                false => Vec::new(),
            },
            ..Preview::default()
        };
        Self {
            preview,
            backends: rule.scope.backends.clone(),
            is_falling: rule.condition.kind == ConditionKind::NearExpiry,
            is_of_windows: rule.condition.kind.about() == crate::alerts::SubjectKind::Prefix,
            step: ((to - from) / POINTS).max(1),
        }
    }

    pub(super) const fn read(&mut self, events: u64) {
        self.preview.events += events;
    }

    pub(super) const fn evaluated(&mut self) {
        self.preview.evaluations += 1;
    }

    pub(super) fn acquired(&mut self, has_ttl: bool) {
        self.preview.acquisitions += 1;
        self.preview.without_ttl += u64::from(!has_ttl);
    }

    /// A hold whose length is uncertain ended.
    pub(super) const fn uncertain_hold(&mut self) {
        self.preview.uncertain_holds += 1;
    }

    /// An event that no window counts.
    pub(super) const fn not_counted(&mut self) {
        self.preview.uncounted += 1;
    }

    pub(super) const fn uncounted(&self) -> u64 {
        self.preview.uncounted
    }

    pub(super) fn fired(&mut self, at: i64, found: impl FnOnce() -> EvaluationResult) -> FiringNumber {
        let number = self.preview.firings.len();
        self.preview.count += 1;
        if number < FIRINGS_MAX {
            let found = found();
            self.preview.firings.push(Firing {
                at,
                until: None,
                subject: found.subject,
                owner: found.owner,
                measure: found.measure,
                why: found.why,
            });
        }
        FiringNumber(number)
    }

    pub(super) fn resolved(&mut self, number: FiringNumber, at: i64) {
        if let Some(firing) = self.preview.firings.get_mut(number.0) {
            firing.until = Some(at);
        }
    }

    /// Keeps the worst measure of each point.
    pub(super) fn measured(&mut self, at: i64, measure: i64) {
        let is_falling = self.is_falling;
        let Some(index) = self.point_of(at) else { return };
        if let Some(point) = self.preview.series.get_mut(index) {
            let worst = point.measure.map_or(measure, |known| {
                if is_falling {
                    known.min(measure)
                } else {
                    known.max(measure)
                }
            });
            point.measure = Some(worst);
        }
    }

    /// Keeps the longest hold of each point, for rules with two parts.
    pub(super) fn held(&mut self, at: i64, held_ms: i64) {
        let Some(index) = self.point_of(at) else { return };
        if let Some(point) = self.preview.held.get_mut(index) {
            point.measure = Some(point.measure.map_or(held_ms, |known| known.max(held_ms)));
        }
    }

    fn point_of(&self, at: i64) -> Option<usize> {
        let (from, to) = (self.preview.from, self.preview.to);
        if at < from || at >= to {
            return None;
        }
        usize::try_from((at - from) / self.step)
            .ok()
            .map(|index| index.min(self.preview.series.len().saturating_sub(1)))
    }

    /// Ends of the points between two moments.
    pub(super) fn ends_between(&self, from: i64, to: i64) -> impl Iterator<Item = i64> + use<> {
        let (start, end, step) = (self.preview.from, self.preview.to, self.step);
        let first = (from.max(start) - start) / step + 1;
        let last = (to.min(end) - start) / step;
        (first..=last).map(move |index| start + index * step - 1)
    }

    pub(super) fn gap(&mut self, gap: &Gap) {
        if gap.ended <= self.preview.from {
            return;
        }
        let is_of_rule = |backend: &BackendName| self.backends.is_empty() || self.backends.contains(backend);
        match &gap.backend {
            // An outage of the only backend of a rule is a gap.
            Some(backend) if self.backends.len() != 1 => {
                self.preview.outages += u64::from(is_of_rule(backend));
            }
            Some(backend) if !is_of_rule(backend) => {}
            _ => self
                .preview
                .gaps
                .push((gap.began.max(self.preview.from), gap.ended)),
        }
    }

    pub(super) fn finish(self, locks: u64, to: i64) -> Preview {
        let mut preview = self.preview;
        (preview.locks, preview.to) = (locks, to);
        preview.gaps.retain(|(began, _)| *began < to);
        preview
            .gaps
            .iter_mut()
            .for_each(|(_, ended)| *ended = to.min(*ended));
        let points = (to - preview.from + self.step - 1) / self.step;
        preview
            .series
            .truncate(usize::try_from(points.max(1)).unwrap_or(1));
        if let Some(last) = preview.series.last_mut() {
            last.at = last.at.min(to);
        }
        preview.firings.sort_by_key(|firing| firing.at);
        if self.is_of_windows {
            let gaps = &preview.gaps;
            let is_watched = |at: i64| {
                !gaps
                    .iter()
                    .any(|(began, ended)| (*began..*ended).contains(&(at - 1)))
            };
            for point in preview.series.iter_mut().filter(|point| is_watched(point.at)) {
                point.measure.get_or_insert(0);
            }
        }
        preview
    }
}
