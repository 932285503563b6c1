//! Recent events of a lock, newest first, as a table.

use chrono::{DateTime, Utc};
use domain::format;
use domain::lock_detail::{EventKind, SeenEvent};
use domain::time_format;

use super::html_writer::Markup;

const ROWS_MAX: usize = 12;

/// `link` returns the URL of a trace id.
pub fn seen(events: &[SeenEvent], link: &dyn Fn(&str) -> Option<String>) -> Markup {
    let mut it = Markup::new();
    it.wrap(
        "section",
        &[("class", "sec"), ("aria-labelledby", "seen-head")],
        |it| {
            it.wrap("header", &[], |it| {
                it.text_element("h2", &[("id", "seen-head")], "Recent events");
                it.text_element("span", &[("class", "note")], "newest first");
            });
            let Some(newest) = events.first().map(|event| event.at) else {
                it.text_element("p", &[("class", "pad")], "No events since the first observation.");
                return;
            };
            it.wrap("table", &[("class", "t seen")], |it| {
                it.wrap("thead", &[], |it| {
                    it.wrap("tr", &[], |it| {
                        for word in ["at", "what", "who"] {
                            it.text_element("th", &[("scope", "col")], word);
                        }
                    });
                });
                it.wrap("tbody", &[], |it| {
                    for event in events
                        .iter()
                        .filter(|event| !has_detailed_event(events, event))
                        .take(ROWS_MAX)
                    {
                        row(it, event, newest, link);
                    }
                });
            });
        },
    );
    it
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
    event.kind == EventKind::Acquired && events.iter().any(is_same)
}

fn row(it: &mut Markup, event: &SeenEvent, newest: DateTime<Utc>, link: &dyn Fn(&str) -> Option<String>) {
    let is_of_another_day = event.at.date_naive() != newest.date_naive();
    let class = if is_of_another_day { "ink2 dated" } else { "ink2" };
    it.wrap("tr", &[], |it| {
        it.wrap("td", &[("class", class)], |it| {
            let shown = if let Some(not_before) = event.not_before {
                time_format::between(not_before, event.at)
            } else if is_of_another_day {
                time_format::dated(event.at)
            } else {
                time_format::timed(event.at)
            };
            it.text_element(
                "time",
                &[
                    ("datetime", &time_format::iso(event.at)),
                    ("title", &time_format::dated(event.at)),
                ],
                &shown,
            );
        });
        match event.waited_ms {
            Some(ms) => it.text_element(
                "td",
                &[],
                &format!("{} of {}", event.kind.word(), format::age(ms)),
            ),
            None => it.text_element("td", &[], event.kind.word()),
        };
        it.wrap("td", &[("class", "own")], |it| {
            if let Some(owner) = &event.owner_id {
                it.name(owner.as_str());
            }
            if let Some(token) = event.fencing_token {
                it.text_element("span", &[("class", "ink3")], &format!(" token {token}"));
            }
            if let Some(trace) = &event.trace_id {
                it.text_element("span", &[], " ");
                let title = format!("trace {trace}");
                match link(trace) {
                    Some(href) => it.text_element(
                        "a",
                        &[("href", &href), ("rel", "noreferrer"), ("title", &title)],
                        "trace",
                    ),
                    None => it.text_element(
                        "span",
                        &[("class", "ink3 mono"), ("title", &title)],
                        &trace[..8.min(trace.len())],
                    ),
                };
            }
        });
    });
}
