//! Conditions on backends, and on what was written down: refused writes, forced unlocks, failed calls.

use super::count_window::CountWindow;
use super::kind::Kind;
use super::machine::Sign;
use super::round::{Found, Subject};
use super::rule::Rule;
use crate::backend::{BackendStatus, BackendView};
use crate::human;
use crate::names::{BackendName, LockId};

/// Something that was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Happened {
    pub at: i64,
    pub what: Counts,
    /// None: it is about the backend as a whole.
    pub lock: Option<LockId>,
    pub backend: BackendName,
    pub owner: Option<String>,
    pub times: u32,
    /// A clause: `token 1840 after 1841 was granted`.
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

/// For a condition without a window of its own, in milliseconds.
pub(super) const WINDOW_MS: i64 = 300_000;

/// A backend that never answered was asked so often before it counts as unreachable: as late as one that answered once, which
/// is stale after two of its polls. So a start while it restarts too tells nobody, and a restart nothing anew.
const ASKED_AT_START: usize = 3;

/// What the rule's condition says of each backend, beside those for which it holds.
pub fn judge_backends(
    index: usize,
    rule: &Rule,
    views: &[BackendView],
) -> Vec<(BackendName, Sign, Option<Found>)> {
    let seen = views.iter().filter(|view| rule.scope.has_backend(&view.name));
    seen.filter_map(|view| {
        let (sign, measure, why) = judge_backend(rule, view)?;
        let found = (sign == Sign::Holds).then(|| Found {
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

/// None: not a condition on backends.
fn judge_backend(rule: &Rule, view: &BackendView) -> Option<(Sign, i64, String)> {
    let is_blind = view.status.blinds_rows() || view.status == BackendStatus::Starting;
    let limit = rule.condition.main_value().unwrap_or(0);
    let answer = |holds: bool, measure: i64, why: String| {
        let sign = match (is_blind, holds) {
            (true, _) => Sign::Unknown,
            (false, true) => Sign::Holds,
            (false, false) => Sign::Clear,
        };
        (sign, measure, why)
    };
    Some(match rule.condition.kind {
        Kind::BackendUnreachable => {
            let sign = match view.status {
                BackendStatus::Starting => Sign::Unknown,
                BackendStatus::Down if view.age_ms.is_none() && view.answers_ms.len() < ASKED_AT_START => {
                    Sign::Unknown
                }
                BackendStatus::Stale | BackendStatus::Down => Sign::Holds,
                BackendStatus::Live | BackendStatus::Partial => Sign::Clear,
            };
            (sign, view.age_ms.unwrap_or(0), unreachable(view))
        }
        Kind::Coverage => {
            let seen = view.coverage.percent().map(i64::from);
            let below = !view.coverage.is_complete() && seen.is_none_or(|percent| percent * 10 < limit);
            let shown = seen.map_or("only a part".to_owned(), |percent| format!("{percent} %"));
            answer(
                below,
                seen.unwrap_or(0) * 10,
                format!("The last pass saw {shown} of its locks."),
            )
        }
        Kind::ClockOffset => match view.clock_offset_ms.known() {
            // As far as it is sure.
            Some(offset) => {
                let sure = (offset.abs() - view.clock_error_ms).max(0);
                let why = format!("Its clock is {} away from ours.", human::offset(*offset));
                answer(sure > limit, offset.abs(), why)
            }
            None => (Sign::Unknown, 0, String::new()),
        },
        Kind::RelistDifference => {
            let count = view.relist_differences;
            let why = format!(
                "{} that the watch had not told of.",
                human::counted(count, "lock", "locks")
            );
            answer(count > 0, i64::try_from(count).unwrap_or(i64::MAX), why)
        }
        _ => return None,
    })
}

fn unreachable(view: &BackendView) -> String {
    let last = view.age_ms.map_or_else(
        || "It never answered.".to_owned(),
        |ms| format!("The last answer was {} ago.", human::age(ms)),
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

/// Every lock, or backend, of which enough was recorded in the rule's window. `happened` is in the order of its times.
pub fn judge_counts<'h>(
    index: usize,
    rule: &'h Rule,
    happened: impl IntoIterator<Item = &'h Happened>,
    now: i64,
) -> Vec<Found> {
    let mut window = CountWindow::new(index, rule);
    let since = now - window.window_ms();
    for one in happened {
        if one.at > since && one.at <= now && window.takes(one) {
            window.add(one);
        }
    }
    window.found()
}

impl Happened {
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

pub(super) const fn counts(kind: Kind, what: Counts) -> bool {
    matches!(
        (kind, what),
        (Kind::FencingRejections, Counts::Rejection { .. })
            | (Kind::ForcedUnlocks, Counts::Unlock { .. })
            | (Kind::BreakGlass, Counts::Unlock { is_alone: true })
            | (Kind::RenewalFailures, Counts::RenewalFailed)
            | (Kind::ReleaseFailures, Counts::ReleaseFailed)
    )
}

pub(super) fn sentence(kind: Kind, count: i64, window: i64, how: &str) -> String {
    let number = count.unsigned_abs();
    let within = human::period(window);
    let told = if how.is_empty() {
        String::new()
    } else {
        format!(", the last {how}")
    };
    match kind {
        Kind::ForcedUnlocks | Kind::BreakGlass => {
            format!(
                "{} in {within}{told}.",
                human::counted(number, "forced unlock", "forced unlocks")
            )
        }
        Kind::RenewalFailures => format!(
            "{} failed in {within}.",
            human::counted(number, "renewal", "renewals")
        ),
        Kind::ReleaseFailures => format!(
            "{} failed in {within}.",
            human::counted(number, "release", "releases")
        ),
        _ => format!(
            "{} refused in {within}{told}.",
            human::counted(number, "write was", "writes were")
        ),
    }
}
