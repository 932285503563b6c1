//! Tables of the fencing rejections page.

use domain::fencing_rejections::{self, Rejection, Reporter, Stale};
use domain::format;
use domain::history::HistoryEvent;
use domain::names::LockId;

use super::{FEW, ROWS, Rows};
use crate::charts::html_writer::Markup;
use crate::charts::recent_incidents::{builtin_lock, name, owner, time, tokens};
use crate::links;

/// A section with a table, or a sentence if it is empty.
fn section(
    (id, title, note): (&str, &str, &str),
    (class, head): (&str, &[(&str, &str)]),
    rows: usize,
    none: &str,
    body: impl FnOnce(&mut Markup),
) -> Markup {
    let mut it = Markup::new();
    let head_id = format!("{id}-head");
    it.wrap(
        "section",
        &[("class", "sec"), ("id", id), ("aria-labelledby", &head_id)],
        |it| {
            it.wrap("header", &[], |it| {
                it.text_element("h2", &[("id", &head_id)], title);
                it.text_element("span", &[("class", "note")], note);
            });
            if rows == 0 {
                it.text_element("p", &[("class", "pad")], none);
                return;
            }
            it.wrap("table", &[("class", class)], |it| {
                it.wrap("thead", &[], |it| {
                    it.wrap("tr", &[], |it| {
                        for (class, word) in head {
                            it.text_element("th", &[("scope", "col"), ("class", class)], word);
                        }
                    });
                });
                it.wrap("tbody", &[], body);
            });
        },
    );
    it
}

fn cell(it: &mut Markup, class: &str, inside: impl FnOnce(&mut Markup)) {
    it.wrap("td", &[("class", class)], inside);
}

/// The same query with one more filter.
fn asking(rows: &Rows, field: &'static str, value: &str) -> String {
    let others = rows
        .asked
        .filters()
        .into_iter()
        .filter(|(name, _)| *name != field);
    let pairs = others
        .chain([(field, value.to_owned())])
        .chain(rows.asked.range.pairs());
    links::with_query("/fencing", pairs)
}

pub(super) fn stale(rows: &Rows) -> Markup {
    let owners = fencing_rejections::stale_owners(&rows.rejections);
    let note = format!(
        "{}, most writes first",
        format::counted(owners.len() as u64, "owner", "owners")
    );
    let head = [
        ("", "owner"),
        ("num", "refused"),
        ("num", "locks"),
        ("", "last, UTC"),
        ("", "last on"),
    ];
    section(
        ("stale", "Stale owners", &note),
        ("t lg lg-stale", &head),
        owners.len(),
        "",
        |it| {
            for stale in owners.iter().take(FEW) {
                it.wrap("tr", &[], |it| stale_row(it, rows, stale));
            }
        },
    )
}

fn stale_row(it: &mut Markup, rows: &Rows, stale: &Stale) {
    cell(it, "who", |it| match &stale.owner {
        Some(owner) => {
            let href = asking(rows, "owner", owner.as_str());
            it.wrap("a", &[("class", "link"), ("href", &href)], |it| {
                it.name(owner.as_str());
            });
        }
        None => {
            it.text_element("span", &[("class", "ink3")], "unknown owner");
        }
    });
    cell(it, "num critical-count", |it| {
        it.text(&format::count(stale.writes));
    });
    cell(it, "num", |it| {
        it.text(&format::count(stale.locks));
    });
    cell(it, "ink2", |it| time(it, stale.last_at, true));
    cell(it, "", |it| {
        name(it, &builtin_lock(&stale.resource), &stale.resource, "")
    });
}

pub(super) fn reporters(rows: &Rows) -> Markup {
    let reporters = fencing_rejections::reporters(&rows.rejections);
    let note = format!(
        "{}, newest first",
        format::counted(reporters.len() as u64, "source", "sources")
    );
    let head = [
        ("", "source"),
        ("num", "refused"),
        ("num", "locks"),
        ("", "last, UTC"),
    ];
    section(
        ("sources", "Reporting sources", &note),
        ("t lg lg-from", &head),
        reporters.len(),
        "",
        |it| {
            for reporter in reporters.iter().take(FEW) {
                it.wrap("tr", &[], |it| reporter_row(it, rows, reporter));
            }
        },
    )
}

fn reporter_row(it: &mut Markup, rows: &Rows, reporter: &Reporter) {
    cell(it, "who", |it| {
        let href = asking(rows, "source", &reporter.source);
        it.wrap("a", &[("class", "link"), ("href", &href)], |it| {
            it.name(&reporter.source);
        });
    });
    cell(it, "num", |it| {
        it.text(&format::count(reporter.writes));
    });
    cell(it, "num", |it| {
        it.text(&format::count(reporter.locks));
    });
    cell(it, "ink2", |it| time(it, reporter.last_at, true));
}

