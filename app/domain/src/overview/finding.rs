//! The first line of the first page: what was found, in one sentence, and what it does not cover.
//!
//! It never says that all is well about a backend that was not seen.

use super::Overview;
use crate::backend::{BackendStatus, BackendView};
use crate::human::{self, counted};

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
        return Finding {
            title: "No backend is configured".to_owned(),
            detail: "Leasehold watches the systems that hold your locks. Tell it about the first one."
                .to_owned(),
        };
    }
    let unseen = backends
        .iter()
        .filter(|backend| backend.status != BackendStatus::Live)
        .count();
    let mut sentences = vec![held(overview, unseen == 0, elapsed_ms)];
    sentences.extend(
        backends
            .iter()
            .filter_map(|backend| unseen_sentence(backend, elapsed_ms)),
    );
    Finding {
        title: title(overview, unseen),
        detail: sentences.join(" "),
    }
}

fn title(overview: &Overview, unseen: usize) -> String {
    match overview.attention_total {
        0 if overview
            .backends
            .iter()
            .all(|backend| backend.status == BackendStatus::Starting) =>
        {
            "Reading the backends for the first time".to_owned()
        }
        0 if overview
            .backends
            .iter()
            .all(|backend| backend.status == BackendStatus::Down) =>
        {
            "No backend answers".to_owned()
        }
        0 if unseen > 0 => "Nothing that can be seen needs attention".to_owned(),
        0 => "Nothing needs attention".to_owned(),
        1 => "1 lock needs attention".to_owned(),
        many => format!("{} locks need attention", human::count(many)),
    }
}

fn held(overview: &Overview, all_seen: bool, elapsed_ms: i64) -> String {
    let backends = counted(overview.backends.len() as u64, "backend", "backends");
    if overview.attention_total > 0 {
        return format!("of {} held on {backends}.", human::count(overview.held_total));
    }
    let locks = counted(overview.held_total, "lock", "locks");
    let oldest = overview
        .backends
        .iter()
        .filter_map(|backend| backend.age_ms)
        .max();
    match oldest.filter(|_| all_seen) {
        // Whole seconds rounded up: a claim about freshness errs on the old side.
        Some(ms) => {
            let seconds = ms.saturating_add(elapsed_ms).max(0).saturating_add(999) / 1000;
            let all = if overview.backends.len() == 1 {
                "seen"
            } else {
                "all seen"
            };
            format!("{locks} on {backends}, {all} within {} s.", seconds.max(1))
        }
        None => format!("{locks} on {backends}."),
    }
}

/// What the title does not cover, one sentence per backend that is not wholly seen.
fn unseen_sentence(backend: &BackendView, elapsed_ms: i64) -> Option<String> {
    let name = &backend.name;
    let ago = |ms: i64| human::age(ms.saturating_add(elapsed_ms));
    match backend.status {
        BackendStatus::Live => None,
        BackendStatus::Starting => Some(format!("{name} is being read for the first time.")),
        BackendStatus::Partial => Some(match backend.coverage.percent() {
            Some(percent) => format!("{name} was seen only in part, {percent} %."),
            None => format!("{name} was seen only in part."),
        }),
        BackendStatus::Stale | BackendStatus::Down => Some(match backend.age_ms {
            Some(ms) if backend.locks == 1 => {
                format!(
                    "The one on {name}, last seen {} ago, is not judged until it answers.",
                    ago(ms)
                )
            }
            Some(ms) if backend.locks > 0 => format!(
                "The {} on {name}, last seen {} ago, are not judged until it answers.",
                human::count(backend.locks),
                ago(ms)
            ),
            Some(ms) => format!(
                "{name}, last seen {} ago, does not answer: what it holds is unknown.",
                ago(ms)
            ),
            None => format!("{name} was never seen: what it holds is unknown."),
        }),
    }
}

/// Title of the Backends page.
pub fn backends_title(backends: &[BackendView]) -> String {
    let unwell = backends
        .iter()
        .filter(|backend| !matches!(backend.status, BackendStatus::Live | BackendStatus::Starting))
        .count();
    let starting = backends
        .iter()
        .filter(|backend| backend.status == BackendStatus::Starting)
        .count();
    match (backends.len(), unwell, starting) {
        (0, _, _) => "No backend is configured".to_owned(),
        (1, 0, 0) => "The backend answers".to_owned(),
        (all, 0, 0) => format!("All {all} backends answer"),
        (all, 0, starting) => format!("{} of {all} backends answer, {starting} starting", all - starting),
        (1, _, _) => "The backend needs attention".to_owned(),
        (all, 1, _) => format!("1 of {all} backends needs attention"),
        (all, unwell, _) => format!("{unwell} of {all} backends need attention"),
    }
}

#[cfg(test)]
mod tests;
