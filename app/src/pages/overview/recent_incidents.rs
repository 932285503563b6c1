//! Recent incidents: rejected writes and forced unlocks of the range, newest first.

use domain::charts::range::RangePreset;
use domain::charts::shown_range::ShownRange;
use domain::escape::visible;
use domain::fencing_rejections::Rejection;
use domain::format;
use domain::overview::{OverviewCharts, RECENT_ROWS_MAX, RecentUnlock};
use domain::unlock::UnlockState;
use leptos::prelude::*;

use crate::components::lock_link::lock_link;
use crate::components::reactive::changing;
use crate::components::rejection_cells::{owner, tokens};
use crate::components::state_badge::Shape;
use crate::components::time::short_time;
use crate::links::{self, PageUrl};

#[component]
pub fn Rejections(#[prop(into)] charts: Signal<OverviewCharts>) -> impl IntoView {
    let note =
        move || charts.with(|charts| Some(range_note(charts.rejections.as_ref()?.total, &charts.range)));
    let href = move || {
        PageUrl::new("/fencing", "")
            .with_range(charts.with(|it| it.range.as_picked()))
            .href()
    };
    let rows = move || {
        charts.with(|charts| {
            let Some(rejections) = &charts.rejections else {
                return unread();
            };
            let has_days = has_days(&charts.range);
            let mut above = "";
            let mut rows = Vec::new();
            for row in rejections.newest.iter().take(RECENT_ROWS_MAX) {
                rows.push(rejection(row, above, has_days));
                above = &row.resource;
            }
            let head = ["at, UTC", "resource", "stale owner", "token", "rejected by"];
            table(("fr", has_days), &head, rows, "No fencing rejections reported.")
        })
    };
    view! {
        <section class="sec" aria-labelledby="refusals-head">
            <header>
                <h2 id="refusals-head">"Fencing rejections"</h2>
                <span class="note">{changing(note)}</span>
                <a class="end link" href=href>"All rejections"</a>
            </header>
            {changing(rows)}
        </section>
    }
    .into_any()
}

#[component]
pub fn Unlocks(#[prop(into)] charts: Signal<OverviewCharts>) -> impl IntoView {
    let note = move || charts.with(|charts| Some(range_note(charts.unlocks.as_ref()?.total, &charts.range)));
    let audit = move || {
        charts.with(|charts| charts.may_audit).then(|| {
            let href = "/audit?action=FORCE_UNLOCK";
            view! { <a class="end link" href=href>"Audit"</a> }.into_any()
        })
    };
    let rows = move || {
        charts.with(|charts| {
            let Some(unlocks) = &charts.unlocks else {
                return unread();
            };
            let has_days = has_days(&charts.range);
            let newest = unlocks.newest.iter().take(RECENT_ROWS_MAX);
            let rows = newest.map(|row| unlock(row, has_days)).collect();
            let head = ["at, UTC", "resource", "outcome", "by", "reason"];
            table(("fu", has_days), &head, rows, "No forced unlocks.")
        })
    };
    view! {
        <section class="sec" aria-labelledby="unlocks-head">
            <header>
                <h2 id="unlocks-head">"Forced unlocks"</h2>
                <span class="note">{changing(note)}</span>
                {changing(audit)}
            </header>
            {changing(rows)}
        </section>
    }
    .into_any()
}

fn unread() -> AnyView {
    view! { <p class="pad">"Unknown: they could not be read in time. The next refresh tries again."</p> }
        .into_any()
}

fn range_note(total: u64, range: &ShownRange) -> String {
    format!("{}, {}", format::count(total), range.label())
}

fn has_days(range: &ShownRange) -> bool {
    range.scale.length_ms() > RangePreset::Day.length_ms()
}

fn table(
    (class, has_days): (&str, bool),
    head: &[&'static str],
    rows: Vec<AnyView>,
    none: &'static str,
) -> AnyView {
    if rows.is_empty() {
        return view! { <p class="pad">{none}</p> }.into_any();
    }
    let class = format!("t lg lg-few {class}{}", if has_days { " with-days" } else { "" });
    let head: Vec<AnyView> = head
        .iter()
        .map(|heading| view! { <th scope="col">{*heading}</th> }.into_any())
        .collect();
    view! { <table class=class><thead class="sr"><tr>{head}</tr></thead><tbody>{rows}</tbody></table> }
        .into_any()
}

fn rejection(row: &Rejection, above: &str, has_days: bool) -> AnyView {
    view! {
        <tr>
            <td class="ink2">{short_time(row.at, has_days)}</td>
            <td>{lock_link(&links::named("builtin", &row.resource), &row.resource, above)}</td>
            <td class="who">{owner(row)}</td>
            <td class="num">{tokens(row)}</td>
            <td class="ink2 c-src"><bdi>{visible(&row.source).into_owned()}</bdi></td>
        </tr>
    }
    .into_any()
}

fn unlock(row: &RecentUnlock, has_days: bool) -> AnyView {
    view! {
        <tr>
            <td class="ink2">{short_time(row.at, has_days)}</td>
            <td>{lock_link(&format!("/unlocks/{}", row.id), &row.resource, "")}</td>
            <td class="who">{outcome(row.state)}</td>
            <td><bdi>{visible(&row.by).into_owned()}</bdi></td>
            <td class="ink2 c-src"><bdi>{visible(&row.reason).into_owned()}</bdi></td>
        </tr>
    }
    .into_any()
}

fn outcome(state: UnlockState) -> AnyView {
    let (hue, sign, label) = match state {
        UnlockState::Released => ("healthy quiet", "ok", "released"),
        UnlockState::HolderChanged => ("warning", "x", "holder changed"),
        UnlockState::AlreadyFree => ("healthy quiet", "ok", "already free"),
        UnlockState::Refused => ("warning", "x", "refused"),
        UnlockState::OutcomeUnknown => ("blind quiet", "unknown", "outcome unknown"),
        UnlockState::Pending => ("blind quiet", "pending", "pending"),
        UnlockState::Expired => ("blind quiet", "stale", "expired"),
        UnlockState::Cancelled => ("blind quiet", "x", "cancelled"),
    };
    view! { <span class=format!("st {hue}")><Shape name=sign/>{label}</span> }.into_any()
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use super::*;
    use crate::charts::tests::html;

    #[test]
    fn incidents_that_cannot_be_read_are_unknown_and_not_none() {
        let charts = OverviewCharts {
            range: ShownRange::from_pairs(&[], RangePreset::SixHours, None, 0),
            alerts: None,
            held: None,
            rejections: None,
            unlocks: None,
            may_audit: false,
        };
        let html = html(move || {
            let charts = Signal::stored(charts.clone());
            view! { <Rejections charts/><Unlocks charts/> }.into_any()
        });
        assert_eq!(
            html.matches("Unknown: they could not be read").count(),
            2,
            "{html}"
        );
        assert!(!html.contains("No f") && !html.contains("last 6 h"), "{html}");
    }
}
