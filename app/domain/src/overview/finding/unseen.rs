//! What the finding does not cover: a sentence per backend that was seen in part or not lately, and one for all
//! that were never seen, so that a whole outage still reads as two lines.

use crate::backend::{BackendStatus, BackendView};
use crate::human;

/// `elapsed_ms`: since the server answered.
pub(super) fn sentences(backends: &[BackendView], elapsed_ms: i64) -> Vec<String> {
    let mut said: Vec<String> = backends
        .iter()
        .filter_map(|backend| one(backend, elapsed_ms))
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
        1 => said.push(format!("{} is being read for the first time.", list(&starting))),
        _ => said.push(format!("{} are being read for the first time.", list(&starting))),
    }
    match failing.len() {
        0 => {}
        1 => said.push(format!(
            "{} was never seen: what it holds is unknown.",
            list(&failing)
        )),
        _ => said.push(format!(
            "{} were never seen: what they hold is unknown.",
            list(&failing)
        )),
    }
    said
}

fn one(backend: &BackendView, elapsed_ms: i64) -> Option<String> {
    let name = &backend.name;
    let ago = human::age(backend.age_ms?.saturating_add(elapsed_ms));
    match backend.status {
        BackendStatus::Live | BackendStatus::Starting => None,
        BackendStatus::Partial => Some(match backend.coverage.percent() {
            Some(percent) => format!("{name} was seen only in part, {percent} %."),
            None => format!("{name} was seen only in part."),
        }),
        BackendStatus::Stale | BackendStatus::Down => Some(match backend.locks {
            0 => format!("{name}, last seen {ago} ago, does not answer: what it holds is unknown."),
            1 => format!("The one on {name}, last seen {ago} ago, is not judged until it answers."),
            many => format!(
                "The {} on {name}, last seen {ago} ago, are not judged until it answers.",
                human::count(many)
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
