//! `GET /v1/audit/export`: the same entries as a file, streamed from the store. The export is recorded as an entry itself.

use app::console::ConsoleError;
use axum::Extension;
use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use domain::audit::{Action, AuditPage, AuditQuery};
use domain::query::QueryError;
use futures::stream;
use serde_json::{Map, Value, json};

use super::{Pairs, pairs, parse, unreadable};
use crate::audit::Entry;
use crate::audit::export::{csv_header, csv_row};
use crate::http::auth::SessionGuard;
use crate::http::current_user::ApiUser;
use crate::http::dto::audit::AuditEntryDto;
use crate::http::problem::Problem;
use crate::http::state::AppState;
use crate::identity::Principal;

/// Rows that are in memory at once, whatever the length of the file.
const ROWS_OF_ONE_READ: u32 = 200;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Csv,
    Json,
}

impl Format {
    fn parse(text: &str) -> Result<Self, QueryError> {
        match text {
            "csv" => Ok(Self::Csv),
            "json" => Ok(Self::Json),
            _ => Err(QueryError::new("format", "must be csv or json")),
        }
    }

    const fn as_str(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Json => "json",
        }
    }

    /// Type and name of the file. JSON is one object a line, so that a reader needs no more memory than we do.
    const fn file(self) -> [&'static str; 2] {
        match self {
            Self::Csv => [
                "text/csv; charset=utf-8; header=present",
                "attachment; filename=\"leasehold-audit.csv\"",
            ],
            Self::Json => [
                "application/x-ndjson",
                "attachment; filename=\"leasehold-audit.jsonl\"",
            ],
        }
    }

    fn text(self, page: AuditPage) -> String {
        let lines: Vec<String> = match self {
            Self::Csv => page.rows.iter().map(csv_row).collect(),
            Self::Json => {
                let rows = page.rows.into_iter().map(AuditEntryDto::from);
                rows.map(|row| row.line()).collect()
            }
        };
        lines.concat()
    }
}

/// Every matching entry, newest first, as a file: CSV in which no spreadsheet runs a formula, or one JSON object per line.
///
/// The file has the entries written before the request. The entry about the request itself is not in it.
#[utoipa::path(
    get, path = "/v1/audit/export", tag = "audit",
    params(
        ("format" = Option<String>, Query, description = "`csv` or `json`, which is the default"),
        ("actor" = Option<String>, Query, description = "The filters are those of `GET /v1/audit`"),
        ("backend" = Option<String>, Query),
        ("prefix" = Option<String>, Query),
        ("action" = Option<String>, Query),
        ("outcome" = Option<String>, Query),
        ("unlockId" = Option<String>, Query),
        ("from" = Option<String>, Query),
        ("to" = Option<String>, Query)
    ),
    responses(
        (status = 200, content((String = "text/csv"), (AuditEntryDto = "application/x-ndjson"))),
        (status = 400, body = Problem, content_type = "application/problem+json"),
        (status = 403, body = Problem, content_type = "application/problem+json"),
        (status = 503, body = Problem, content_type = "application/problem+json")
    )
)]
pub(in crate::http) async fn export(
    State(state): State<AppState>,
    guard: Option<Extension<SessionGuard>>,
    user: ApiUser,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let query_parsed = parse_query(pairs(query.as_deref()), &user.who);
    let (format, mut query) = query_parsed.map_err(|error| user.problem(ConsoleError::BadQuery(error)))?;
    let appended = state.auth.audit.append(entry(&user.who, format, &query)).await;
    let appended = appended.map_err(|error| user.problem(unreadable(&error)))?;
    query.limit = ROWS_OF_ONE_READ;
    query.before_seq = Some(appended.seq);
    let reading = Reading {
        state,
        guard: guard.map(|Extension(guard)| guard),
        format,
        query,
        is_first: true,
    };
    let [kind, name] = format.file();
    let headers = [(header::CONTENT_TYPE, kind), (header::CONTENT_DISPOSITION, name)];
    let body = Body::from_stream(stream::try_unfold(Some(reading), Reading::next));
    Ok((headers, body).into_response())
}

fn parse_query(mut pairs: Pairs, who: &Principal) -> Result<(Format, AuditQuery), QueryError> {
    let formats: Vec<String> = pairs
        .extract_if(.., |(name, _)| name == "format")
        .map(|(_, format)| format)
        .collect();
    let format = match formats.as_slice() {
        [] => Format::Json,
        [format] => Format::parse(format)?,
        _ => return Err(QueryError::new("format", "must be given once")),
    };
    let page = pairs.iter().find(|(name, _)| name == "limit" || name == "cursor");
    if let Some((name, _)) = page {
        return Err(QueryError::new(name, "is not allowed: an export has every entry"));
    }
    Ok((format, parse(&pairs, who)?))
}

/// Characters of a filter that are recorded.
const FILTER_CHARS_MAX: usize = 512;

fn entry(who: &Principal, format: Format, query: &AuditQuery) -> Entry {
    let filters = query.filters().into_iter();
    let filters: Map<String, Value> = filters
        .map(|(name, value)| {
            (
                name.to_owned(),
                Value::String(value.chars().take(FILTER_CHARS_MAX).collect()),
            )
        })
        .collect();
    let after = json!({"format": format.as_str(), "filters": filters});
    Entry {
        after: Some(after),
        ..Entry::new(Action::AuditExport, "ok", who.actor(None), who.origin.clone())
    }
}

/// Position of an export.
struct Reading {
    state: AppState,
    guard: Option<SessionGuard>,
    format: Format,
    query: AuditQuery,
    is_first: bool,
}

impl Reading {
    /// The next chunk and the state after it. An error aborts the response, so that a partial file does not look complete.
    async fn next(reading: Option<Self>) -> Result<Option<(String, Option<Self>)>, ExportEnd> {
        let Some(mut reading) = reading else {
            return Ok(None);
        };
        let page = tokio::select! {
            biased;
            () = access_lost(reading.guard.as_ref()) => return Err(ExportEnd::Gone),
            page = reading.state.auth.audit.page(&reading.query) => page,
        };
        let mut page = page.map_err(|error| {
            tracing::warn!("an export of the audit log was aborted: {error}");
            ExportEnd::Store
        })?;
        let next = page.next_cursor.take().and_then(|cursor| cursor.parse().ok());
        let mut text = String::new();
        if reading.is_first && reading.format == Format::Csv {
            text.push_str(&csv_header());
        }
        text.push_str(&reading.format.text(page));
        reading.is_first = false;
        reading.query.before_seq = next;
        Ok(Some((text, next.is_some().then_some(reading))))
    }
}

async fn access_lost(guard: Option<&SessionGuard>) {
    match guard {
        Some(guard) => guard.access_lost().await,
        None => std::future::pending().await,
    }
}

#[derive(Debug, Clone, Copy, thiserror::Error)]
enum ExportEnd {
    #[error("the store does not answer")]
    Store,
    #[error("the reader lost access")]
    Gone,
}
