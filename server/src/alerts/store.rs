//! SQL statements for alerts: open alerts, ended alerts, the evaluation token.

use domain::alerts::{Active, AlertPhase, AlertSeverity, AlertTransition, Labels, NotifiedRoute, RuleId};
use domain::hex;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use sqlx::Row as _;

use super::unreadable_rows::UnreadableRows;
use crate::janitor::delete_batch;
use runtime::db::{Db, Tx, on_either};

/// Retention of ended alerts in milliseconds.
pub(super) const RETENTION_MS: i64 = 30 * 24 * 3_600_000;

/// Rows of one batch that is deleted.
const PRUNED_MAX: i64 = 500;

/// An open alert as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredAlert {
    pub alert: Active,
    /// Time, user and note.
    pub acked: Option<(i64, String, String)>,
}

/// An alert that fired and ended, without its holding and its message.
#[derive(Debug)]
pub(super) struct EndedAlert {
    pub alert: Active,
    pub ended_at: i64,
    /// Size of its texts in the store.
    pub bytes: usize,
}

#[derive(Serialize, Deserialize)]
struct Body {
    #[serde(default)]
    rule_prefix: String,
    owner: Option<String>,
    holding: String,
    phase: AlertPhase,
    measure: i64,
    why: String,
    /// Name of the severity.
    notified: Option<String>,
    #[serde(default)]
    notified_labels: Option<Labels>,
    #[serde(default)]
    notified_route: Option<NotifiedRoute>,
    silenced_by: Option<String>,
}

fn body(alert: &Active) -> String {
    let body = Body {
        rule_prefix: alert.rule_prefix.clone(),
        owner: alert.owner.clone(),
        holding: alert.holding.clone(),
        phase: alert.phase,
        measure: alert.measure,
        why: alert.why.clone(),
        notified: alert.notified.map(|severity| severity.as_str().to_owned()),
        notified_labels: alert.notified_labels.clone(),
        notified_route: alert.notified_route.clone(),
        silenced_by: alert.silenced_by.clone(),
    };
    serde_json::to_string(&body).unwrap_or_default()
}

const fn fired_at(alert: &Active) -> Option<i64> {
    match alert.phase {
        AlertPhase::Firing { fired_at, .. } => Some(fired_at),
        AlertPhase::Pending { .. } => None,
    }
}

/// `None`: written by a newer version.
fn read_alert(id: i64, rule: &str, subject: &str, body: &str) -> Option<Active> {
    let body: Body = serde_json::from_str(body).ok()?;
    Some(Active {
        id,
        rule: RuleId::parse(rule)?,
        subject: serde_json::from_str(subject).ok()?,
        rule_prefix: body.rule_prefix,
        owner: body.owner,
        holding: body.holding,
        phase: body.phase,
        measure: body.measure,
        why: body.why,
        notified: body.notified.as_deref().and_then(AlertSeverity::parse),
        notified_labels: body.notified_labels,
        notified_route: body.notified_route,
        has_new_receivers: false,
        silenced_by: body.silenced_by,
    })
}

/// `receivers_added`: the number of receivers added so far.
pub(super) async fn open(
    db: &Db,
    receivers_added: i64,
    unreadable: &UnreadableRows,
) -> Result<Vec<StoredAlert>, sqlx::Error> {
    let select = "SELECT id, rule_id, subject, body, acked_at, acked_by, ack_note FROM alerts WHERE is_open = 1 ORDER BY id";
    let mut alerts = Vec::new();
    on_either!(db, Db, |pool| {
        for row in sqlx::query(select).fetch_all(pool).await? {
            let (id, rule, subject, body): (i64, String, String, String) =
                (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?, row.try_get(3)?);
            let Some(mut alert) = read_alert(id, &rule, &subject, &body) else {
                unreadable.report("an open alert", &id.to_string());
                continue;
            };
            alert.compare_receivers(receivers_added);
            let acked: (Option<i64>, Option<String>, Option<String>) =
                (row.try_get(4)?, row.try_get(5)?, row.try_get(6)?);
            alerts.push(StoredAlert {
                alert,
                acked: acked
                    .0
                    .map(|at| (at, acked.1.unwrap_or_default(), acked.2.unwrap_or_default())),
            });
        }
    });
    Ok(alerts)
}

/// Position in the ended alerts, newest first: time of the end, and id.
pub(super) type EndedBefore = (i64, i64);

/// Alerts that fired and ended at `from` or later and before a position, newest first; and the next position if there
/// may be more.
pub(super) async fn ended(
    db: &Db,
    (from, before): (i64, EndedBefore),
    most: i64,
) -> Result<(Vec<EndedAlert>, Option<EndedBefore>), sqlx::Error> {
    let select = "SELECT id, rule_id, subject, body, fired_at, ended_at FROM alerts
        WHERE is_open = 0 AND fired_at IS NOT NULL AND ended_at >= $1 AND ended_at <= $2 AND (ended_at < $2 OR id < $3)
        ORDER BY ended_at DESC, id DESC LIMIT $4";
    let (mut all, mut last, mut count) = (Vec::new(), before, 0);
    on_either!(db, Db, |pool| {
        let query = sqlx::query(select)
            .bind(from)
            .bind(before.0)
            .bind(before.1)
            .bind(most);
        for row in query.fetch_all(pool).await? {
            let (id, fired_at, ended_at): (i64, i64, i64) =
                (row.try_get(0)?, row.try_get(4)?, row.try_get(5)?);
            last = (ended_at, id);
            count += 1;
            let (rule, subject, text): (String, String, String) =
                (row.try_get(1)?, row.try_get(2)?, row.try_get(3)?);
            let Some(alert) = read_alert(id, &rule, &subject, &text) else {
                continue;
            };
            all.push(EndedAlert {
                alert: Active {
                    phase: AlertPhase::Firing {
                        since: fired_at,
                        fired_at,
                        clear_since: None,
                        unknown_since: None,
                    },
                    holding: String::new(),
                    why: String::new(),
                    ..alert
                },
                ended_at,
                bytes: subject.len() + text.len(),
            });
        }
    });
    Ok((all, (count == most).then_some(last)))
}

