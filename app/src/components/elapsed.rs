//! Running durations: held, waiting, age. They update once a second.

use std::sync::Arc;

use domain::lock::Lock;
use domain::reported::Reported;
use leptos::prelude::*;

use crate::components::reactive::changing;
use crate::format;
use crate::live::use_live;

/// Counts up from `ms` in the browser, in whole seconds: tenths would flicker.
#[component]
pub fn Elapsing(ms: i64) -> impl IntoView {
    let elapsed = use_live().elapsed();
    changing(move || format::duration(ms.saturating_add(elapsed.whole_seconds())))
}

/// Counts down to zero in the browser; only a reading can confirm the end.
#[component]
pub fn RunningDown(ms: i64) -> impl IntoView {
    let elapsed = use_live().elapsed();
    changing(move || format::duration(ms.saturating_sub(elapsed.whole_seconds()).max(0)))
}

/// An age, counting up.
#[component]
pub fn Age(ms: i64) -> impl IntoView {
    let elapsed = use_live().elapsed();
    changing(move || format::age(ms.saturating_add(elapsed.whole_seconds())))
}

/// Hold time of a lock. A lower bound if the acquisition time was not reported or the data is
/// old.
#[component]
pub fn Held(#[prop(into)] lock: Arc<Lock>) -> impl IntoView {
    match &lock.held_ms {
        Reported::Value(ms) if !lock.is_stale() => view! { <Elapsing ms=*ms/> }.into_any(),
        Reported::Value(ms) => at_least(*ms, WHEN_LAST_SEEN.to_owned()),
        Reported::Unknown(why) | Reported::NotApplicable(why) => {
            at_least(lock.held_at_least_ms, why.to_string())
        }
    }
}

fn at_least(ms: i64, why: String) -> AnyView {
    view! { <span title=why>{at_least_text(ms)}</span> }.into_any()
}

pub fn at_least_text(ms: i64) -> String {
    format!("\u{2265} {}", format::duration(ms))
}

/// Label for a lock whose last reading is old.
pub const WHEN_LAST_SEEN: &str = "held for, when last seen";
