//! Coverage gaps of the headline: a sentence per backend with partial or old data, and one
//! sentence for all that were never observed, so that a complete outage takes two lines.

use crate::backend::{BackendStatus, BackendView};
use crate::format;

/// `elapsed_ms`: since the server answered.
pub(super) fn sentences(backends: &[BackendView], elapsed_ms: i64) -> Vec<String> {
    let mut gaps: Vec<String> = backends
        .iter()
        .filter_map(|backend| gap_text(backend, elapsed_ms))
        .collect();
    let never = |starting: bool| -> Vec<&str> {
        backends
            .iter()
            .filter(|backend| backend.age_ms.is_none() && backend.status != BackendStatus::Live)
            .filter(|backend| (backend.status == BackendStatus::Starting) == starting)
            .map(|backend| backend.name.as_str())
            .collect()
    };
    let (starting, failing) = (never(true), never(false));
    match starting.len() {
        0 => {}
        1 => gaps.push(format!("{} is being read for the first time.", list(&starting))),
        _ => gaps.push(format!("{} are being read for the first time.", list(&starting))),
    }
    match failing.len() {
        0 => {}
        1 => gaps.push(format!(
            "{} was never read: its locks are unknown.",
            list(&failing)
        )),
        _ => gaps.push(format!(
            "{} were never read: their locks are unknown.",
            list(&failing)
        )),
    }
    gaps
}

fn gap_text(backend: &BackendView, elapsed_ms: i64) -> Option<String> {
    let name = &backend.name;
    let ago = format::age(backend.age_ms?.saturating_add(elapsed_ms));
    match backend.status {
        BackendStatus::Live | BackendStatus::Starting => None,
        BackendStatus::Partial => Some(match backend.coverage.percent() {
            Some(percent) => format!("{name} has partial coverage, {percent} %."),
            None => format!("{name} has partial coverage."),
        }),
        BackendStatus::Stale | BackendStatus::Down => Some(match backend.locks {
            0 => format!("{name}, last seen {ago} ago, does not answer: its locks are unknown."),
            1 => format!("The one on {name}, last seen {ago} ago, has no known state until it answers."),
            many => format!(
                "The {} on {name}, last seen {ago} ago, have no known state until it answers.",
                format::count(many)
            ),
        }),
    }
}

/// `a`, `a and b`, `a, b and c`, `a, b and 3 more`.
fn list(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [one, two] => format!("{one} and {two}"),
        [one, two, three] => format!("{one}, {two} and {three}"),
        [one, two, rest @ ..] => format!("{one}, {two} and {} more", rest.len()),
    }
}
