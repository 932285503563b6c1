//! `/audit/{id}`

use std::sync::Arc;

use app::forms::audit::lines::Line;
use app::forms::audit::row::{RowPage, no_row, row, unreadable as unreadable_page};
use app::forms::chrome::Place;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use domain::audit::{AuditQuery, AuditRow, Readable};

use super::attention::review;
use super::lines::Fates;
use super::{Desk, fields, unreadable};
use crate::audit::Look;
use crate::http::form_page;
use crate::http::people::Id;
use crate::http::settings::Viewer;
use crate::identity::Who;

/// Steps of one unlock that are listed: wrong names and refusals make some more than the usual four.
const STEPS_MAX: u32 = 50;

pub(super) async fn show(State(desk): State<Arc<Desk>>, Viewer(who): Viewer, Id(id): Id) -> Response {
    let chrome = form_page::chrome(&who, Place::Audit);
    let seq = id.parse::<i64>().ok().filter(|seq| *seq >= 1);
    let found = match seq {
        Some(seq) => desk.row(&who, seq).await,
        None => Ok(None),
    };
    match found {
        Ok(Some(page)) => form_page::answer(StatusCode::OK, row(&chrome, &page)),
        Ok(None) => form_page::answer(StatusCode::NOT_FOUND, no_row(&chrome)),
        Err(error) => {
            unreadable(&error);
            form_page::answer(StatusCode::SERVICE_UNAVAILABLE, unreadable_page(&chrome))
        }
    }
}

impl Desk {
    async fn row(&self, who: &Who, seq: i64) -> Result<Option<RowPage>, sqlx::Error> {
        let readable = Readable::to(&who.grants);
        let Some(look) = self.audit().look(seq, &readable).await? else {
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
        let Look {
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
            changes: fields::changes(row.before.as_deref(), row.after.as_deref()),
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

    async fn one(&self, row: &AuditRow, fates: &Fates) -> Option<Line> {
        self.lines(std::slice::from_ref(row), fates).await.pop()
    }

    async fn maybe(&self, row: Option<&AuditRow>, fates: &Fates) -> Option<Line> {
        self.one(row?, fates).await
    }

    /// Oldest first.
    async fn steps(&self, row: &AuditRow, readable: Readable) -> Result<Vec<AuditRow>, sqlx::Error> {
        let Some(id) = &row.unlock_id else {
            return Ok(Vec::new());
        };
        let query = AuditQuery {
            unlock_id: Some(id.clone()),
            limit: STEPS_MAX,
            readable,
            ..AuditQuery::default()
        };
        let mut steps = self.audit().page(&query).await?.rows;
        steps.reverse();
        Ok(steps)
    }
}
