//! Headline of the overview: the finding in one sentence, and its coverage gaps.
//!
//! It never claims health for a backend that was not observed.

mod coverage_gaps;

use super::Overview;
use crate::backend::{BackendStatus, BackendView};
use crate::format::{self, counted};

/// A title, and the sentences below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub title: String,
    pub detail: String,
}

/// `elapsed_ms`: since the server answered.
pub fn finding(overview: &Overview, elapsed_ms: i64) -> Finding {
    let backends = &overview.backends;
    if backends.is_empty() {
        let detail = "Leasehold watches the systems that hold your locks. Add the first one.";
        return Finding {
            title: "No backend is configured".to_owned(),
            detail: detail.to_owned(),
        };
    }
    let all_seen = how_many(backends, BackendStatus::Live) == backends.len();
    let mut sentences: Vec<String> = held_text(overview, all_seen, elapsed_ms).into_iter().collect();
    sentences.extend(coverage_gaps::sentences(backends, elapsed_ms));
    Finding {
        title: title(overview, all_seen),
        detail: sentences.join(" "),
    }
}

fn how_many(backends: &[BackendView], status: BackendStatus) -> usize {
    backends.iter().filter(|backend| backend.status == status).count()
}

fn title(overview: &Overview, all_seen: bool) -> String {
    let backends = &overview.backends;
    let all_are = |status| how_many(backends, status) == backends.len();
    if let Some(deadlocks) = deadlocks(overview) {
        return match (overview.attention_total, overview.deadlocks_total) {
            (0, 1) => format!("{deadlocks} needs attention"),
            (0, _) => format!("{deadlocks} need attention"),
            (locks, _) => format!(
                "{deadlocks} and {} need attention",
                counted(locks, "lock", "locks")
            ),
        };
    }
    match overview.attention_total {
        0 if all_are(BackendStatus::Starting) => "Reading the backends for the first time".to_owned(),
        0 if all_are(BackendStatus::Down) => "No backend answers".to_owned(),
        0 if !all_seen => "Nothing visible needs attention".to_owned(),
        0 => "Nothing needs attention".to_owned(),
        1 => "1 lock needs attention".to_owned(),
        many => format!("{} locks need attention", format::count(many)),
    }
}

/// `1 deadlock`, `2 possible deadlocks`; `None` without one.
fn deadlocks(overview: &Overview) -> Option<String> {
    let is_possible = overview.deadlocks.iter().all(|deadlock| deadlock.doubt.is_some());
    let (singular, plural) = match is_possible {
        true => ("possible deadlock", "possible deadlocks"),
        false => ("deadlock", "deadlocks"),
    };
    (overview.deadlocks_total > 0).then(|| counted(overview.deadlocks_total as u64, singular, plural))
}

/// `None` if nothing was ever observed: a count of zero would be a claim.
fn held_text(overview: &Overview, all_seen: bool, elapsed_ms: i64) -> Option<String> {
    let oldest = overview
        .backends
        .iter()
        .filter_map(|backend| backend.age_ms)
        .max()?;
    let count = u64::try_from(overview.backends.len()).unwrap_or(u64::MAX);
    let backends = counted(count, "backend", "backends");
    if overview.attention_total > 0 {
        return Some(format!(
            "of {} held on {backends}.",
            format::count(overview.held_total)
        ));
    }
    let locks = counted(overview.held_total, "lock", "locks");
    if !all_seen {
        return Some(format!("{locks} on {backends}."));
    }
    // Whole seconds rounded up: a freshness claim must not be too young.
    let seconds = oldest.saturating_add(elapsed_ms).max(0).saturating_add(999) / 1000;
    let all = if count == 1 { "seen" } else { "all read" };
    Some(format!(
        "{locks} on {backends}, {all} within {} s.",
        seconds.max(1)
    ))
}

/// Title of the Backends page.
pub fn backends_title(backends: &[BackendView]) -> String {
    let all = backends.len();
    let starting = how_many(backends, BackendStatus::Starting);
    let down = how_many(backends, BackendStatus::Down);
    let unwell = all - starting - how_many(backends, BackendStatus::Live);
    match (all, unwell, starting) {
        (0, ..) => "No backend is configured".to_owned(),
        (1, 0, 0) => "The backend answers".to_owned(),
        (_, 0, 0) => format!("All {all} backends answer"),
        (_, 0, _) => format!("{} of {all} backends answer, {starting} starting", all - starting),
        (1, ..) if down == 1 => "The backend does not answer".to_owned(),
        (1, ..) => "The backend needs attention".to_owned(),
        _ if down == all => format!("None of {all} backends answers"),
        (_, 1, _) => format!("1 of {all} backends needs attention"),
        _ => format!("{unwell} of {all} backends need attention"),
    }
}

#[cfg(test)]
mod tests;
