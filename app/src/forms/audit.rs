//! The audit record as people read it: search, rows with the steps of one unlock together, one row with what it changed,
//! and how far the chain is verified.

pub mod attention;
pub mod chain;
pub mod lines;
pub mod look;
pub mod row;
pub mod search;

use leptos::prelude::*;

use self::attention::{Pending, attention};
use self::chain::Chain;
use self::lines::{Line, lines};
use self::search::Search;
use crate::forms::chrome::{Chrome, Page, page};
use crate::forms::field::alert;
use crate::links;

pub struct Record {
    pub search: Search,
    pub chain: Chain,
    pub pending: Vec<Pending>,
    pub found: Found,
    /// A review was refused.
    pub refusal: Option<String>,
    /// Milliseconds since 1970.
    pub now: i64,
}

pub enum Found {
    Rows {
        lines: Vec<Line>,
        /// Cursor of the next page.
        older: Option<String>,
        is_first: bool,
    },
    /// The search's own fault says why.
    BadQuestion,
    /// The store does not answer.
    Nothing,
}

pub fn record(chrome: &Chrome, record: &Record) -> String {
    let is_down = matches!(record.found, Found::Nothing);
    let content = view! {
        {alert(record.refusal.clone())}
        <div class="stack audit">
            {record.chain.view(record.now)}
            {attention(&record.pending, record.now)}
            <section class="sec" aria-labelledby="rows">
                <header><h2 id="rows">"Rows"</h2><span class="note">"newest first; the steps of one forced unlock stand together"</span>{exports(record)}</header>
                {record.search.view()}
                {found(record)}
            </section>
        </div>
    };
    page(
        chrome,
        Page {
            title: record.chain.title(is_down),
            lead: Some(
                "Who did what to which lock, why, and how it ended. Rows are added and never changed; each holds the hash of the one before it."
                    .to_owned(),
            ),
            content: content.into_any(),
        },
    )
}

fn exports(record: &Record) -> AnyView {
    if !matches!(record.found, Found::Rows { .. }) {
        return ().into_any();
    }
    let filters = record.search.filters();
    let link = |format: &'static str| {
        let pairs =
            std::iter::once(("format", format)).chain(filters.iter().map(|(name, value)| (*name, *value)));
        links::with_query("/v1/audit/export", pairs)
    };
    view! {
        <span class="end">
            "Export these as "<a class="link" href=link("csv") download="">"CSV"</a>" or "
            <a class="link" href=link("json") download="">"JSON"</a>
        </span>
    }
    .into_any()
}

fn found(record: &Record) -> AnyView {
    match &record.found {
        Found::BadQuestion => empty(
            "Nothing was looked for",
            "A field above does not fit; it says why.",
            None,
        ),
        Found::Nothing => empty(
            "The record cannot be read now",
            "Its store does not answer. Nothing is lost by that: what cannot be recorded is not done.",
            Some(("/audit".to_owned(), "Try again")),
        ),
        Found::Rows {
            lines: rows,
            older,
            is_first,
        } if rows.is_empty() && older.is_none() => nothing_fits(record, *is_first),
        Found::Rows {
            lines: rows,
            older,
            is_first,
        } => {
            let older = older.as_ref().map(|cursor| {
                let pairs = record
                    .search
                    .filters()
                    .into_iter()
                    .chain([("cursor", cursor.as_str())]);
                view! { <a class="btn" rel="next" href=links::with_query("/audit", pairs)>"Older rows"</a> }
            });
            let newest = (!is_first).then(|| {
                view! { <a class="btn" href=links::with_query("/audit", record.search.filters())>"Newest rows"</a> }
            });
            view! { {lines(rows)}<p class="foot">{newest}{older}</p> }.into_any()
        }
    }
}

fn nothing_fits(record: &Record, is_first: bool) -> AnyView {
    if !is_first {
        let newest = links::with_query("/audit", record.search.filters());
        return empty(
            "There is no older row",
            "The page before was the last one.",
            Some((newest, "Newest rows")),
        );
    }
    if record.search.filters().is_empty() {
        return empty(
            "Nothing is recorded here yet",
            "You read what is about your locks; nothing was done to them by force, and nobody tried.",
            None,
        );
    }
    empty(
        "No row fits",
        "Names and prefixes are compared letter by letter, times are UTC.",
        Some(("/audit".to_owned(), "Every row")),
    )
}

fn empty(title: &'static str, text: &'static str, onward: Option<(String, &'static str)>) -> AnyView {
    let onward = onward.map(|(path, word)| {
        view! { <p class="do"><a class="btn" href=path>{word}</a></p> }
    });
    view! { <div class="empty"><h3>{title}</h3><p>{text}</p>{onward}</div> }.into_any()
}
