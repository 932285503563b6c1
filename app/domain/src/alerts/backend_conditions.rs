//! Conditions on backends and on recorded events: rejected writes, forced unlocks, failed
//! calls.

use super::condition_kind::ConditionKind;
use super::count_window::CountWindow;
use super::evaluate::{EvaluationResult, Subject};
use super::rule::Rule;
use super::state_machine::ConditionResult;
use crate::backend::{BackendStatus, BackendView};
use crate::format;
use crate::names::{BackendName, LockId};

/// A recorded event that a condition counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CountedEvent {
    pub at: i64,
    pub what: Counts,
    /// `None`: the event concerns the backend as a whole.
    pub lock: Option<LockId>,
    pub backend: BackendName,
    pub owner: Option<String>,
    pub times: u32,
    /// A clause for the alert's sentence: `token 1840 after 1841 was granted`.
    pub how: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counts {
    /// `is_older`: a newer token had been granted.
    Rejection {
        is_older: bool,
    },
    Unlock {
        is_alone: bool,
    },
    RenewalFailed,
    ReleaseFailed,
}

/// Window of conditions that have no window parameter, in milliseconds.
pub(super) const WINDOW_MS: i64 = 300_000;

/// Failed scans after which a backend that never answered counts as unreachable. As late as for
/// a backend that answered once, which is stale after two polls: if both restart together, no
/// alert fires or repeats.
const FAILED_SCANS_AT_START: usize = 3;

/// Results of the rule's condition for all backends, and the number for which it holds.
pub fn evaluate_backends(
    index: usize,
    rule: &Rule,
    views: &[BackendView],
) -> Vec<(BackendName, ConditionResult, Option<EvaluationResult>)> {
    let seen = views.iter().filter(|view| rule.scope.has_backend(&view.name));
    seen.filter_map(|view| {
        let (sign, measure, why) = evaluate_backend(rule, view)?;
        let found = (sign == ConditionResult::Holds).then(|| EvaluationResult {
            rule: index,
            subject: Subject::Backend(view.name.clone()),
            owner: None,
            holding: String::new(),
            measure,
            why,
        });
        Some((view.name.clone(), sign, found))
    })
    .collect()
}

/// `None`: not a condition on backends.
fn evaluate_backend(rule: &Rule, view: &BackendView) -> Option<(ConditionResult, i64, String)> {
    let is_unobserved = view.status.blinds_rows() || view.status == BackendStatus::Starting;
    let limit = rule.condition.main_value().unwrap_or(0);
    let result = |holds: bool, measure: i64, why: String| {
        let sign = match (is_unobserved, holds) {
            (true, _) => ConditionResult::Unknown,
            (false, true) => ConditionResult::Holds,
            (false, false) => ConditionResult::Clear,
        };
        (sign, measure, why)
    };
    Some(match rule.condition.kind {
        ConditionKind::BackendUnreachable => {
            let sign = match view.status {
                BackendStatus::Starting => ConditionResult::Unknown,
                BackendStatus::Down
                    if view.age_ms.is_none() && view.answers_ms.len() < FAILED_SCANS_AT_START =>
                {
                    ConditionResult::Unknown
                }
                BackendStatus::Stale | BackendStatus::Down => ConditionResult::Holds,
                BackendStatus::Live | BackendStatus::Partial => ConditionResult::Clear,
            };
            (sign, view.age_ms.unwrap_or(0), unreachable(view))
        }
        ConditionKind::Coverage => {
            let seen = view.coverage.percent().map(i64::from);
            let below = !view.coverage.is_complete() && seen.is_none_or(|percent| percent * 10 < limit);
            let shown = seen.map_or("only a part".to_owned(), |percent| format!("{percent} %"));
            result(
                below,
                seen.unwrap_or(0) * 10,
                format!("The last scan read {shown} of its locks."),
            )
        }
        ConditionKind::ClockOffset => match view.clock_offset_ms.known() {
            // Only the part of the offset that exceeds the measurement error.
            Some(offset) => {
                let certain_ms = (offset.abs() - view.clock_error_ms).max(0);
                let why = format!(
                    "Its clock is {} away from the console's.",
                    format::offset(*offset)
                );
                result(certain_ms > limit, offset.abs(), why)
            }
            None => (ConditionResult::Unknown, 0, String::new()),
        },
        ConditionKind::RelistDifference => {
            let count = view.relist_differences;
            let why = format!(
                "{} that the watch missed.",
                format::counted(count, "lock", "locks")
            );
            result(count > 0, i64::try_from(count).unwrap_or(i64::MAX), why)
        }
        _ => return None,
    })
}

fn unreachable(view: &BackendView) -> String {
    let last = view.age_ms.map_or_else(
        || "It never answered.".to_owned(),
        |ms| format!("The last answer was {} ago.", format::age(ms)),
    );
    match &view.fault {
        Some(fault) => {
            let mut why = fault.message.chars();
            let first = why.next().map(|first| first.to_uppercase().collect::<String>());
            let first = first.unwrap_or_default();
            format!(
                "{last} {first}{}. Alerts about its locks keep their state.",
                why.as_str()
            )
        }
        None => format!("{last} Alerts about its locks keep their state."),
    }
}

/// Every lock or backend with enough events in the rule's window. `happened` is sorted by time.
pub fn evaluate_counts<'h>(
    index: usize,
    rule: &'h Rule,
    happened: impl IntoIterator<Item = &'h CountedEvent>,
    now: i64,
) -> Vec<EvaluationResult> {
    let mut window = CountWindow::new(index, rule);
    let since = now - window.window_ms();
    for event in happened {
        if event.at > since && event.at <= now && window.accepts(event) {
            window.add(event);
        }
    }
    window.found()
}

impl CountedEvent {
    pub(super) fn subject(&self) -> Subject {
        match &self.lock {
            Some(lock) => Subject::Lock(lock.clone()),
            None => Subject::Backend(self.backend.clone()),
        }
    }

    pub(super) fn is_in_scope(&self, rule: &Rule) -> bool {
        match &self.lock {
            Some(lock) => rule
                .scope
                .has(&lock.backend, lock.resource.as_bytes(), self.owner.as_deref()),
            None => rule.scope.has_backend(&self.backend),
        }
    }
}

pub(super) const fn counts(kind: ConditionKind, what: Counts) -> bool {
    matches!(
        (kind, what),
        (ConditionKind::FencingRejections, Counts::Rejection { .. })
            | (ConditionKind::ForcedUnlocks, Counts::Unlock { .. })
            | (ConditionKind::BreakGlass, Counts::Unlock { is_alone: true })
            | (ConditionKind::RenewalFailures, Counts::RenewalFailed)
            | (ConditionKind::ReleaseFailures, Counts::ReleaseFailed)
    )
}

pub(super) fn sentence(kind: ConditionKind, count: i64, window: i64, how: &str) -> String {
    let number = count.unsigned_abs();
    let within = format::period(window);
    let modes = if how.is_empty() {
        String::new()
    } else {
        format!(", the last {how}")
    };
    match kind {
        ConditionKind::ForcedUnlocks | ConditionKind::BreakGlass => {
            format!(
                "{} in {within}{modes}.",
                format::counted(number, "forced unlock", "forced unlocks")
            )
        }
        ConditionKind::RenewalFailures => format!(
            "{} failed in {within}.",
            format::counted(number, "renewal", "renewals")
        ),
        ConditionKind::ReleaseFailures => format!(
            "{} failed in {within}.",
            format::counted(number, "release", "releases")
        ),
        _ => format!(
            "{} refused in {within}{modes}.",
            format::counted(number, "write was", "writes were")
        ),
    }
}
