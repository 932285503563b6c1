//! Recent incidents on the overview: rejected writes and forced unlocks, newest first.

use domain::fencing_rejections::Rejection;
use domain::name_tree::shared_len;
use domain::names::Resource;
use domain::unlock::{Unlock, UnlockState};
use domain::{format, time_format};

use super::chart_frame::shape;
use super::html_writer::Markup;
use crate::links;

/// Rows of each list.
const ROWS_MAX: usize = 5;

/// URL of a lock of the built-in service.
pub fn builtin_lock(resource: &str) -> String {
    links::named("builtin", resource)
}

/// A section with a list, or a sentence if it is empty.
struct List<'a> {
    id: &'static str,
    title: &'a str,
    note: String,
    end: (&'a str, String),
    head: &'a [&'a str],
    class: &'static str,
    none: &'a str,
}

fn list(list: &List<'_>, rows: usize, body: impl FnOnce(&mut Markup)) -> Markup {
    let mut it = Markup::new();
    let head_id = format!("{}-head", list.id);
    it.wrap(
        "section",
        &[("class", "sec"), ("aria-labelledby", &head_id)],
        |it| {
            it.wrap("header", &[], |it| {
                it.text_element("h2", &[("id", &head_id)], list.title);
                it.text_element("span", &[("class", "note")], &list.note);
                if !list.end.1.is_empty() {
                    let end = [("class", "end link"), ("href", &*list.end.1), ("rel", "external")];
                    it.text_element("a", &end, list.end.0);
                }
            });
            if rows == 0 {
                it.text_element("p", &[("class", "pad")], list.none);
                return;
            }
            it.wrap("table", &[("class", list.class)], |it| {
                it.wrap("thead", &[("class", "sr")], |it| {
                    it.wrap("tr", &[], |it| {
                        for word in list.head {
                            it.text_element("th", &[("scope", "col")], word);
                        }
                    });
                });
                it.wrap("tbody", &[], body);
            });
        },
    );
    it
}

/// Label of the range, and whether it spans several days.
#[derive(Debug, Clone, Copy)]
pub struct IncidentRange<'a> {
    pub words: &'a str,
    pub has_days: bool,
}

/// `total` counts all of the range.
pub fn refusals(rejections: &[Rejection], total: u64, over: IncidentRange<'_>, ledger: String) -> Markup {
    let section = List {
        id: "refusals",
        title: "Fencing rejections",
        note: format!("{}, {}", format::count(total), over.words),
        end: ("fencing rejections", ledger),
        head: &["at, UTC", "resource", "stale owner", "token", "refused by"],
        class: if over.has_days {
            "t lg lg-few fr with-days"
        } else {
            "t lg lg-few fr"
        },
        none: "No fencing rejections reported.",
    };
    list(&section, rejections.len(), |it| {
        let mut above = "";
        for row in rejections.iter().take(ROWS_MAX) {
            it.wrap("tr", &[], |it| {
                it.wrap("td", &[("class", "ink2")], |it| time(it, row.at, over.has_days));
                it.wrap("td", &[], |it| {
                    name(it, &builtin_lock(&row.resource), &row.resource, above);
                });
                it.wrap("td", &[("class", "who")], |it| owner(it, row));
                it.wrap("td", &[("class", "num")], |it| tokens(it, row));
                it.wrap("td", &[("class", "ink2 c-src")], |it| {
                    it.name(&row.source);
                });
            });
            above = &row.resource;
        }
    })
}

/// The writer; a token that was never granted has no owner.
pub fn owner(it: &mut Markup, row: &Rejection) {
    match &row.owner {
        Some(owner) => it.name(owner.as_str()),
        None => it.text_element(
            "span",
            &[
                ("class", "ink3"),
                ("title", "neither in the report nor in the history"),
            ],
            "unknown",
        ),
    };
}

