//! Validity of an intent: its end, and the time left as a bar that runs down.

use leptos::prelude::*;

use super::parts::{name, time};
use crate::charts::svg::percent;
use crate::components::reactive::changing;
use crate::format;
use crate::live::use_live;
use crate::pages::unlock::data::UnlockStep;

/// Counted from the last response. At zero the unlock is read again: only the server decides
/// that it has expired.
#[component]
pub fn Validity(step: Signal<UnlockStep>, read: Callback<()>) -> impl IntoView {
    changing(move || step.with(|step| validity(step, read)))
}

fn validity(step: &UnlockStep, read: Callback<()>) -> AnyView {
    let unlock = &step.unlock;
    let left_ms = (unlock.expires_at - step.now).num_milliseconds().max(0);
    let whole_ms = (unlock.expires_at - unlock.created_at).num_milliseconds().max(1);
    let elapsed = use_live().elapsed();
    let left = move || left_ms.saturating_sub(elapsed.get()).max(0);
    let is_over = Memo::new(move |_| left() == 0);
    Effect::new(move |_| {
        if is_over.get() {
            read.run(());
        }
    });
    let share = move || percent(share(left(), whole_ms));
    // Whole seconds, rounded up: zero is the end.
    let text = move || format::period(left().saturating_add(999) / 1_000 * 1_000);
    view! {
        <div class="valid">
            <p><span class="small ink3">"valid for 2 minutes, until"</span><b>{time(unlock.expires_at)}</b></p>
            <svg class="cd" aria-hidden="true">
                <rect class="track" y="3" width="100%" height="2"></rect>
                <rect class="rest" y="3" width=share height="2"></rect>
            </svg>
            <p class="small ink2">{changing(text)}" left. Valid once, for "{name(&unlock.by_name)}" only. Nothing has been released yet."</p>
        </div>
    }
    .into_any()
}

/// In per cent.
#[expect(clippy::cast_precision_loss, reason = "milliseconds of two minutes are exact")]
fn share(left_ms: i64, whole_ms: i64) -> f64 {
    (left_ms as f64 * 100.0 / whole_ms as f64).clamp(0.0, 100.0)
}
