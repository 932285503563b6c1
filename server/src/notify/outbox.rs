//! The outbox: due messages, claims, results, and the list for users.

use std::collections::BTreeSet;

use domain::duration::millis;
use domain::notification::{Notice, NoticeStatus};
use sqlx::Row as _;

use super::enqueue::insert;
use super::error::NotifyError;
use super::limits::{CLAIM_FOR, LISTED_MAX};
use super::receivers;
use runtime::db::{Db, Tx, on_either};

/// A message claimed by this process.
#[derive(Debug)]
pub(super) struct Claimed {
    pub(super) seq: i64,
    pub(super) notification_id: String,
    /// Including this one.
    pub(super) attempts: i64,
    /// Time of the first attempt.
    pub(super) since: i64,
    /// `None` if a newer version wrote an unknown format.
    pub(super) notice: Option<Notice>,
}

/// Receivers with a due message. Per receiver and group only the oldest message is due.
///
/// # Errors
/// The store does not answer.
pub(super) async fn due(db: &Db, now: i64) -> Result<Vec<String>, sqlx::Error> {
    let select = "SELECT DISTINCT receiver_id FROM deliveries d WHERE state = 'pending' AND next_at <= $1 AND NOT EXISTS (
            SELECT 1 FROM deliveries e WHERE e.receiver_id = d.receiver_id AND e.group_key = d.group_key
            AND e.state = 'pending' AND e.seq < d.seq)
        UNION SELECT DISTINCT receiver_id FROM active_alerts WHERE next_at <= $1";
    let mut ids = Vec::new();
    on_either!(db, Db, |pool| {
        for row in sqlx::query(select).bind(now).fetch_all(pool).await? {
            ids.push(row.try_get(0)?);
        }
    });
    Ok(ids)
}

/// When the next message or resend becomes due; `i64::MAX` if none waits.
///
/// # Errors
/// The store does not answer.
pub(super) async fn next_due(db: &Db) -> Result<i64, sqlx::Error> {
    let select = "SELECT min(at) FROM (SELECT min(next_at) AS at FROM deliveries WHERE state = 'pending'
        UNION ALL SELECT min(next_at) FROM active_alerts) AS waiting";
    let next: Option<i64> = on_either!(db, Db, |pool| sqlx::query_scalar(select).fetch_one(pool).await?);
    Ok(next.unwrap_or(i64::MAX))
}

/// Claims due messages of a receiver. If this process dies, another one can claim them when the claim has expired.
///
/// # Errors
/// The store refuses or does not answer.
pub(super) async fn claim(db: &Db, receiver: &str, now: i64, most: i64) -> Result<Vec<Claimed>, sqlx::Error> {
    const SQLITE: &str = "UPDATE deliveries SET attempts = attempts + 1, next_at = $1 WHERE seq IN (
        SELECT seq FROM deliveries d WHERE receiver_id = $2 AND state = 'pending' AND next_at <= $3 AND NOT EXISTS (
            SELECT 1 FROM deliveries e WHERE e.receiver_id = d.receiver_id AND e.group_key = d.group_key
            AND e.state = 'pending' AND e.seq < d.seq)
        ORDER BY seq LIMIT $4) RETURNING seq, notification_id, attempts, attempts_since";
    const POSTGRES: &str = "UPDATE deliveries SET attempts = attempts + 1, next_at = $1 WHERE seq IN (
        SELECT seq FROM deliveries d WHERE receiver_id = $2 AND state = 'pending' AND next_at <= $3 AND NOT EXISTS (
            SELECT 1 FROM deliveries e WHERE e.receiver_id = d.receiver_id AND e.group_key = d.group_key
            AND e.state = 'pending' AND e.seq < d.seq)
        ORDER BY seq LIMIT $4 FOR UPDATE SKIP LOCKED) RETURNING seq, notification_id, attempts, attempts_since";
    let mut tx = db.begin().await?;
    let statement = match &tx {
        Tx::Sqlite(_) => SQLITE,
        Tx::Postgres(_) => POSTGRES,
    };
    let mut claimed = Vec::new();
    on_either!(&mut tx, Tx, |tx| {
        let query = sqlx::query(statement)
            .bind(now + millis(CLAIM_FOR))
            .bind(receiver);
        for row in query.bind(now).bind(most).fetch_all(&mut **tx).await? {
            claimed.push(Claimed {
                seq: row.try_get(0)?,
                notification_id: row.try_get(1)?,
                attempts: row.try_get(2)?,
                since: row.try_get(3)?,
                notice: None,
            });
        }
        for message in &mut claimed {
            let query =
                sqlx::query("SELECT body FROM notifications WHERE id = $1").bind(&message.notification_id);
            let json: String = query.fetch_one(&mut **tx).await?.try_get(0)?;
            message.notice = serde_json::from_str(&json).ok();
        }
    });
    tx.commit().await?;
    claimed.sort_by_key(|message| message.seq);
    Ok(claimed)
}

