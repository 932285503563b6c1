//! A moment: absolute UTC in the HTML, relative once the page is alive, local on hover.

use chrono::{DateTime, Utc};
use domain::{human, moment};
use leptos::prelude::*;

use crate::components::changing::changing;
use crate::live::use_live;

/// `03:12:41 UTC`; days only where the caller asks, because most moments are of today.
#[component]
pub fn Time(
    at: DateTime<Utc>,
    /// How long ago it was when the server answered, in milliseconds: what makes it relative in the browser.
    #[prop(optional, into)]
    ago_ms: Option<i64>,
    #[prop(optional)] with_date: bool,
) -> impl IntoView {
    let absolute = if with_date {
        moment::dated(at)
    } else {
        moment::timed(at)
    };
    let live = use_live();
    let elapsed = live.elapsed();
    let shown = {
        let absolute = absolute.clone();
        move || match (ago_ms, live.is_awake()) {
            (Some(ago), true) => format!("{} ago", human::duration((ago + elapsed.get()).max(0))),
            _ => absolute.clone(),
        }
    };
    let title = move || {
        let local = live.is_awake().then(|| local(at));
        local.map_or_else(|| absolute.clone(), |local| format!("{absolute}, {local} here"))
    };
    view! { <time datetime=moment::iso(at) title=title>{changing(shown)}</time> }
}

/// Whether `at` needs its date to be understood at `now`.
pub fn is_of_another_day(at: DateTime<Utc>, now: DateTime<Utc>) -> bool {
    at.date_naive() != now.date_naive()
}

/// By the clock and zone of the browser: only ever called there, after hydration.
fn local(at: DateTime<Utc>) -> String {
    #[expect(
        clippy::cast_precision_loss,
        reason = "milliseconds since 1970 stay exact far beyond year 9999"
    )]
    let ms = at.timestamp_millis() as f64;
    js_sys::Date::new(&ms.into()).to_string().into()
}
