//! Header of every step: breadcrumbs, the lock's name, and the current step.

use domain::escape::visible;
use domain::names::LockId;
use leptos::prelude::*;

use crate::components::state_badge::Shape;
use crate::links;

const TITLE_CHARS_MAX: usize = 80;
const SCROLLS_FROM_BYTES: usize = 300;

/// The current step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    Review,
    Confirm,
    Result,
}

/// A long name loses its start, never its end.
pub(super) fn document_title(id: &LockId) -> String {
    let name = id.resource.text();
    let shown = visible(&name);
    let count = shown.chars().count();
    let end: String = shown
        .chars()
        .skip(count.saturating_sub(TITLE_CHARS_MAX))
        .collect();
    format!("Unlock {end}, {}", id.backend)
}

pub(super) fn head(id: &LockId, at: Phase) -> AnyView {
    let name = id.resource.text();
    let shown = visible(&name).into_owned();
    // A name that scrolls must be reachable by keyboard.
    let scrolls = (name.len() > SCROLLS_FROM_BYTES).then_some("0");
    let by_backend = links::with_query("/locks", [("backend", id.backend.as_str())]);
    view! {
        <nav class="crumbs" aria-label="breadcrumb">
            <ol>
                <li><a class="link" href="/locks">"Locks"</a></li>
                <li><a class="link" href=by_backend>{id.backend.to_string()}</a></li>
                <li class="mono"><a class="link" href=links::lock_path(id) rel=external(&name)><bdi>{shown.clone()}</bdi></a></li>
            </ol>
        </nav>
        <div class="uh">
            <div>
                <p class="small ink3">"Forced unlock"</p>
                <h1 tabindex=scrolls><bdi dir="ltr">{shown}</bdi></h1>
            </div>
            {phases(at)}
        </div>
    }
    .into_any()
}

/// `rel` of a link with this name in its path.
pub(super) fn external(name: &str) -> Option<&'static str> {
    links::needs_browser(name).then_some("external")
}

fn phases(at: Phase) -> AnyView {
    let phases = [
        (Phase::Review, "1", "Review"),
        (Phase::Confirm, "2", "Confirm"),
        (Phase::Result, "3", "Result"),
    ];
    let items = phases.map(|(phase, number, label)| {
        let current = (phase == at).then_some("step");
        let done =
            (phase < at).then(|| view! { <Shape name="ok"/><span class="sr">"done: "</span> }.into_any());
        view! { <li aria-current=current>{done}<b>{number}</b>" "{label}</li> }.into_any()
    });
    view! { <ol class="steps small" aria-label="steps">{items.into_iter().collect_view()}</ol> }.into_any()
}
