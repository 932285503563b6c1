//! Durations that go on: how long something is held, waited for, or old. They step once a second.

use domain::human;
use domain::known::Known;
use domain::lock::Lock;
use leptos::prelude::*;

use crate::components::changing::changing;
use crate::live::use_live;

/// Counts up from `ms` in the browser. Tenths would only flicker, so whole seconds are added.
#[component]
pub fn Elapsing(ms: i64) -> impl IntoView {
    let elapsed = whole_seconds();
    changing(move || human::duration(ms.saturating_add(elapsed.get())))
}

/// Counts down to zero in the browser: that something ended is for a reading to say.
#[component]
pub fn RunningDown(ms: i64) -> impl IntoView {
    let elapsed = whole_seconds();
    changing(move || human::duration(ms.saturating_sub(elapsed.get()).max(0)))
}

/// How old something is, counting up.
#[component]
pub fn Age(ms: i64) -> impl IntoView {
    let elapsed = whole_seconds();
    changing(move || human::age(ms.saturating_add(elapsed.get())))
}

/// How long a lock is held. Where nobody told when it was taken, or nobody can see it now: at least so long.
#[component]
pub fn Held(lock: Lock) -> impl IntoView {
    match lock.held_ms {
        Known::Known(ms) if !lock.is_stale() => view! { <Elapsing ms/> }.into_any(),
        Known::Known(ms) => at_least(ms, WHEN_LAST_SEEN.to_owned()),
        Known::Unknown(why) | Known::Absent(why) => at_least(lock.held_at_least_ms, why.into_owned()),
    }
}

fn at_least(ms: i64, why: String) -> AnyView {
    view! { <span title=why>{at_least_word(ms)}</span> }.into_any()
}

pub fn at_least_word(ms: i64) -> String {
    format!("\u{2265} {}", human::duration(ms))
}

/// Where a lock was last seen by a reading that is old by now.
pub const WHEN_LAST_SEEN: &str = "held so long when it was last seen";

pub fn whole_seconds() -> Memo<i64> {
    let elapsed = use_live().elapsed();
    Memo::new(move |_| elapsed.get() / 1000 * 1000)
}
