//! Replay of conditions that count records other than events: rejections, forced unlocks,
//! failed calls.

use std::collections::{HashMap, HashSet};

use super::preview_output::{FiringNumber, PreviewOutput};
use super::{Preview, next_evaluation};
use crate::alerts::backend_conditions::CountedEvent;
use crate::alerts::count_window::CountWindow;
use crate::alerts::evaluate::{EvaluationResult, Subject};
use crate::alerts::rule::Rule;
use crate::alerts::state_machine::{AlertPhase, AlertTransition, ConditionResult, Timing, step};

/// A subject whose alert is pending or firing, as of the last evaluation.
struct Tracked {
    phase: AlertPhase,
    sign: ConditionResult,
    /// Last result that held.
    found: EvaluationResult,
    firing: Option<FiringNumber>,
}

pub(super) fn preview(rule: &Rule, (from, to): (i64, i64), all: &[CountedEvent]) -> Preview {
    let mut window = CountWindow::new(0, rule);
    let relevant: Vec<&CountedEvent> = all.iter().filter(|event| window.accepts(event)).collect();
    let mut preview = PreviewOutput::new(rule, from, to);
    preview.read(relevant.iter().map(|event| u64::from(event.times)).sum());
    let ends = relevant
        .iter()
        .flat_map(|event| [event.at, event.at + window.window_ms()]);
    let mut moments: Vec<i64> = ends.map(next_evaluation).collect();
    moments.sort_unstable();
    moments.dedup();
    let mut tracked = HashMap::new();
    let mut next = relevant.into_iter().peekable();
    for now in moments.into_iter().filter(|at| (from..to).contains(at)) {
        while let Some(event) = next.next_if(|event| event.at <= now) {
            window.add(event);
        }
        window.expire(now);
        preview.evaluated();
        preview.measured(now, window.total());
        step_subjects(&mut tracked, window.found(), rule.timing, now, &mut preview);
    }
    run_due(&mut tracked, rule.timing, to, &mut preview);
    preview.finish(0, to)
}

/// Steps every subject: `Holds` for the results found, `Clear` for the others.
fn step_subjects(
    tracked: &mut HashMap<Subject, Tracked>,
    found: Vec<EvaluationResult>,
    timing: Timing,
    now: i64,
    preview: &mut PreviewOutput,
) {
    run_due(tracked, timing, now, preview);
    let mut holding = HashSet::with_capacity(found.len());
    for result in found {
        let before = tracked.remove(&result.subject);
        holding.insert(result.subject.clone());
        let mut firing = before.as_ref().and_then(|before| before.firing);
        let (phase, change) = step(
            before.map(|before| before.phase),
            ConditionResult::Holds,
            timing,
            now,
        );
        if change == Some(AlertTransition::Fired) {
            firing = Some(preview.fired(now, || result.clone()));
        }
        if let Some(phase) = phase {
            let subject = result.subject.clone();
            let now_tracked = Tracked {
                phase,
                sign: ConditionResult::Holds,
                found: result,
                firing,
            };
            tracked.insert(subject, now_tracked);
        }
    }
    tracked.retain(|subject, tracked| {
        holding.contains(subject) || {
            tracked.sign = ConditionResult::Clear;
            tracked.step(timing, now, preview)
        }
    });
}

/// Only time passes between two evaluations with changes: fires or resolves what became due in
/// between.
fn run_due(tracked: &mut HashMap<Subject, Tracked>, timing: Timing, now: i64, preview: &mut PreviewOutput) {
    tracked.retain(|_, tracked| {
        let due = tracked.phase.due(tracked.sign, timing).map(next_evaluation);
        due.filter(|due| *due < now)
            .is_none_or(|due| tracked.step(timing, due, preview))
    });
}

impl Tracked {
    /// Returns whether the subject is still tracked.
    fn step(&mut self, timing: Timing, now: i64, preview: &mut PreviewOutput) -> bool {
        let (phase, change) = step(Some(self.phase), self.sign, timing, now);
        match (change, self.firing) {
            (Some(AlertTransition::Fired), _) => {
                self.firing = Some(preview.fired(now, || self.found.clone()))
            }
            (Some(AlertTransition::Resolved), Some(firing)) => preview.resolved(firing, now),
            _ => {}
        }
        if let Some(phase) = phase {
            self.phase = phase;
        }
        phase.is_some()
    }
}