/// Result of an attempt.
#[derive(Debug)]
pub(super) enum End {
    Delivered,
    Dead,
    /// Retry at this time.
    Again(i64),
}

/// Stores the result of an attempt, unless the claim expired and another process has the message; and the receiver's
/// last result if it was contacted.
///
/// # Errors
/// The store refuses or does not answer: the message is sent again.
pub(super) async fn finish(
    db: &Db,
    claimed: &Claimed,
    end: &End,
    answer: &str,
    now: i64,
    receiver_fault: Option<(&str, Option<&str>)>,
) -> Result<(), sqlx::Error> {
    let statement = "UPDATE deliveries SET state = $1, ended_at = $2, next_at = $3, answer = $4
        WHERE seq = $5 AND attempts = $6 AND state = 'pending'";
    let (state, ended_at, next_at) = match end {
        End::Delivered => (DeliveryState::Delivered, Some(now), now),
        End::Dead => (DeliveryState::Dead, Some(now), now),
        End::Again(at) => (DeliveryState::Pending, None, *at),
    };
    let mut tx = db.begin().await?;
    if let Some((receiver, fault)) = receiver_fault {
        receivers::record_fault(&mut tx, receiver, fault, now).await?;
    }
    on_either!(&mut tx, Tx, |tx| {
        let query = sqlx::query(statement)
            .bind(state.as_str())
            .bind(ended_at)
            .bind(next_at);
        let query = query.bind(answer).bind(claimed.seq).bind(claimed.attempts);
        query.execute(&mut **tx).await?;
    });
    tx.commit().await
}

domain::wire_enum! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum DeliveryState {
        Pending = "pending",
        Delivered = "delivered",
        /// Given up; users may retry it.
        Dead = "dead",
    }
}

/// A message to one receiver, as listed.
#[derive(Debug, Clone)]
pub struct Delivery {
    pub id: i64,
    pub receiver: String,
    pub state: DeliveryState,
    pub notice: Option<Notice>,
    pub notification_id: String,
    pub attempts: i64,
    pub created_at: i64,
    /// Only for a pending one.
    pub next_at: i64,
    pub ended_at: Option<i64>,
    /// Result of the last attempt.
    pub answer: Option<String>,
}

impl Delivery {
    pub fn status(&self) -> Option<NoticeStatus> {
        self.notice.as_ref().map(Notice::status)
    }
}

/// Filter of the list; newest first, below `before`.
#[derive(Debug, Clone, Default)]
pub struct DeliveryFilter {
    pub state: Option<DeliveryState>,
    pub receiver: Option<String>,
    pub before: Option<i64>,
    pub limit: Option<i64>,
}

