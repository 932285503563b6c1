//! `/audit/{id}`

use app::console::ConsoleError;
use app::pages::audit::data::{AuditEntryData, AuditTableRow};
use domain::audit::{AuditEntry, AuditQuery, Readable};

use super::diff;
use super::page_rows::UnlocksById;
use super::pending_reviews::review;
use crate::audit::RecordWithNeighbours;
use crate::http::audit::unreadable;
use crate::http::pages::caller_data::unavailable;
use crate::http::state::Services;
use crate::identity::Principal;

/// Steps of one unlock that are listed: wrong names and refusals make some more than the usual four.
const STEPS_MAX: u32 = 50;

impl Services {
    pub(super) async fn audit_entry_data(
        &self,
        who: &Principal,
        id: &str,
    ) -> Result<AuditEntryData, ConsoleError> {
        let seq = id.parse::<i64>().ok().filter(|seq| *seq >= 1);
        let found = match seq {
            Some(seq) => self.entry(who, seq).await,
            None => Ok(None),
        };
        let found = found.map_err(|error| {
            unreadable(&error);
            unavailable(
                "Audit log unavailable: the store does not answer. No action runs without its audit entry.",
            )
        })?;
        found.ok_or_else(|| ConsoleError::NotFound {
            what: "There is no such entry, or it is not about your locks.".to_owned(),
        })
    }

    async fn entry(&self, who: &Principal, seq: i64) -> Result<Option<AuditEntryData>, sqlx::Error> {
        let readable = Readable::to(&who.grants);
        let Some(record) = self.auth.audit.read_with_neighbours(seq, &readable).await? else {
            return Ok(None);
        };
        let steps = self.steps(&record.row, readable).await?;
        let mut all = steps.clone();
        all.extend(
            [&record.row]
                .into_iter()
                .chain(&record.older)
                .chain(&record.newer)
                .cloned(),
        );
        let unlocks = self.unlocks(&all).await?;
        let unlock = record.row.unlock_id.as_ref().and_then(|id| unlocks.get(id));
        let review = match unlock {
            Some(unlock) => {
                let approvable = self.unlocks.approvable(who, &[unlock]).await?;
                review(who, unlock, approvable.contains(&unlock.id))
            }
            None => None,
        };
        let RecordWithNeighbours {
            row,
            gives_its_hash,
            follows,
            older,
            newer,
        } = record;
        let Some(line) = self.table_row(&row, &unlocks).await else {
            return Ok(None);
        };
        Ok(Some(AuditEntryData {
            row: line,
            changes: diff::changes(row.before.as_deref(), row.after.as_deref()),
            steps: self.lines(&steps, &unlocks).await,
            older: self.optional_table_row(older.as_ref(), &unlocks).await,
            newer: self.optional_table_row(newer.as_ref(), &unlocks).await,
            is_hash_valid: gives_its_hash,
            follows_previous: follows,
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

    async fn table_row(&self, row: &AuditEntry, unlocks: &UnlocksById) -> Option<AuditTableRow> {
        self.lines(std::slice::from_ref(row), unlocks).await.pop()
    }

    async fn optional_table_row(
        &self,
        row: Option<&AuditEntry>,
        unlocks: &UnlocksById,
    ) -> Option<AuditTableRow> {
        self.table_row(row?, unlocks).await
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
