//! `/audit`

use app::server_pages::audit::integrity::Chain;
use app::server_pages::audit::search::Search;
use app::server_pages::audit::{AuditSearchResult, Record, record};
use app::server_pages::layout::PageSection;
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use chrono::{DateTime, Utc};
use domain::access::Permission;
use domain::audit::AuditQuery;
use domain::duration::millis;
use domain::format;
use domain::query::QueryError;

use crate::audit::background_verifier::{ALL_ROWS_EVERY, NEW_ROWS_EVERY};
use crate::http::audit::{Pairs, pairs, parse, unreadable};
use crate::http::current_user::CurrentUser;
use crate::http::pages::response;
use crate::http::state::AppState;
use crate::http::state::Services;
use crate::identity::Principal;

/// Rows of one page, unless it is asked otherwise.
const ROWS: &str = "50";

pub(in crate::http) async fn show(
    State(state): State<AppState>,
    CurrentUser(who): CurrentUser,
    RawQuery(query): RawQuery,
) -> Response {
    state.page(&who, pairs(query.as_deref()), None).await
}

/// Status and reason of a refused review.
pub(super) type Refusal = (StatusCode, String);

impl Services {
    pub(super) async fn page(&self, who: &Principal, mut pairs: Pairs, refusal: Option<Refusal>) -> Response {
        if !pairs.iter().any(|(name, _)| name == "limit") {
            pairs.push(("limit".to_owned(), ROWS.to_owned()));
        }
        let asked = parse(&pairs, who);
        let search = self.search(who, &pairs, asked.as_ref());
        let (status, found) = match asked {
            Err(_) => (StatusCode::BAD_REQUEST, AuditSearchResult::BadQuestion),
            Ok(query) => match self.rows(&query).await {
                Ok(found) => (StatusCode::OK, found),
                Err(error) => {
                    unreadable(&error);
                    (StatusCode::SERVICE_UNAVAILABLE, AuditSearchResult::Nothing)
                }
            },
        };
        let pending = match self.pending(who).await {
            Ok(pending) => pending,
            Err(error) => {
                unreadable(&error);
                Vec::new()
            }
        };
        let (status, refusal) = refusal.map_or((status, None), |(status, why)| (status, Some(why)));
        let shown = Record {
            search,
            chain: self.chain().await,
            pending,
            found,
            refusal,
            now: self.now(),
        };
        let chrome = response::chrome(who, PageSection::Audit);
        response::html_response(status, record(&chrome, &shown))
    }

    async fn rows(&self, query: &AuditQuery) -> Result<AuditSearchResult, sqlx::Error> {
        let page = self.auth.audit.page(query).await?;
        let fates = self.fates(&page.rows).await?;
        Ok(AuditSearchResult::Rows {
            lines: self.lines(&page.rows, &fates).await,
            older: page.next_cursor,
            is_first: query.before_seq.is_none(),
        })
    }

    /// From memory, but for the number of the last row.
    async fn chain(&self) -> Chain {
        let state = self.chain_verifier.state();
        let ms = |at: Option<DateTime<Utc>>| at.map(|at| at.timestamp_millis());
        let every = |time: std::time::Duration| format::period(millis(time));
        Chain {
            rows: state.rows,
            hash: state.hash,
            checked_at: ms(state.checked_at),
            walked_at: ms(state.walked_at),
            fault: state.fault.map(|fault| (fault.seq, fault.to_string())),
            is_blind: state.is_blind,
            last: self.auth.audit.last().await.ok(),
            every: (every(NEW_ROWS_EVERY), every(ALL_ROWS_EVERY)),
        }
    }

    fn search(&self, who: &Principal, pairs: &Pairs, asked: Result<&AuditQuery, &QueryError>) -> Search {
        let typed = |field: &str| {
            let found = pairs.iter().find(|(name, _)| name == field);
            found.map(|(_, value)| value.clone()).unwrap_or_default()
        };
        let time = |field: &str, parsed: Option<DateTime<Utc>>| parsed.map_or_else(|| typed(field), local);
        let (from, to) = asked.map_or((None, None), |query| (query.from, query.to));
        Search {
            actor: typed("actor"),
            backend: typed("backend"),
            prefix: typed("prefix"),
            action: typed("action"),
            outcome: typed("outcome"),
            unlock_id: typed("unlockId"),
            from: time("from", from),
            to: time("to", to),
            backends: self.backend_choices(who, Permission::AuditRead),
            fault: asked
                .err()
                .map(|error| (error.field.clone(), format!("It {}.", error.message))),
        }
    }
}

/// As a browser's field wants it: without a zone, and finer than seconds only where it must be.
fn local(at: DateTime<Utc>) -> String {
    let text = domain::time_format::iso(at);
    let text = text.trim_end_matches('Z');
    text.strip_suffix(".000").unwrap_or(text).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_shown_in_its_field_without_a_zone() {
        // Whole seconds, and a rest that must not be lost.
        let told = |ms| local(DateTime::from_timestamp_millis(ms).unwrap());
        assert_eq!(told(1_772_334_761_000), "2026-03-01T03:12:41");
        assert_eq!(told(1_772_334_761_250), "2026-03-01T03:12:41.250");
    }
}
