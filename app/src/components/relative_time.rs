//! A moment near now, from milliseconds since 1970: absolute UTC in the HTML, a distance after
//! hydration, in the largest unit that says enough.

use chrono::DateTime;
use domain::time_format;
use leptos::prelude::*;

use super::time::is_of_another_day;
use crate::components::reactive::changing;
use crate::format;
use crate::live::use_live;

#[component]
pub fn RelativeTime(
    /// Milliseconds since 1970.
    at: i64,
    /// The server's clock at the time of the response.
    now: i64,
) -> impl IntoView {
    let [time, today] = [at, now].map(|ms| DateTime::from_timestamp_millis(ms).unwrap_or_default());
    let absolute = if is_of_another_day(time, today) {
        time_format::dated(time)
    } else {
        time_format::timed(time)
    };
    let live = use_live();
    let elapsed = live.elapsed();
    let shown = Memo::new(move |_| match live.is_awake() {
        true => distance(now + elapsed.get() - at),
        false => absolute.clone(),
    });
    view! { <time datetime=time_format::iso(time) title=time_format::dated(time)>{changing(move || shown.get())}</time> }
        .into_any()
}

/// A moment in milliseconds since 1970; `none` without one.
pub fn age(at: Option<i64>, now: i64, none: &'static str) -> AnyView {
    match at {
        Some(at) => view! { <RelativeTime at now/> }.into_any(),
        None => view! { <span class="ink3">{none}</span> }.into_any(),
    }
}

fn distance(past_ms: i64) -> String {
    if past_ms < 0 {
        // Rounded, so that a token created for 90 days still shows 90 days one second later.
        let left = past_ms.saturating_abs();
        return format!(
            "in {}",
            format::period(rounded(left.saturating_add(unit_ms(left) / 2)))
        );
    }
    format!("{} ago", format::period(rounded(past_ms)))
}

/// To the second, the minute, the hour or the day.
const fn rounded(ms: i64) -> i64 {
    let unit = unit_ms(ms);
    ms / unit * unit
}

const fn unit_ms(ms: i64) -> i64 {
    const DAY: i64 = 86_400_000;
    match ms {
        ..60_000 => 1_000,
        60_000..3_600_000 => 60_000,
        3_600_000..DAY => 3_600_000,
        _ => DAY,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_in_the_largest_unit() {
        assert_eq!(distance(61_000), "1\u{a0}m ago");
        assert_eq!(distance(-30_400), "in 30\u{a0}s");
        assert_eq!(distance(-90 * 86_400_000 + 1_000), "in 90\u{a0}d");
        assert_eq!(distance(3 * 86_400_000 + 5), "3\u{a0}d ago");
    }
}
