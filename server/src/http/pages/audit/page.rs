//! `/audit`

use app::console::ConsoleError;
use app::pages::audit::data::{AuditData, AuditFilters, AuditSearchResult, ChainStatus};
use chrono::{DateTime, Utc};
use domain::access::Permission;
use domain::audit::AuditQuery;
use domain::duration::millis;
use domain::format;
use domain::query::QueryError;

use crate::audit::background_verifier::{ALL_ROWS_EVERY, NEW_ROWS_EVERY};
use crate::http::audit::{Pairs, pairs, parse, unreadable};
use crate::http::state::Services;
use crate::identity::Principal;

/// Entries of one page without `limit`.
const ENTRIES: &str = "50";

impl Services {
    /// An invalid filter and an unavailable store are results: the page shows its form with either.
    pub(super) async fn audit_data(&self, who: &Principal, search: &str) -> Result<AuditData, ConsoleError> {
        let mut pairs = pairs(Some(search.trim_start_matches('?')));
        if !pairs.iter().any(|(name, _)| name == "limit") {
            pairs.push(("limit".to_owned(), ENTRIES.to_owned()));
        }
        let query = parse(&pairs, who);
        let filters = filters(&pairs, query.as_ref());
        let found = match query {
            Err(_) => AuditSearchResult::InvalidFilter,
            Ok(query) => self.entries(&query).await.unwrap_or_else(|error| {
                unreadable(&error);
                AuditSearchResult::Unavailable
            }),
        };
        let pending = self.pending(who).await.unwrap_or_else(|error| {
            unreadable(&error);
            Vec::new()
        });
        Ok(AuditData {
            backends: self.backend_choices(who, Permission::AuditRead),
            filters,
            chain: self.chain().await,
            pending,
            found,
            now: self.now(),
        })
    }

    async fn entries(&self, query: &AuditQuery) -> Result<AuditSearchResult, sqlx::Error> {
        let page = self.auth.audit.page(query).await?;
        let unlocks = self.unlocks(&page.rows).await?;
        Ok(AuditSearchResult::Entries {
            rows: self.lines(&page.rows, &unlocks).await,
            older: page.next_cursor,
            is_first: query.before_seq.is_none(),
        })
    }

    /// From memory, except for the number of the last entry.
    async fn chain(&self) -> ChainStatus {
        let state = self.chain_verifier.state();
        let ms = |at: Option<DateTime<Utc>>| at.map(|at| at.timestamp_millis());
        let every = |time: std::time::Duration| format::period(millis(time));
        ChainStatus {
            verified: state.rows,
            hash: state.hash,
            checked_at: ms(state.checked_at),
            walked_at: ms(state.walked_at),
            fault: state.fault.map(|fault| (fault.seq, fault.to_string())),
            is_unreadable: state.is_blind,
            last: self.auth.audit.last().await.ok(),
            intervals: (every(NEW_ROWS_EVERY), every(ALL_ROWS_EVERY)),
        }
    }
}

fn filters(pairs: &Pairs, query: Result<&AuditQuery, &QueryError>) -> AuditFilters {
    let raw_value = |field: &str| {
        let found = pairs.iter().find(|(name, _)| name == field);
        found.map(|(_, value)| value.clone()).unwrap_or_default()
    };
    let time =
        |field: &str, parsed: Option<DateTime<Utc>>| parsed.map_or_else(|| raw_value(field), datetime_local);
    let (from, to) = query.map_or((None, None), |query| (query.from, query.to));
    AuditFilters {
        actor: raw_value("actor"),
        backend: raw_value("backend"),
        prefix: raw_value("prefix"),
        action: raw_value("action"),
        outcome: raw_value("outcome"),
        unlock_id: raw_value("unlockId"),
        from: time("from", from),
        to: time("to", to),
        fault: query
            .err()
            .map(|error| (error.field.clone(), format!("It {}.", error.message))),
    }
}

/// Value of a `datetime-local` field: without a zone, and with milliseconds only if they are not zero.
fn datetime_local(at: DateTime<Utc>) -> String {
    let text = domain::time_format::iso(at);
    let text = text.trim_end_matches('Z');
    text.strip_suffix(".000").unwrap_or(text).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_shown_in_its_field_without_a_zone() {
        // Whole seconds, and milliseconds that must not be lost.
        let text = |ms| datetime_local(DateTime::from_timestamp_millis(ms).unwrap());
        assert_eq!(text(1_772_334_761_000), "2026-03-01T03:12:41");
        assert_eq!(text(1_772_334_761_250), "2026-03-01T03:12:41.250");
    }
}