/// `✕ 1840 < 1841`
pub fn tokens(it: &mut Markup, row: &Rejection) {
    it.wrap("span", &[("class", "critical st")], |it| {
        shape(it, "x", "");
        it.text(&row.token.to_string());
    });
    match row.current {
        Some(current) => {
            let sign = if row.token < current { " < " } else { " against " };
            it.text_element("span", &[("class", "ink3")], sign)
                .text(&current.to_string())
        }
        None => it.text_element("span", &[("class", "ink3")], " was old"),
    };
}

pub fn time(it: &mut Markup, ms: i64, with_day: bool) {
    let Some(at) = chrono::DateTime::from_timestamp_millis(ms) else {
        it.text("unknown");
        return;
    };
    let dated = time_format::dated(at);
    // The heading and the tooltip name the time zone.
    let from = if with_day { 5 } else { 11 };
    let short = dated.get(from..19).unwrap_or(&dated).to_owned();
    it.text_element(
        "time",
        &[("datetime", &time_format::iso(at)), ("title", &dated)],
        &short,
    );
}

/// A lock as a link; segments shared with the name above are dimmed.
pub fn name(it: &mut Markup, href: &str, text: &str, above: &str) {
    let shared = if text == above {
        text.len()
    } else {
        shared_len(text, above)
    };
    let (dim, differs) = text.split_at(shared);
    it.wrap(
        "a",
        &[
            ("class", "res cut"),
            ("href", href),
            ("title", &domain::escape::visible(text)),
        ],
        |it| {
            it.wrap("bdi", &[("dir", "ltr")], |it| {
                if !dim.is_empty() {
                    it.text_element("i", &[], &domain::escape::visible(dim));
                }
                it.text(&domain::escape::visible(differs));
            });
        },
    );
}

/// Executed forced unlocks.
pub fn unlocks(unlocks: &[Unlock], total: u64, over: IncidentRange<'_>, audit: String) -> Markup {
    let section = List {
        id: "unlocks",
        title: "Forced unlocks",
        note: format!("{}, {}", format::count(total), over.words),
        end: ("Audit", audit),
        head: &["at, UTC", "resource", "outcome", "by", "reason"],
        class: if over.has_days {
            "t lg lg-few fu with-days"
        } else {
            "t lg lg-few fu"
        },
        none: "No forced unlocks.",
    };
    list(&section, unlocks.len(), |it| {
        for unlock in unlocks.iter().take(ROWS_MAX) {
            it.wrap("tr", &[], |it| {
                let at = unlock.acted_at.unwrap_or(unlock.created_at).timestamp_millis();
                it.wrap("td", &[("class", "ink2")], |it| time(it, at, over.has_days));
                it.wrap("td", &[], |it| {
                    let resource: &Resource = &unlock.resource;
                    name(it, &format!("/unlocks/{}", unlock.id), &resource.text(), "");
                });
                it.wrap("td", &[("class", "who")], |it| outcome(it, unlock.state));
                it.wrap("td", &[], |it| {
                    it.name(&unlock.by_name);
                });
                it.wrap("td", &[("class", "ink2 c-src")], |it| {
                    it.name(&unlock.reason);
                });
            });
        }
    })
}

fn outcome(it: &mut Markup, state: UnlockState) {
    let (hue, sign, word) = match state {
        UnlockState::Released => ("healthy quiet", "ok", "released"),
        UnlockState::HolderChanged => ("warning", "x", "holder changed"),
        UnlockState::AlreadyFree => ("healthy quiet", "ok", "already free"),
        UnlockState::Refused => ("warning", "x", "refused"),
        UnlockState::OutcomeUnknown => ("blind quiet", "unknown", "outcome unknown"),
        UnlockState::Pending => ("blind quiet", "pending", "pending"),
        UnlockState::Expired => ("blind quiet", "stale", "expired"),
        UnlockState::Cancelled => ("blind quiet", "x", "cancelled"),
    };
    it.wrap("span", &[("class", &format!("st {hue}"))], |it| {
        shape(it, sign, "");
        it.text(word);
    });
}