/// One page of rejections; the next begins after the last row.
pub(super) fn rejections(rows: &Rows) -> Markup {
    let from = rows.asked.before;
    let rest: Vec<&Rejection> = rows
        .rejections
        .iter()
        .filter(|row| from.is_none_or(|before| row.id < before))
        .collect();
    let shown = &rest[..rest.len().min(ROWS)];
    let note = format!(
        "{} of {}, newest first",
        format::count(shown.len() as u64),
        format::count(rows.rejections.len() as u64)
    );
    let head = [
        ("f-t", "at, UTC"),
        ("", "resource"),
        ("f-o", "stale owner"),
        ("num f-k", "token"),
        ("f-s", "refused by"),
        ("f-w", "why"),
    ];
    let none = if from.is_some() {
        "No older rejections in this range."
    } else if rows.asked.filters().is_empty() {
        "No rejections in this range."
    } else {
        "No matching rejections. Names are case-sensitive; only the built-in lease service records rejections."
    };
    let mut it = section(
        ("rejections", "Rejected writes", &note),
        ("t lg lg-rows", &head),
        shown.len(),
        none,
        |it| {
            let mut above = "";
            for row in shown {
                it.wrap("tr", &[], |it| rejection_row(it, row, above));
                above = &row.resource;
            }
        },
    );
    let pairs = || rows.asked.filters().into_iter().chain(rows.asked.range.pairs());
    let older = shown.last().filter(|_| rest.len() > shown.len());
    it.wrap("p", &[("class", "foot")], |it| {
        if from.is_some() {
            let href = links::with_query("/fencing", pairs());
            it.text_element("a", &[("class", "btn"), ("href", &href)], "Newest");
        }
        if let Some(last) = older {
            let pairs = pairs().chain([("before", last.id.to_string())]);
            let href = format!("{}#rejections", links::with_query("/fencing", pairs));
            it.text_element(
                "a",
                &[("class", "btn"), ("rel", "next"), ("href", &href)],
                "Older",
            );
        }
    });
    it
}

fn rejection_row(it: &mut Markup, row: &Rejection, above: &str) {
    cell(it, "ink2 f-t", |it| time(it, row.at, true));
    cell(it, "f-n", |it| {
        name(it, &builtin_lock(&row.resource), &row.resource, above)
    });
    cell(it, "who f-o", |it| owner(it, row));
    cell(it, "num f-k", |it| tokens(it, row));
    cell(it, "f-s", |it| {
        it.name(&row.source);
    });
    cell(it, "ink2 f-w", |it| {
        it.text(match row.reason.as_str() {
            "stale" => "newer token granted",
            "never_issued" => "never granted",
            "reported" => "refused there",
            _ => "another reason",
        });
    });
}

pub(super) fn grants(rows: &Rows) -> Markup {
    let shown = &rows.grants[..rows.grants.len().min(FEW * 2)];
    let head = [
        ("f-t", "at, UTC"),
        ("", "resource"),
        ("f-s", "backend"),
        ("f-o", "owner"),
        ("num f-k", "token"),
        ("f-w", "how"),
    ];
    section(
        (
            "grants",
            "Latest grants",
            "all backends with tokens, newest first",
        ),
        ("t lg lg-rows", &head),
        shown.len(),
        "No grants with a token in this range.",
        |it| {
            let mut above = String::new();
            for grant in shown {
                it.wrap("tr", &[], |it| grant_row(it, grant, &above));
                above = grant.resource.text();
            }
        },
    )
}

fn grant_row(it: &mut Markup, grant: &HistoryEvent, above: &str) {
    let href = links::lock_path(&LockId {
        backend: grant.backend.clone(),
        source: grant.source.clone(),
        resource: grant.resource.clone(),
    });
    cell(it, "ink2 f-t", |it| time(it, grant.at, true));
    cell(it, "f-n", |it| name(it, &href, &grant.resource.text(), above));
    cell(it, "ink2 f-s", |it| {
        it.text(grant.backend.as_str());
    });
    cell(it, "who f-o", |it| {
        match &grant.owner {
            Some(owner) => it.name(owner.as_str()),
            None => it.text_element("span", &[("class", "ink3")], "unknown"),
        };
    });
    cell(it, "num f-k", |it| {
        if let Some(token) = grant.token {
            it.text(&token.to_string());
        }
    });
    cell(it, "ink2 f-w", |it| {
        it.text(grant.kind.word());
    });
}
