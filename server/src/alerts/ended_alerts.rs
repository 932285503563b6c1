//! The newest ended alerts, cached: SQL cannot apply a scope, so each page of a reader with a scope could read all of them. A
//! page that is requested after a change reads what ended since.

use std::sync::Arc;

use tokio::sync::Mutex;

use super::Alerts;
use super::store::{self, EndedAlert};

/// Cached alerts, the newest.
const ALERTS_MAX: usize = 20_000;
/// Size of their texts in the store: a name may have 64 KiB.
const BYTES_MAX: usize = 32 * 1024 * 1024;
/// Rows of one query.
const QUERY_ROWS: i64 = 500;
/// Alerts that ended this long before the last read, in milliseconds, are read again: the clock of the evaluating server may be
/// behind.
const REREAD_MS: i64 = 5 * 60_000;

/// Newest first.
pub(super) type EndedAlerts = Arc<Vec<Arc<EndedAlert>>>;

/// Revision, time of the read, and the alerts. Locked while they are read: concurrent requests share one read.
#[derive(Debug, Default)]
pub(super) struct EndedAlertCache(Mutex<Option<(i64, i64, EndedAlerts)>>);

impl Alerts {
    /// As of this revision or a later one.
    pub(super) async fn ended_alerts(&self, revision: i64) -> Result<EndedAlerts, sqlx::Error> {
        let mut cached = self.ended.0.lock().await;
        let now = self.now();
        let (known, from) = match &*cached {
            Some((at, _, alerts)) if *at >= revision => return Ok(alerts.clone()),
            Some((_, read_at, alerts)) => {
                // The clock may have been set back, and the newest end may be of a clock that was ahead. Without an end,
                // the difference of the clocks is unknown.
                let from = |newest: &Arc<EndedAlert>| newest.ended_at.min(*read_at).min(now) - REREAD_MS;
                (alerts.clone(), alerts.first().map_or(i64::MIN, from))
            }
            None => (EndedAlerts::default(), i64::MIN),
        };
        let alerts = Arc::new(self.read_ended(&known, from).await?);
        *cached = Some((revision, now, alerts.clone()));
        Ok(alerts)
    }

    /// Those that ended at `from` or later, before the known older ones.
    async fn read_ended(
        &self,
        known: &[Arc<EndedAlert>],
        from: i64,
    ) -> Result<Vec<Arc<EndedAlert>>, sqlx::Error> {
        let (mut alerts, mut bytes) = (Vec::new(), 0);
        let mut next = Some((i64::MAX, i64::MAX));
        while let Some(before) = next
            && alerts.len() < ALERTS_MAX
            && bytes < BYTES_MAX
        {
            let (read, older) = store::ended(&self.db, (from, before), QUERY_ROWS).await?;
            for alert in read {
                bytes += alert.bytes;
                alerts.push(Arc::new(alert));
            }
            next = older;
        }
        alerts.extend(known.iter().filter(|alert| alert.ended_at < from).cloned());
        Ok(within_limits(alerts))
    }
}

fn within_limits(mut alerts: Vec<Arc<EndedAlert>>) -> Vec<Arc<EndedAlert>> {
    let mut bytes = 0;
    let fitting = alerts.iter().take(ALERTS_MAX).take_while(|alert| {
        bytes += alert.bytes;
        bytes <= BYTES_MAX
    });
    let count = fitting.count();
    alerts.truncate(count);
    alerts
}
