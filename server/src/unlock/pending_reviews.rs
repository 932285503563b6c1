//! Unlocks that need attention, and unlocks by id, for readers of the audit log.

use std::collections::HashMap;

use domain::audit::Readable;
use domain::unlock::Unlock;

use super::Unlocks;
use super::store::{self, Value};
use runtime::db::Db;

/// Limit per kind, and of one read.
const WAITING_MAX: usize = 50;

const ALONE: &str = "break_glass_reason IS NOT NULL AND reviewed_at IS NULL AND acted_at IS NOT NULL ORDER BY acted_at DESC LIMIT $1 OFFSET $2";
const UNKNOWN: &str = "state = 'outcome_unknown' ORDER BY acted_at DESC LIMIT $1 OFFSET $2";

/// Ids as one JSON text, because a statement has a fixed number of parameters.
const OF_SQLITE: &str = "id IN (SELECT value FROM json_each($1))";
const OF_POSTGRES: &str = "id IN (SELECT json_array_elements_text(CAST($1 AS json)))";

impl Unlocks {
    /// Unlocks with an unknown outcome, then break-glass unlocks without a review; the newest 50 of each.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn waiting(&self, readable: &Readable) -> Result<Vec<Unlock>, sqlx::Error> {
        let mut found: Vec<Unlock> = Vec::new();
        for filter in [UNKNOWN, ALONE] {
            let before = found.len();
            for start in (0..).step_by(WAITING_MAX) {
                let range =
                    [WAITING_MAX, start].map(|rows| Value::Int(i64::try_from(rows).unwrap_or(i64::MAX)));
                let rows = store::select(self.db(), filter, &range).await?;
                let is_last = rows.len() < WAITING_MAX;
                for unlock in rows.into_iter().map(|row| row.unlock) {
                    if found.iter().all(|known| known.id != unlock.id) && is_readable(readable, &unlock) {
                        found.push(unlock);
                    }
                }
                if is_last || found.len() - before >= WAITING_MAX {
                    break;
                }
            }
            found.truncate(before + WAITING_MAX);
        }
        Ok(found)
    }

    /// Unlocks by id; unknown ids are left out.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn load_many(&self, ids: &[&str]) -> Result<HashMap<String, Unlock>, sqlx::Error> {
        if ids.is_empty() {
            return Ok(HashMap::new());
        }
        let ids = serde_json::json!(ids).to_string();
        let filter = match self.db() {
            Db::Sqlite(_) => OF_SQLITE,
            Db::Postgres(_) => OF_POSTGRES,
        };
        let rows = store::select(self.db(), filter, &[Value::Text(&ids)]).await?;
        Ok(rows
            .into_iter()
            .map(|row| (row.unlock.id.clone(), row.unlock))
            .collect())
    }
}

fn is_readable(readable: &Readable, unlock: &Unlock) -> bool {
    readable.covers(Some(unlock.backend.as_str()), Some(&unlock.resource.text()))
}
