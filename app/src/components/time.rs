//! A moment: absolute UTC in the HTML, relative after hydration, local time on hover.

use chrono::{DateTime, TimeDelta, Utc};
use domain::time_format;
use leptos::prelude::*;

use crate::components::reactive::changing;
use crate::format;
use crate::live::use_live;

/// `03:12:41 UTC`; with the day only if requested, because most moments are of today.
#[component]
pub fn Time(
    at: DateTime<Utc>,
    /// Age at the time of the response, in milliseconds; makes it relative in the browser.
    #[prop(optional, into)]
    ago_ms: Option<i64>,
    #[prop(optional)] with_date: bool,
) -> impl IntoView {
    let absolute = if with_date {
        time_format::dated(at)
    } else {
        time_format::timed(at)
    };
    let live = use_live();
    let elapsed = live.elapsed();
    let shown = {
        let absolute = absolute.clone();
        move || match (ago_ms, live.is_awake()) {
            (Some(ago), true) => format!("{} ago", format::duration((ago + elapsed.get()).max(0))),
            _ => absolute.clone(),
        }
    };
    let title = move || {
        let local = live.is_awake().then(|| local(at));
        local.map_or_else(|| absolute.clone(), |local| format!("{absolute}, {local} here"))
    };
    view! { <time datetime=time_format::iso(at) title=title>{changing(shown)}</time> }
}

/// A moment in milliseconds since 1970; the heading and the tooltip name the time zone.
pub fn short_time(ms: i64, with_day: bool) -> AnyView {
    let Some(at) = DateTime::from_timestamp_millis(ms) else {
        return "unknown".into_any();
    };
    let dated = time_format::dated(at);
    let from = if with_day { 5 } else { 11 };
    let short = dated.get(from..19).unwrap_or(&dated).to_owned();
    view! { <time datetime=time_format::iso(at) title=dated>{short}</time> }.into_any()
}

/// The moment of an observation that is `age_ms` old: with its date if that was another day.
pub fn observed_time(at: DateTime<Utc>, age_ms: Option<i64>) -> AnyView {
    let age = TimeDelta::try_milliseconds(age_ms.unwrap_or(0)).unwrap_or_default();
    let now = at.checked_add_signed(age).unwrap_or(at);
    view! { <Time at with_date=is_of_another_day(at, now)/> }.into_any()
}

/// Whether `at` needs its date at `now`.
pub fn is_of_another_day(at: DateTime<Utc>, now: DateTime<Utc>) -> bool {
    at.date_naive() != now.date_naive()
}

/// By the browser's clock and zone: called only after hydration.
fn local(at: DateTime<Utc>) -> String {
    #[expect(
        clippy::cast_precision_loss,
        reason = "milliseconds since 1970 stay exact far beyond year 9999"
    )]
    let ms = at.timestamp_millis() as f64;
    js_sys::Date::new(&ms.into()).to_string().into()
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use super::*;
    use crate::charts::tests::html;

    #[test]
    fn an_observation_of_another_day_has_its_date() {
        // Read at 03:12 and shown a minute, a day and, with an absurd age, no time later.
        let at = DateTime::from_timestamp(1_772_334_761, 0).unwrap_or_default();
        let shown = |age_ms| html(move || observed_time(at, age_ms));
        for age_ms in [None, Some(60_000), Some(i64::MAX)] {
            let html = shown(age_ms);
            assert!(html.contains(">03:12:41 UTC</time>"), "{html}");
        }
        let html = shown(Some(86_400_000));
        assert!(html.contains(">2026-03-01 03:12:41 UTC</time>"), "{html}");
    }
}
