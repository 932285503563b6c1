//! An outcome as shape, word and hue. Unknown is a shape and a word, never a hue.

use leptos::prelude::*;

use crate::components::state_badge::Shape;

/// Shape of the sprite and class of the hue.
const fn look(kind: Kind) -> (&'static str, &'static str) {
    match kind {
        Kind::Done => ("healthy", "healthy quiet"),
        Kind::Step => ("pending", "blind quiet"),
        Kind::Missed => ("holder_gone", "warning"),
        Kind::Refused => ("x", "warning"),
        Kind::Over => ("expired_present", "blind quiet"),
        Kind::Unknown => ("unknown", "blind unknown"),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Done,
    /// More is to follow.
    Step,
    /// Somebody else's holding, or none: nothing was touched.
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

/// For people: the stable word without its underscores.
pub fn word(outcome: &str) -> String {
    domain::escape::visible(&outcome.replace('_', " ")).into_owned()
}

pub(super) fn badge(outcome: &str) -> AnyView {
    let (shape, hue) = look(kind(outcome));
    view! { <span class=format!("st {hue}")><Shape name=shape/>{word(outcome)}</span> }.into_any()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_outcome_but_the_unknown_one_looks_unknown_and_a_new_refusal_looks_refused() {
        // The final states of an unlock, and words that this page has never heard.
        use domain::unlock::UnlockState;
        for state in UnlockState::ALL {
            assert_eq!(
                kind(state.wire()) == Kind::Unknown,
                state == UnlockState::OutcomeUnknown
            );
        }
        assert_eq!(kind("name_mismatch"), Kind::Refused);
        assert_eq!(kind("something_new"), Kind::Refused);
        assert_eq!(word("already_free\u{202e}"), "already free\\u{202e}");
    }
}
