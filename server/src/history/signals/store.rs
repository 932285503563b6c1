//! Rows of `lease_signals`: one per minute, kind, template and process; the counts by second as JSON.

use std::collections::BTreeMap;
use std::sync::Arc;

use sqlx::Row as _;

use super::{MINUTE_MS, Signal, SignalKind, Signals};
use runtime::db::{Db, Tx, on_either};

impl Signals {
    /// Writes rows that have grown.
    pub(in crate::history) async fn write(&self, tx: &mut Tx) -> Result<(), sqlx::Error> {
        let statement =
            "INSERT INTO lease_signals (at, kind, prefix, process_id, seconds) VALUES ($1, $2, $3, $4, $5)
            ON CONFLICT (at, kind, prefix, process_id) DO UPDATE SET seconds = excluded.seconds";
        for ((at, kind, prefix), minute) in self.minutes.iter().filter(|(_, minute)| minute.is_dirty) {
            let seconds = serde_json::to_string(&minute.seconds)
                .map_err(|error| sqlx::Error::Encode(Box::new(error)))?;
            on_either!(&mut *tx, Tx, |tx| {
                let query = sqlx::query(statement).bind(at).bind(kind.as_str());
                let query = query.bind(prefix.as_ref()).bind(&self.process_id).bind(seconds);
                query.execute(&mut **tx).await?;
            });
        }
        Ok(())
    }
}

/// Counts of all servers since `since_ms`, oldest first.
///
/// # Errors
/// The store does not answer.
pub async fn read(db: &Db, since_ms: i64) -> Result<Vec<Signal>, sqlx::Error> {
    let select = "SELECT at, kind, prefix, seconds FROM lease_signals WHERE at >= $1";
    let from = since_ms - since_ms.rem_euclid(MINUTE_MS);
    let mut signals = Vec::new();
    on_either!(db, Db, |pool| {
        for row in sqlx::query(select).bind(from).fetch_all(pool).await? {
            let (minute, kind, prefix): (i64, &str, &str) =
                (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
            let seconds: BTreeMap<u8, u64> = serde_json::from_str(row.try_get(3)?).unwrap_or_default();
            // A newer version may know more kinds.
            let Some(kind) = SignalKind::parse(kind) else {
                continue;
            };
            let prefix: Arc<str> = prefix.into();
            signals.extend(seconds.into_iter().map(|(second, times)| Signal {
                at: minute + i64::from(second) * 1_000,
                kind,
                prefix: prefix.clone(),
                times,
            }));
        }
    });
    signals.retain(|signal| signal.at >= since_ms);
    signals.sort_by_key(|signal| signal.at);
    Ok(signals)
}
