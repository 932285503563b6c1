//! Forced unlocks that are over, for charts and lists.

use domain::names::{BackendName, Resource};
use domain::unlock::Unlock;

use super::Unlocks;
use super::store::{self, Value};

impl Unlocks {
    /// Those that released this lock, newest first.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn released(
        &self,
        backend: &BackendName,
        resource: &Resource,
        most: u32,
    ) -> Result<Vec<Unlock>, sqlx::Error> {
        let json = serde_json::to_string(resource).map_err(|error| sqlx::Error::Encode(Box::new(error)))?;
        let values = [
            Value::Text(&json),
            Value::Text(backend.as_str()),
            Value::Int(i64::from(most)),
        ];
        let wanted =
            "resource = $1 AND backend = $2 AND state = 'released' ORDER BY created_at DESC LIMIT $3";
        let found = store::select(self.db(), wanted, &values).await?;
        Ok(found.into_iter().map(|row| row.unlock).collect())
    }

    /// Those that were acted on between two moments, milliseconds since 1970, newest first; of whatever lock.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn acted(&self, from: i64, until: i64, most: u32) -> Result<Vec<Unlock>, sqlx::Error> {
        let values = [Value::Int(from), Value::Int(until), Value::Int(i64::from(most))];
        let wanted = "acted_at >= $1 AND acted_at < $2 ORDER BY acted_at DESC LIMIT $3";
        let found = store::select(self.db(), wanted, &values).await?;
        Ok(found.into_iter().map(|row| row.unlock).collect())
    }
}
