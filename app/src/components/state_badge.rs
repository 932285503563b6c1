//! A state as shape, label and hue, in that order of weight.

use domain::backend::BackendStatus;
use domain::state::{LockState, Severity};
use leptos::prelude::*;

/// One shape of the sprite; `name` is its id without `s-`.
#[component]
pub fn Shape(#[prop(into)] name: Oco<'static, str>) -> impl IntoView {
    view! { <svg class="sh" viewBox="0 0 12 12" aria-hidden="true"><use href=format!("#s-{name}")></use></svg> }
}

/// CSS class of a severity.
pub const fn hue(severity: Severity) -> &'static str {
    match severity {
        Severity::Critical => "critical",
        Severity::Warning => "warning",
        Severity::Waiting => "waiting",
        Severity::Blind => "blind",
        Severity::Healthy => "healthy",
    }
}

/// Healthy, stale and unknown have muted words; the others carry their hue.
const fn quiet(severity: Severity) -> bool {
    matches!(severity, Severity::Blind | Severity::Healthy)
}

pub fn badge_class(state: LockState, small: bool) -> String {
    let severity = state.severity();
    format!(
        "st {}{}{}",
        hue(severity),
        if quiet(severity) { " quiet" } else { "" },
        if small { " small" } else { "" }
    )
}

#[component]
pub fn StateBadge(
    state: LockState,
    /// Appended to the label: `stale, 14 s`.
    #[prop(optional, into)]
    note: Option<String>,
    /// Reason, on hover.
    #[prop(optional, into)]
    why: Option<String>,
    #[prop(optional)] small: bool,
) -> impl IntoView {
    let class = badge_class(state, small);
    let label = match note.filter(|note| !note.is_empty()) {
        Some(note) => format!("{}, {note}", state.label()),
        None => state.label().to_owned(),
    };
    view! { <span class=class title=why><Shape name=state.as_str()/>{label}</span> }
}

/// Shape, hue and label of a backend's status.
pub const fn status_badge(status: BackendStatus) -> (&'static str, &'static str, &'static str) {
    match status {
        BackendStatus::Starting => ("pending", "blind", "starting"),
        BackendStatus::Live => ("healthy", "healthy", "answering"),
        BackendStatus::Partial => ("near_expiry", "warning", "partial"),
        BackendStatus::Stale => ("stale", "blind", "stale"),
        BackendStatus::Down => ("x", "critical", "down"),
    }
}

#[component]
pub fn BackendBadge(status: BackendStatus) -> impl IntoView {
    let (shape, hue, label) = status_badge(status);
    let quiet = if matches!(status, BackendStatus::Partial | BackendStatus::Down) {
        ""
    } else {
        " quiet"
    };
    view! { <span class=format!("st small {hue}{quiet}")><Shape name=shape/>{label}</span> }
}
