//! Active alerts per Alertmanager: firing alerts are resent before they lapse, resolved ones a few times.

use std::collections::BTreeSet;

use domain::alerts::limits::ALERTS_PER_NOTICE_MAX;
use domain::duration::millis;
use domain::notification::{Notice, NoticeAlert, NoticeStatus};
use sqlx::Row as _;

use super::limits::{ALERTS_PER_REQUEST_MAX, RESEND_FIRST, RESOLVED_SENDS};
use runtime::db::{Db, Tx, on_either};

/// Sets the state of these alerts: of the firing ones that a message lists, and of every resolved one. Alerts already
/// stored keep the time of their next resend.
///
/// # Errors
/// The store refuses or does not answer.
pub(super) async fn set(
    tx: &mut Tx,
    receiver: &str,
    alerts: &[NoticeAlert],
    now: i64,
) -> Result<(), sqlx::Error> {
    let statement = "INSERT INTO active_alerts (receiver_id, fingerprint, alert, sends_left, next_at)
        VALUES ($1, $2, $3, $4, $5)
        ON CONFLICT (receiver_id, fingerprint) DO UPDATE SET alert = excluded.alert, sends_left = excluded.sends_left";
    let changed = alerts
        .iter()
        .enumerate()
        .filter(|(place, alert)| *place < ALERTS_PER_NOTICE_MAX || alert.status == NoticeStatus::Resolved);
    for (_, alert) in changed {
        let json = serde_json::to_string(alert).map_err(|error| sqlx::Error::Encode(Box::new(error)))?;
        let sends_left = match (alert.status, alert.ends_at) {
            (NoticeStatus::Firing, None) => None,
            // Its end is fixed: no event will resolve it.
            (NoticeStatus::Firing, Some(_)) | (NoticeStatus::Resolved, _) => Some(RESOLVED_SENDS),
        };
        on_either!(&mut *tx, Tx, |tx| {
            let query = sqlx::query(statement).bind(receiver).bind(&alert.fingerprint);
            let query = query.bind(json).bind(sends_left).bind(now + millis(RESEND_FIRST));
            query.execute(&mut **tx).await?;
        });
    }
    Ok(())
}

/// Fingerprints of those of these alerts that are resent as firing.
///
/// # Errors
/// The store does not answer.
pub(super) async fn firing(
    tx: &mut Tx,
    receiver: &str,
    alerts: &[NoticeAlert],
) -> Result<BTreeSet<String>, sqlx::Error> {
    // As one JSON text, because a statement has a fixed number of parameters.
    const SQLITE: &str = "SELECT fingerprint FROM active_alerts WHERE receiver_id = $1 AND sends_left IS NULL
        AND fingerprint IN (SELECT value FROM json_each($2))";
    const POSTGRES: &str =
        "SELECT fingerprint FROM active_alerts WHERE receiver_id = $1 AND sends_left IS NULL
        AND fingerprint IN (SELECT json_array_elements_text(CAST($2 AS json)))";
    let select = match &*tx {
        Tx::Sqlite(_) => SQLITE,
        Tx::Postgres(_) => POSTGRES,
    };
    let fingerprints: Vec<&str> = alerts.iter().map(|alert| alert.fingerprint.as_str()).collect();
    let json = serde_json::to_string(&fingerprints).map_err(|error| sqlx::Error::Encode(Box::new(error)))?;
    let fingerprints: Vec<String> = on_either!(tx, Tx, |tx| {
        let query = sqlx::query_scalar(select).bind(receiver).bind(json);
        query.fetch_all(&mut **tx).await?
    });
    Ok(fingerprints.into_iter().collect())
}

fn read(json: &str) -> Option<NoticeAlert> {
    let read = serde_json::from_str(json);
    if read.is_err() {
        tracing::error!("this version cannot read an alert in the outbox");
    }
    read.ok()
}

