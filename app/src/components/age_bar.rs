//! Age of a backend's last observation on a scale of four poll intervals; the tick at two marks
//! the start of stale.

use domain::backend::BackendView;
use domain::format;
use leptos::prelude::*;

use crate::live::use_live;

/// Poll intervals on the whole bar; stale begins at half of it.
const PERIODS_SHOWN: i64 = 4;

#[component]
pub fn AgeBar(backend: BackendView) -> impl IntoView {
    let Some(age_ms) = backend.age_ms else {
        return view! {
            <svg class="agebar" height="8" role="img">
                <title>"Never read."</title>
                <rect class="void" x="0.5" y="2.5" width="99.5%" height="3"></rect>
            </svg>
        }
        .into_any();
    };
    let elapsed = use_live().elapsed();
    let poll_interval_ms = backend.poll_interval_ms;
    let width = move || {
        format!(
            "{}%",
            filled(age_ms.saturating_add(elapsed.get()), poll_interval_ms)
        )
    };
    let title = format!(
        "Last read {} ago; polled every {}, stale after {}.",
        format::duration(age_ms),
        format::period(poll_interval_ms),
        format::period(poll_interval_ms.saturating_mul(2)),
    );
    view! {
        <svg class="agebar" height="8" role="img">
            <title>{title}</title>
            <rect class="track" y="3" width="100%" height="2"></rect>
            <rect class="age" y="3" width=width height="2"></rect>
            <rect class="stale-from" x="50%" width="1" height="8"></rect>
        </svg>
    }
    .into_any()
}

/// Filled share of the bar, in whole per cent.
fn filled(age_ms: i64, poll_interval_ms: i64) -> i64 {
    let scale_ms = poll_interval_ms.saturating_mul(PERIODS_SHOWN).max(1);
    age_ms
        .max(0)
        .saturating_mul(100)
        .checked_div(scale_ms)
        .unwrap_or(0)
        .clamp(0, 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_periods_fill_half_and_nothing_overflows() {
        // Position of the tick, and both ends.
        assert_eq!(
            [
                filled(4_000, 2_000),
                filled(0, 2_000),
                filled(-5, 0),
                filled(i64::MAX, 2_000)
            ],
            [50, 0, 0, 100]
        );
    }
}