/// # Errors
/// The store does not answer.
pub(super) async fn list(db: &Db, wanted: &DeliveryFilter) -> Result<Vec<Delivery>, sqlx::Error> {
    let select = "SELECT d.seq, r.name, d.state, n.body, d.notification_id, d.attempts, n.created_at, d.next_at, d.ended_at,
            d.answer
        FROM deliveries d JOIN receivers r ON r.id = d.receiver_id JOIN notifications n ON n.id = d.notification_id
        WHERE ($1 = '' OR d.state = $1) AND ($2 = '' OR r.name = $2) AND d.seq < $3 ORDER BY d.seq DESC LIMIT $4";
    let state = wanted.state.map_or("", DeliveryState::as_str);
    let limit = wanted.limit.unwrap_or(LISTED_MAX).clamp(1, LISTED_MAX);
    let mut found = Vec::new();
    on_either!(db, Db, |pool| {
        let query = sqlx::query(select).bind(state);
        let query = query.bind(wanted.receiver.as_deref().unwrap_or_default());
        let query = query.bind(wanted.before.unwrap_or(i64::MAX)).bind(limit);
        for row in query.fetch_all(pool).await? {
            let state: String = row.try_get(2)?;
            let notice: String = row.try_get(3)?;
            found.push(Delivery {
                id: row.try_get(0)?,
                receiver: row.try_get(1)?,
                state: DeliveryState::parse(&state).unwrap_or(DeliveryState::Dead),
                notice: serde_json::from_str(&notice).ok(),
                notification_id: row.try_get(4)?,
                attempts: row.try_get(5)?,
                created_at: row.try_get(6)?,
                next_at: row.try_get(7)?,
                ended_at: row.try_get(8)?,
                answer: row.try_get(9)?,
            });
        }
    });
    Ok(found)
}

/// Resets a dead letter to a new message. Alerts of rules that are not among those that fire are sent as resolved: no
/// later message would end them.
///
/// # Errors
/// There is no such message, or it is not dead.
pub(super) async fn revive(
    tx: &mut Tx,
    id: i64,
    firing: &BTreeSet<String>,
    now: i64,
) -> Result<(), NotifyError> {
    let select = "SELECT d.state, d.group_key, d.notification_id, n.body
        FROM deliveries d JOIN notifications n ON n.id = d.notification_id WHERE d.seq = $1";
    let stored: Option<(String, String, String, String)> = on_either!(&mut *tx, Tx, |tx| {
        let query = sqlx::query_as(select).bind(id);
        query.fetch_optional(&mut **tx).await?
    });
    let missing = || NotifyError::NotFound {
        what: "message",
        name: id.to_string(),
    };
    let (state, group, notification_id, body) = stored.ok_or_else(missing)?;
    let state = DeliveryState::parse(&state).unwrap_or(DeliveryState::Dead);
    if state != DeliveryState::Dead {
        return Err(NotifyError::NotDead {
            state: state.as_str(),
        });
    }
    let notice: Option<Notice> = serde_json::from_str(&body).ok();
    let notification_id = match notice.and_then(|notice| resolve_ended(notice, firing, now)) {
        Some(current) => insert(tx, &current, &group, now).await?,
        None => notification_id,
    };
    let statement =
        "UPDATE deliveries SET state = 'pending', ended_at = NULL, attempts = 0, attempts_since = $1,
        next_at = $1, notification_id = $2 WHERE seq = $3";
    on_either!(tx, Tx, |tx| {
        let query = sqlx::query(statement).bind(now).bind(notification_id).bind(id);
        query.execute(&mut **tx).await?;
    });
    Ok(())
}

/// The notice with the ends of alerts of rules that fire no longer; `None` if all of them do. Other notices, such as
/// that of a break-glass unlock, have no rule.
fn resolve_ended(mut notice: Notice, firing: &BTreeSet<String>, now: i64) -> Option<Notice> {
    let mut has_changed = false;
    for alert in &mut notice.alerts {
        let is_open = alert.status == NoticeStatus::Firing && alert.labels.contains_key("rule");
        if is_open && !firing.contains(&alert.fingerprint) {
            (alert.status, alert.ends_at) = (NoticeStatus::Resolved, Some(now));
            has_changed = true;
        }
    }
    has_changed.then_some(notice)
}