/// Current state of the alerts of a notice, which may have ended since it was enqueued.
///
/// # Errors
/// The store does not answer.
pub(super) async fn load(db: &Db, receiver: &str, notice: &Notice) -> Result<Vec<NoticeAlert>, sqlx::Error> {
    let select = "SELECT alert FROM active_alerts WHERE receiver_id = $1 AND fingerprint = $2";
    let mut alerts = Vec::new();
    let fingerprints: BTreeSet<&str> = notice
        .alerts
        .iter()
        .map(|alert| alert.fingerprint.as_str())
        .collect();
    on_either!(db, Db, |pool| {
        let mut connection = pool.acquire().await?;
        for fingerprint in fingerprints {
            let query = sqlx::query(select).bind(receiver).bind(fingerprint);
            if let Some(row) = query.fetch_optional(&mut *connection).await? {
                alerts.extend(read(&row.try_get::<String, _>(0)?));
            }
        }
    });
    Ok(alerts)
}

/// Claims the alerts that are due; no other process sends them until `next_at`.
///
/// # Errors
/// The store refuses or does not answer.
pub(super) async fn claim(
    db: &Db,
    receiver: &str,
    now: i64,
    next_at: i64,
) -> Result<Vec<NoticeAlert>, sqlx::Error> {
    const SQLITE: &str = "UPDATE active_alerts SET next_at = $1 WHERE receiver_id = $2 AND fingerprint IN (
        SELECT fingerprint FROM active_alerts WHERE receiver_id = $2 AND next_at <= $3 ORDER BY next_at LIMIT $4)
        RETURNING alert";
    const POSTGRES: &str = "UPDATE active_alerts SET next_at = $1 WHERE receiver_id = $2 AND fingerprint IN (
        SELECT fingerprint FROM active_alerts WHERE receiver_id = $2 AND next_at <= $3 ORDER BY next_at LIMIT $4
        FOR UPDATE SKIP LOCKED) RETURNING alert";
    let mut tx = db.begin().await?;
    let statement = match &tx {
        Tx::Sqlite(_) => SQLITE,
        Tx::Postgres(_) => POSTGRES,
    };
    let mut alerts = Vec::new();
    on_either!(&mut tx, Tx, |tx| {
        let query = sqlx::query(statement).bind(next_at).bind(receiver).bind(now);
        for row in query.bind(ALERTS_PER_REQUEST_MAX).fetch_all(&mut **tx).await? {
            alerts.extend(read(&row.try_get::<String, _>(0)?));
        }
    });
    tx.commit().await?;
    Ok(alerts)
}

/// Records that the alerts claimed until `next_at` were sent. A resolved alert that was sent often enough is
/// deleted.
///
/// # Errors
/// The store refuses or does not answer.
pub(super) async fn record_sent(db: &Db, receiver: &str, next_at: i64) -> Result<(), sqlx::Error> {
    let mut tx = db.begin().await?;
    on_either!(&mut tx, Tx, |tx| {
        for statement in [
            "UPDATE active_alerts SET sends_left = sends_left - 1
                WHERE receiver_id = $1 AND next_at = $2 AND sends_left IS NOT NULL",
            "DELETE FROM active_alerts WHERE receiver_id = $1 AND next_at = $2 AND sends_left <= 0",
        ] {
            let query = sqlx::query(statement).bind(receiver).bind(next_at);
            query.execute(&mut **tx).await?;
        }
    });
    tx.commit().await
}

/// Records a failed resend, which is repeated sooner than usual.
///
/// # Errors
/// The store refuses or does not answer.
pub(super) async fn record_failure(
    db: &Db,
    receiver: &str,
    next_at: i64,
    sooner: i64,
) -> Result<(), sqlx::Error> {
    let statement = "UPDATE active_alerts SET next_at = $1 WHERE receiver_id = $2 AND next_at = $3";
    let mut tx = db.begin().await?;
    on_either!(&mut tx, Tx, |tx| {
        let query = sqlx::query(statement).bind(sooner).bind(receiver).bind(next_at);
        query.execute(&mut **tx).await?;
    });
    tx.commit().await
}
