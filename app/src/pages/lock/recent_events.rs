//! Recent events of a lock, newest first, as a table; of the picked range, if there is one.

use chrono::{DateTime, Utc};
use domain::charts::scale::TimeScale;
use domain::escape::visible;
use domain::lock_detail::{EventKind, LockCharts, LockDetail, SeenEvent};
use domain::time_format;
use leptos::prelude::*;

use crate::components::reactive::changing;
use crate::format;

const ROWS_MAX: usize = 12;

#[component]
pub fn RecentEvents(#[prop(into)] detail: Signal<LockDetail>) -> impl IntoView {
    let events = Memo::new(move |_| detail.with(|detail| detail.seen.clone()));
    let picked = Memo::new(move |_| detail.with(|detail| picked_range(detail.charts.as_ref())));
    let links = Memo::new(move |_| {
        let charts = detail.with(|detail| detail.charts.clone());
        charts.map(|charts| charts.trace_links).unwrap_or_default()
    });
    let is_read = Memo::new(move |_| {
        let is_read = |charts: &LockCharts| charts.history.is_some();
        detail.with(|detail| detail.charts.as_ref().is_none_or(is_read))
    });
    let note = move || {
        let picked = picked.get().map(|(_, range_label)| format!(", {range_label}"));
        let gap = match is_read.get() {
            true => "",
            false => "; older ones could not be read",
        };
        format!(
            "newest first, at most {ROWS_MAX}{}{gap}",
            picked.unwrap_or_default()
        )
    };
    view! {
        <section class="sec" aria-labelledby="seen-head">
            <header>
                <h2 id="seen-head">"Recent events"</h2>
                <span class="note">{changing(note)}</span>
            </header>
            {changing(move || events.with(|events| rows(events, picked.get().map(|(scale, _)| scale), is_read.get(), &links.get())))}
        </section>
    }
    .into_any()
}

/// The range in the URL and its name.
fn picked_range(charts: Option<&LockCharts>) -> Option<(TimeScale, String)> {
    let range = &charts?.range;
    range.picked.map(|picked| (range.scale, picked.label()))
}

fn rows(
    events: &[SeenEvent],
    picked: Option<TimeScale>,
    is_read: bool,
    links: &[(String, String)],
) -> AnyView {
    let is_inside =
        |event: &&SeenEvent| picked.is_none_or(|scale| scale.contains(event.at.timestamp_millis()));
    let shown: Vec<&SeenEvent> = events
        .iter()
        .filter(is_inside)
        .filter(|event| !has_detailed_event(events, event))
        .take(ROWS_MAX)
        .collect();
    let Some(newest) = events.first().map(|event| event.at).filter(|_| !shown.is_empty()) else {
        let none = match (is_read, picked) {
            (false, _) => "Unknown: history could not be read in time. The next refresh tries again.",
            (true, Some(_)) => "No events in this range.",
            (true, None) => "No events since the first observation.",
        };
        return view! { <p class="pad">{none}</p> }.into_any();
    };
    let rows: Vec<AnyView> = shown.into_iter().map(|event| row(event, newest, links)).collect();
    view! {
        <table class="t seen">
            <thead><tr><th scope="col">"at"</th><th scope="col">"what"</th><th scope="col">"who"</th></tr></thead>
            <tbody>{rows}</tbody>
        </table>
    }
    .into_any()
}

/// A grant whose wait has a row of its own.
fn has_detailed_event(events: &[SeenEvent], event: &SeenEvent) -> bool {
    let is_same = |other: &SeenEvent| {
        other.kind == EventKind::GrantedAfterWait
            && other.owner_id == event.owner_id
            && match (other.fencing_token, event.fencing_token) {
                (Some(theirs), Some(ours)) => theirs == ours,
                _ => other.at == event.at,
            }
    };
    matches!(event.kind, EventKind::Acquired | EventKind::ShareAcquired) && events.iter().any(is_same)
}

fn row(event: &SeenEvent, newest: DateTime<Utc>, links: &[(String, String)]) -> AnyView {
    let is_of_another_day = event.at.date_naive() != newest.date_naive();
    let class = if is_of_another_day { "ink2 dated" } else { "ink2" };
    let at = if let Some(not_before) = event.not_before {
        time_format::between(not_before, event.at)
    } else if is_of_another_day {
        time_format::dated(event.at)
    } else {
        time_format::timed(event.at)
    };
    let event_text = match event.waited_ms {
        Some(ms) => format!("{} of {}", event.kind.label(), format::age(ms)),
        None => event.kind.label().to_owned(),
    };
    let owner = event
        .owner_id
        .as_ref()
        .map(|owner| view! { <bdi>{visible(owner.as_str()).into_owned()}</bdi> }.into_any());
    let token = event
        .fencing_token
        .map(|token| view! { <span class="ink3">{format!(" token {token}")}</span> }.into_any());
    let trace = event.trace_id.as_ref().map(|trace| trace_link(trace, links));
    view! {
        <tr>
            <td class=class><time datetime=time_format::iso(event.at) title=time_format::dated(event.at)>{at}</time></td>
            <td>{event_text}</td>
            <td class="own">{owner}{token}{trace}</td>
        </tr>
    }
    .into_any()
}

fn trace_link(trace: &str, links: &[(String, String)]) -> AnyView {
    let title = format!("trace {trace}");
    let link = links.iter().find(|(id, _)| id == trace);
    match link.map(|(_, href)| href.clone()) {
        Some(href) => view! { " "<a href=href rel="noreferrer external" title=title>"trace"</a> }.into_any(),
        None => {
            let short = trace.get(..8).unwrap_or(trace).to_owned();
            view! { " "<span class="ink3 mono" title=title>{short}</span> }.into_any()
        }
    }
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use super::*;

    #[test]
    fn events_of_a_history_that_is_not_read_are_unknown() {
        let html = |is_read| Owner::new_root(None).with(|| rows(&[], None, is_read, &[]).to_html());
        assert!(html(true).contains("No events since the first observation."));
        assert!(html(false).contains("Unknown: history could not be read in time."));
    }
}