/// Records the leader's fencing token. `None` if a newer leader exists; otherwise the time of the last evaluation.
pub(super) async fn claim(tx: &mut Tx, token: i64, now: i64) -> Result<Option<Option<i64>>, sqlx::Error> {
    let lock = "UPDATE alert_evaluator SET fencing_token = $1 WHERE fencing_token <= $1";
    let read = "SELECT evaluated_at FROM alert_evaluator";
    let write = "UPDATE alert_evaluator SET evaluated_at = $1";
    Ok(on_either!(tx, Tx, |tx| {
        let locked = sqlx::query(lock).bind(token).execute(&mut **tx).await?;
        match locked.rows_affected() {
            0 => None,
            _ => {
                let before: Option<i64> = sqlx::query_scalar(read).fetch_one(&mut **tx).await?;
                sqlx::query(write).bind(now).execute(&mut **tx).await?;
                Some(before)
            }
        }
    }))
}

pub(super) async fn revision(db: &Db) -> Result<i64, sqlx::Error> {
    let read = "SELECT revision FROM alert_evaluator";
    Ok(on_either!(db, Db, |pool| sqlx::query_scalar(read)
        .fetch_one(pool)
        .await?))
}

/// Number of receivers added so far, removed ones included.
pub(super) async fn receivers_added(db: &Db) -> Result<i64, sqlx::Error> {
    let read = "SELECT receivers_added FROM alert_evaluator";
    Ok(on_either!(db, Db, |pool| sqlx::query_scalar(read)
        .fetch_one(pool)
        .await?))
}

pub(super) async fn last_evaluated(db: &Db) -> Result<Option<i64>, sqlx::Error> {
    let read = "SELECT evaluated_at FROM alert_evaluator";
    Ok(on_either!(db, Db, |pool| sqlx::query_scalar(read)
        .fetch_one(pool)
        .await?))
}

/// Ends an alert: it moves to the history if it fired, and is deleted otherwise.
pub(super) async fn end(
    tx: &mut Tx,
    alert: &Active,
    change: AlertTransition,
    now: i64,
) -> Result<(), sqlx::Error> {
    let resolve = "UPDATE alerts SET is_open = 0, ended_at = $1, body = $2 WHERE id = $3";
    let forget = "DELETE FROM alerts WHERE id = $1";
    on_either!(tx, Tx, |tx| {
        let query = if change == AlertTransition::Resolved {
            sqlx::query(resolve).bind(now).bind(body(alert)).bind(alert.id)
        } else {
            sqlx::query(forget).bind(alert.id)
        };
        query.execute(&mut **tx).await?.rows_affected()
    });
    Ok(())
}

/// Writes a pending or firing alert. A new one replaces an open alert of the same subject that this version cannot read.
pub(super) async fn upsert(tx: &mut Tx, alert: &Active) -> Result<(), sqlx::Error> {
    let insert =
        "INSERT INTO alerts (rule_id, subject, subject_id, is_open, body, fired_at) VALUES ($1, $2, $3, 1, $4, $5)
        ON CONFLICT (rule_id, subject_id) WHERE is_open = 1 DO UPDATE SET subject = excluded.subject,
        body = excluded.body, fired_at = excluded.fired_at, acked_at = NULL, acked_by = NULL, ack_note = NULL";
    let update = "UPDATE alerts SET body = $1, fired_at = $2 WHERE id = $3";
    let subject = serde_json::to_string(&alert.subject).unwrap_or_default();
    on_either!(tx, Tx, |tx| {
        let query = if alert.id == 0 {
            sqlx::query(insert)
                .bind(alert.rule.as_str())
                .bind(&subject)
                .bind(short(&subject))
                .bind(body(alert))
                .bind(fired_at(alert))
        } else {
            sqlx::query(update)
                .bind(body(alert))
                .bind(fired_at(alert))
                .bind(alert.id)
        };
        query.execute(&mut **tx).await?.rows_affected()
    });
    Ok(())
}

fn short(subject: &str) -> String {
    hex::text(&Sha256::digest(subject.as_bytes()))
}

pub(super) async fn suppressed(tx: &mut Tx, silence: &str, count: i64) -> Result<(), sqlx::Error> {
    let update = "UPDATE silences SET suppressed = suppressed + $1 WHERE id = $2";
    on_either!(tx, Tx, |tx| {
        let query = sqlx::query(update).bind(count).bind(silence);
        query.execute(&mut **tx).await?.rows_affected()
    });
    Ok(())
}

/// Deletes a batch of alerts and silences that ended more than [`RETENTION_MS`] ago; returns whether there may be more.
pub(super) async fn prune(db: &Db, now: i64) -> Result<bool, sqlx::Error> {
    let mut more = false;
    for delete in [
        "DELETE FROM alerts WHERE id IN
            (SELECT id FROM alerts WHERE is_open = 0 AND ended_at < $1 ORDER BY ended_at LIMIT $2)",
        "DELETE FROM silences WHERE id IN (SELECT id FROM silences WHERE ends_at < $1 LIMIT $2)",
    ] {
        more |= delete_batch(db, delete, &[now - RETENTION_MS, PRUNED_MAX]).await?;
    }
    Ok(more)
}
