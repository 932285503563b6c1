//! `/audit/{id}`

use app::server_pages::audit::row::{RowPage, no_row, row, unreadable as unreadable_page};
use app::server_pages::audit::table::AuditTableRow;
use app::server_pages::layout::PageSection;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use domain::audit::{AuditEntry, AuditQuery, Readable};

use super::diff;
use super::page_rows::Fates;
use super::pending_reviews::review;
use crate::audit::RecordWithNeighbours;
use crate::http::audit::unreadable;
use crate::http::current_user::CurrentUser;
use crate::http::pages::response;
use crate::http::path_id::PathId;
use crate::http::state::AppState;
use crate::http::state::Services;
use crate::identity::Principal;

/// Steps of one unlock that are listed: wrong names and refusals make some more than the usual four.
const STEPS_MAX: u32 = 50;

pub(in crate::http) async fn show(
    State(state): State<AppState>,
    CurrentUser(who): CurrentUser,
    PathId(id): PathId,
) -> Response {
    let chrome = response::chrome(&who, PageSection::Audit);
    let seq = id.parse::<i64>().ok().filter(|seq| *seq >= 1);
    let found = match seq {
        Some(seq) => state.row(&who, seq).await,
        None => Ok(None),
    };
    match found {
        Ok(Some(page)) => response::html_response(StatusCode::OK, row(&chrome, &page)),
        Ok(None) => response::html_response(StatusCode::NOT_FOUND, no_row(&chrome)),
        Err(error) => {
            unreadable(&error);
            response::html_response(StatusCode::SERVICE_UNAVAILABLE, unreadable_page(&chrome))
        }
    }
}

impl Services {
    async fn row(&self, who: &Principal, seq: i64) -> Result<Option<RowPage>, sqlx::Error> {
        let readable = Readable::to(&who.grants);
        let Some(look) = self.auth.audit.read_with_neighbours(seq, &readable).await? else {
            return Ok(None);
        };
        let steps = self.steps(&look.row, readable).await?;
        let mut all = steps.clone();
        all.extend(
            [&look.row]
                .into_iter()
                .chain(&look.older)
                .chain(&look.newer)
                .cloned(),
        );
        let fates = self.fates(&all).await?;
        let fate = look.row.unlock_id.as_ref().and_then(|id| fates.get(id));
        let review = fate.and_then(|unlock| review(who, unlock));
        let RecordWithNeighbours {
            row,
            gives_its_hash,
            follows,
            older,
            newer,
        } = look;
        let Some(line) = self.one(&row, &fates).await else {
            return Ok(None);
        };
        Ok(Some(RowPage {
            line,
            changes: diff::changes(row.before.as_deref(), row.after.as_deref()),
            steps: self.lines(&steps, &fates).await,
            older: self.maybe(older.as_ref(), &fates).await,
            newer: self.maybe(newer.as_ref(), &fates).await,
            gives_its_hash,
            follows,
            review,
            actor_id: row.actor_id,
            source: row.source,
            unlock_id: row.unlock_id,
            ip: row.ip,
            user_agent: row.user_agent,
            request_id: row.request_id,
            trace_id: row.trace_id,
            hash: row.hash,
            prev_hash: row.prev_hash,
        }))
    }

    async fn one(&self, row: &AuditEntry, fates: &Fates) -> Option<AuditTableRow> {
        self.lines(std::slice::from_ref(row), fates).await.pop()
    }

    async fn maybe(&self, row: Option<&AuditEntry>, fates: &Fates) -> Option<AuditTableRow> {
        self.one(row?, fates).await
    }

    /// Oldest first.
    async fn steps(&self, row: &AuditEntry, readable: Readable) -> Result<Vec<AuditEntry>, sqlx::Error> {
        let Some(id) = &row.unlock_id else {
            return Ok(Vec::new());
        };
        let query = AuditQuery {
            unlock_id: Some(id.clone()),
            limit: STEPS_MAX,
            readable,
            ..AuditQuery::default()
        };
        let mut steps = self.auth.audit.page(&query).await?.rows;
        steps.reverse();
        Ok(steps)
    }
}
