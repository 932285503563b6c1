//! Settings: users, permissions, credentials.

pub mod account;
pub mod protected_prefixes;
pub mod roles;
pub mod sessions;
pub mod tokens;
pub mod user;
pub mod users;

use chrono::DateTime;
use domain::{format, time_format};
use leptos::prelude::*;

/// Age of a moment in milliseconds since 1970, with the moment on hover. The page does not
/// update, so it shows the larger unit only.
pub(in crate::server_pages) fn ago(at: Option<i64>, now: i64, none: &'static str) -> AnyView {
    let Some(time) = at.and_then(DateTime::from_timestamp_millis) else {
        return view! { <span class="ink3">{none}</span> }.into_any();
    };
    let text = distance(now - time.timestamp_millis());
    view! { <time datetime=time_format::iso(time) title=time_format::dated(time)>{text}</time> }.into_any()
}

fn distance(past_ms: i64) -> String {
    let span = format::period(rounded(past_ms.saturating_abs()));
    match past_ms {
        ..-59_999 => format!("in {span}"),
        -59_999..60_000 => "just now".to_owned(),
        _ => format!("{span} ago"),
    }
}

/// To the minute, the hour or the day.
const fn rounded(ms: i64) -> i64 {
    const DAY: i64 = 86_400_000;
    let unit = match ms {
        ..3_600_000 => 60_000,
        3_600_000..DAY => 3_600_000,
        _ => DAY,
    };
    ms / unit * unit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_shows_its_largest_unit() {
        // Past and future, each side of a minute, an hour, a day.
        let told = [
            (59_000, "just now"),
            (61_000, "1 m ago"),
            (7_199_000, "1 h ago"),
            (200_000_000, "2 d ago"),
            (-90_000_000, "in 1 d"),
            (-5_000, "just now"),
        ];
        for (past_ms, text) in told {
            assert_eq!(distance(past_ms), text);
        }
    }
}
