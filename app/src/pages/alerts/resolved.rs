//! Resolved alerts, shown with their state in the filter.

use chrono::DateTime;
use domain::time_format;
use leptos::prelude::*;

use crate::components::reactive::changing;
use crate::components::resource_name::ResourceName;
use crate::format;
use crate::pages::alerts::alert_filter::AlertFilter;
use crate::pages::alerts::data::{AlertsData, GroupState, RESOLVED_READ_MAX, ResolvedAlert};

#[component]
pub(super) fn Resolved(data: Signal<AlertsData>, filter: Memo<AlertFilter>) -> impl IntoView {
    let is_shown = Memo::new(move |_| filter.with(|filter| filter.shows(GroupState::Resolved)));
    let is_narrowed = Memo::new(move |_| filter.with(AlertFilter::is_narrowed));
    let all = Memo::new(move |_| data.with(|data| (data.resolved.clone(), data.is_limited)));
    changing(move || {
        is_shown
            .get()
            .then(|| all.with(|(all, is_limited)| section(all, is_narrowed.get(), *is_limited)))
    })
}

fn section(all: &[ResolvedAlert], is_narrowed: bool, is_limited: bool) -> AnyView {
    let table = if all.is_empty() {
        let text = match (is_narrowed, is_limited) {
            (true, _) => format!(
                "None of the newest {} resolved alerts matches the filter.",
                format::count(RESOLVED_READ_MAX as u64)
            ),
            // The server reads a limited number of alerts of all scopes.
            (false, true) => "None of the newest resolved alerts is in your scope.".to_owned(),
            (false, false) => "No alert resolved in the last 30 days.".to_owned(),
        };
        view! { <p class="al-none ink2">{text}</p> }.into_any()
    } else {
        let rows: Vec<AnyView> = all.iter().map(row).collect();
        view! {
            <div class="scroll"><table class="t al-hist">
                <caption class="sr">"Resolved alerts, newest first"</caption>
                <thead><tr><th scope="col">"at, UTC"</th><th scope="col">"rule"</th><th scope="col">"subject"</th><th scope="col" class="num">"fired for"</th></tr></thead>
                <tbody>{rows}</tbody>
            </table></div>
        }
        .into_any()
    };
    view! {
        <section class="sec" aria-labelledby="over">
            <header><h2 id="over">"Resolved"</h2><span class="note">"newest 50 of the last 30 days; the count in the filter is of 6 h"</span></header>
            {table}
        </section>
    }
    .into_any()
}

fn row(alert: &ResolvedAlert) -> AnyView {
    let at = DateTime::from_timestamp_millis(alert.ended_at).unwrap_or_default();
    view! {
        <tr>
            <td class="num"><time datetime=time_format::iso(at)>{time_format::dated(at).replace(" UTC", "")}</time></td>
            <td>{alert.rule.clone()}</td>
            <td class="al-cut"><a class="al-of" href=alert.path.clone()><ResourceName name=alert.subject.clone() cut=true/></a></td>
            <td class="num">{format::period((alert.ended_at - alert.fired_at).max(0) / 1_000 * 1_000)}</td>
        </tr>
    }
    .into_any()
}
