//! An outcome as shape, label and hue. Unknown is a shape and a label without a hue.

use leptos::prelude::*;

use crate::components::state_badge::Shape;

/// Sprite shape and CSS class of the hue.
const fn badge_style(kind: Kind) -> (&'static str, &'static str) {
    match kind {
        Kind::Done => ("healthy", "healthy quiet"),
        Kind::Step => ("pending", "blind quiet"),
        Kind::Missed => ("orphaned", "warning"),
        Kind::Refused => ("x", "warning"),
        Kind::Over => ("expired", "blind quiet"),
        Kind::Unknown => ("unknown", "blind unknown"),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Done,
    /// More steps follow.
    Step,
    /// Another holding, or none: nothing was touched.
    Missed,
    Refused,
    Over,
    Unknown,
}

fn kind(outcome: &str) -> Kind {
    match outcome {
        "ok" | "released" | "approved" | "reviewed" => Kind::Done,
        "pending" | "begun" => Kind::Step,
        "holder_changed" | "already_free" => Kind::Missed,
        "expired" | "cancelled" => Kind::Over,
        "outcome_unknown" => Kind::Unknown,
        _ => Kind::Refused,
    }
}

/// Label: the outcome without its underscores.
pub fn outcome_label(outcome: &str) -> String {
    domain::escape::visible(&outcome.replace('_', " ")).into_owned()
}

pub(super) fn badge(outcome: &str) -> AnyView {
    let (shape, hue) = badge_style(kind(outcome));
    view! { <span class=format!("st {hue}")><Shape name=shape/>{outcome_label(outcome)}</span> }.into_any()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_unknown_outcome_looks_unknown() {
        // The final states of an unlock, and an outcome that this page does not know.
        use domain::unlock::UnlockState;
        for state in UnlockState::ALL {
            assert_eq!(
                kind(state.as_str()) == Kind::Unknown,
                state == UnlockState::OutcomeUnknown
            );
        }
        assert_eq!(kind("name_mismatch"), Kind::Refused);
        assert_eq!(kind("something_new"), Kind::Refused);
        assert_eq!(outcome_label("already_free\u{202e}"), "already free\\u{202e}");
    }
}
