//! What was seen happen to a lock, newest first: rows of history as a table.

use chrono::{DateTime, Utc};
use domain::detail::{EventKind, SeenEvent};
use domain::human;
use domain::moment;

use super::markup::Markup;

const ROWS_MAX: usize = 12;

/// `link` tells where a trace can be looked at.
pub fn seen(events: &[SeenEvent], link: &dyn Fn(&str) -> Option<String>) -> Markup {
    let mut it = Markup::new();
    it.wrap(
        "section",
        &[("class", "sec"), ("aria-labelledby", "seen-head")],
        |it| {
            it.wrap("header", &[], |it| {
                it.said("h2", &[("id", "seen-head")], "What we saw happen");
                it.said("span", &[("class", "note")], "newest first");
            });
            let Some(newest) = events.first().map(|event| event.at) else {
                it.said(
                    "p",
                    &[("class", "pad")],
                    "Nothing yet: it was so when we first saw it.",
                );
                return;
            };
            it.wrap("table", &[("class", "t seen")], |it| {
                it.wrap("thead", &[], |it| {
                    it.wrap("tr", &[], |it| {
                        for word in ["at", "what", "who"] {
                            it.said("th", &[("scope", "col")], word);
                        }
                    });
                });
                it.wrap("tbody", &[], |it| {
                    for event in events
                        .iter()
                        .filter(|event| !is_told_better(events, event))
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
fn is_told_better(events: &[SeenEvent], event: &SeenEvent) -> bool {
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
                moment::between(not_before, event.at)
            } else if is_of_another_day {
                moment::dated(event.at)
            } else {
                moment::timed(event.at)
            };
            it.said(
                "time",
                &[
                    ("datetime", &moment::iso(event.at)),
                    ("title", &moment::dated(event.at)),
                ],
                &shown,
            );
        });
        match event.waited_ms {
            Some(ms) => it.said("td", &[], &format!("{} of {}", event.kind.word(), human::age(ms))),
            None => it.said("td", &[], event.kind.word()),
        };
        it.wrap("td", &[("class", "own")], |it| {
            if let Some(owner) = &event.owner_id {
                it.name(owner.as_str());
            }
            if let Some(token) = event.fencing_token {
                it.said("span", &[("class", "ink3")], &format!(" token {token}"));
            }
            if let Some(trace) = &event.trace_id {
                it.said("span", &[], " ");
                let title = format!("trace {trace}");
                match link(trace) {
                    Some(href) => it.said(
                        "a",
                        &[("href", &href), ("rel", "noreferrer"), ("title", &title)],
                        "trace",
                    ),
                    None => it.said(
                        "span",
                        &[("class", "ink3 mono"), ("title", &title)],
                        &trace[..8.min(trace.len())],
                    ),
                };
            }
        });
    });
}
