//! Audit log page: filters, entries grouped by unlock, one entry with its changes, verification
//! status.

pub mod integrity;
pub mod outcome_badge;
pub mod pending_reviews;
pub mod row;
pub mod search;
pub mod table;

use leptos::prelude::*;

use self::integrity::Chain;
use self::pending_reviews::{Pending, attention};
use self::search::Search;
use self::table::{AuditTableRow, lines};
use crate::links;
use crate::server_pages::field::alert;
use crate::server_pages::layout::{Chrome, Page, page};

pub struct Record {
    pub search: Search,
    pub chain: Chain,
    pub pending: Vec<Pending>,
    pub found: AuditSearchResult,
    /// Error of a rejected review.
    pub refusal: Option<String>,
    /// Milliseconds since 1970.
    pub now: i64,
}

pub enum AuditSearchResult {
    Rows {
        lines: Vec<AuditTableRow>,
        /// Cursor of the next page.
        older: Option<String>,
        is_first: bool,
    },
    /// Invalid filter; the filter form has the error.
    BadQuestion,
    /// The store does not answer.
    Nothing,
}

pub fn record(chrome: &Chrome, record: &Record) -> String {
    let is_down = matches!(record.found, AuditSearchResult::Nothing);
    let content = view! {
        {alert(record.refusal.clone())}
        <div class="stack audit">
            {record.chain.view(record.now)}
            {attention(&record.pending, record.now)}
            <section class="sec" aria-labelledby="rows">
                <header><h2 id="rows">"Entries"</h2><span class="note">"newest first, grouped by forced unlock"</span>{exports(record)}</header>
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
                "Append-only record of actions with user, reason and outcome. Each entry holds the hash of the previous one."
                    .to_owned(),
            ),
            content: content.into_any(),
        },
    )
}

fn exports(record: &Record) -> AnyView {
    if !matches!(record.found, AuditSearchResult::Rows { .. }) {
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
            "Export as "<a class="link" href=link("csv") download="">"CSV"</a>" or "
            <a class="link" href=link("json") download="">"JSON"</a>
        </span>
    }
    .into_any()
}

fn found(record: &Record) -> AnyView {
    match &record.found {
        AuditSearchResult::BadQuestion => {
            empty("Search not run", "Invalid filter; see the field above.", None)
        }
        AuditSearchResult::Nothing => empty(
            "Audit log unavailable",
            "The store does not answer. No action runs without its audit entry.",
            Some(("/audit".to_owned(), "Try again")),
        ),
        AuditSearchResult::Rows {
            lines: rows,
            older,
            is_first,
        } if rows.is_empty() && older.is_none() => nothing_fits(record, *is_first),
        AuditSearchResult::Rows {
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
                view! { <a class="btn" rel="next" href=links::with_query("/audit", pairs)>"Older entries"</a> }
            });
            let newest = (!is_first).then(|| {
                view! { <a class="btn" href=links::with_query("/audit", record.search.filters())>"Newest entries"</a> }
            });
            view! { {lines(rows)}<p class="foot">{newest}{older}</p> }.into_any()
        }
    }
}

fn nothing_fits(record: &Record, is_first: bool) -> AnyView {
    if !is_first {
        let newest = links::with_query("/audit", record.search.filters());
        return empty(
            "No older entries",
            "The previous page was the last one.",
            Some((newest, "Newest entries")),
        );
    }
    if record.search.filters().is_empty() {
        return empty(
            "No audit entries",
            "No forced unlock of your locks was requested.",
            None,
        );
    }
    empty(
        "No matching entries",
        "Names and prefixes are case-sensitive, times are UTC.",
        Some(("/audit".to_owned(), "All entries")),
    )
}

fn empty(title: &'static str, text: &'static str, onward: Option<(String, &'static str)>) -> AnyView {
    let onward = onward.map(|(path, word)| {
        view! { <p class="do"><a class="btn" href=path>{word}</a></p> }
    });
    view! { <div class="empty"><h3>{title}</h3><p>{text}</p>{onward}</div> }.into_any()
}
