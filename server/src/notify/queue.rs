//! The outbox: what is due, who sends it, how it ended, and what people see of it.

use domain::notice::{Notice, NoticeStatus};
use sqlx::Row as _;

use super::error::NotifyError;
use super::limits::{CLAIM_FOR, LISTED_MAX};
use super::{ms, receivers};
use crate::db::{Db, Tx, on_either};

/// A message that is ours to send for as long as the claim holds.
#[derive(Debug)]
pub(super) struct Claimed {
    pub(super) seq: i64,
    pub(super) notice_id: String,
    /// With this one.
    pub(super) attempts: i64,
    /// Since when it is tried.
    pub(super) since: i64,
    /// None when another version wrote what this one does not understand.
    pub(super) notice: Option<Notice>,
}

/// Receivers for whom there is something to send now. Of one receiver and group, only the oldest message is.
///
/// # Errors
/// The store does not answer.
pub(super) async fn due(db: &Db, now: i64) -> Result<Vec<String>, sqlx::Error> {
    let select = "SELECT DISTINCT receiver_id FROM deliveries d WHERE state = 'pending' AND next_at <= $1 AND NOT EXISTS (
            SELECT 1 FROM deliveries e WHERE e.receiver_id = d.receiver_id AND e.grp = d.grp AND e.state = 'pending'
            AND e.seq < d.seq)
        UNION SELECT DISTINCT receiver_id FROM standing_alerts WHERE next_at <= $1";
    let mut ids = Vec::new();
    on_either!(db, Db, |pool| {
        for row in sqlx::query(select).bind(now).fetch_all(pool).await? {
            ids.push(row.try_get(0)?);
        }
    });
    Ok(ids)
}

/// When the next message or the next saying again falls due; the end of time where nothing waits.
///
/// # Errors
/// The store does not answer.
pub(super) async fn next_due(db: &Db) -> Result<i64, sqlx::Error> {
    let select = "SELECT min(at) FROM (SELECT min(next_at) AS at FROM deliveries WHERE state = 'pending'
        UNION ALL SELECT min(next_at) FROM standing_alerts) AS waiting";
    let next: Option<i64> = on_either!(db, Db, |pool| sqlx::query_scalar(select).fetch_one(pool).await?);
    Ok(next.unwrap_or(i64::MAX))
}

/// Takes some of what is due for a receiver. Should we go away, another takes them once the claim is over.
///
/// # Errors
/// The store refuses or does not answer.
pub(super) async fn claim(db: &Db, receiver: &str, now: i64, most: i64) -> Result<Vec<Claimed>, sqlx::Error> {
    const SQLITE: &str = "UPDATE deliveries SET attempts = attempts + 1, next_at = $1 WHERE seq IN (
        SELECT seq FROM deliveries d WHERE receiver_id = $2 AND state = 'pending' AND next_at <= $3 AND NOT EXISTS (
            SELECT 1 FROM deliveries e WHERE e.receiver_id = d.receiver_id AND e.grp = d.grp AND e.state = 'pending'
            AND e.seq < d.seq)
        ORDER BY seq LIMIT $4) RETURNING seq, notice_id, attempts, since";
    const POSTGRES: &str = "UPDATE deliveries SET attempts = attempts + 1, next_at = $1 WHERE seq IN (
        SELECT seq FROM deliveries d WHERE receiver_id = $2 AND state = 'pending' AND next_at <= $3 AND NOT EXISTS (
            SELECT 1 FROM deliveries e WHERE e.receiver_id = d.receiver_id AND e.grp = d.grp AND e.state = 'pending'
            AND e.seq < d.seq)
        ORDER BY seq LIMIT $4 FOR UPDATE SKIP LOCKED) RETURNING seq, notice_id, attempts, since";
    let mut tx = db.begin().await?;
    let statement = match &tx {
        Tx::Sqlite(_) => SQLITE,
        Tx::Postgres(_) => POSTGRES,
    };
    let mut claimed = Vec::new();
    on_either!(&mut tx, Tx, |tx| {
        let query = sqlx::query(statement).bind(now + ms(CLAIM_FOR)).bind(receiver);
        for row in query.bind(now).bind(most).fetch_all(&mut **tx).await? {
            claimed.push(Claimed {
                seq: row.try_get(0)?,
                notice_id: row.try_get(1)?,
                attempts: row.try_get(2)?,
                since: row.try_get(3)?,
                notice: None,
            });
        }
        for one in &mut claimed {
            let query = sqlx::query("SELECT notice FROM notices WHERE id = $1").bind(&one.notice_id);
            let json: String = query.fetch_one(&mut **tx).await?.try_get(0)?;
            one.notice = serde_json::from_str(&json).ok();
        }
    });
    tx.commit().await?;
    claimed.sort_by_key(|one| one.seq);
    Ok(claimed)
}

/// How an attempt ended.
#[derive(Debug)]
pub(super) enum End {
    Delivered,
    Dead,
    /// Tried again at this moment.
    Again(i64),
}

/// Writes down how an attempt ended, unless the claim was over and somebody else has it; and what its receiver is known by,
/// when it was asked.
///
/// # Errors
/// The store refuses or does not answer: it is sent again.
pub(super) async fn finish(
    db: &Db,
    claimed: &Claimed,
    end: &End,
    answer: &str,
    now: i64,
    asked: Option<(&str, Option<&str>)>,
) -> Result<(), sqlx::Error> {
    let statement = "UPDATE deliveries SET state = $1, ended_at = $2, next_at = $3, answer = $4
        WHERE seq = $5 AND attempts = $6 AND state = 'pending'";
    let (state, ended_at, next_at) = match end {
        End::Delivered => (DeliveryState::Delivered, Some(now), now),
        End::Dead => (DeliveryState::Dead, Some(now), now),
        End::Again(at) => (DeliveryState::Pending, None, *at),
    };
    let mut tx = db.begin().await?;
    if let Some((receiver, fault)) = asked {
        receivers::note_in(&mut tx, receiver, fault, now).await?;
    }
    on_either!(&mut tx, Tx, |tx| {
        let query = sqlx::query(statement)
            .bind(state.wire())
            .bind(ended_at)
            .bind(next_at);
        let query = query.bind(answer).bind(claimed.seq).bind(claimed.attempts);
        query.execute(&mut **tx).await?;
    });
    tx.commit().await
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryState {
    Pending,
    Delivered,
    /// Given up; people may start it again.
    Dead,
}

impl DeliveryState {
    pub const ALL: [Self; 3] = [Self::Pending, Self::Delivered, Self::Dead];

    pub const fn wire(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Delivered => "delivered",
            Self::Dead => "dead",
        }
    }

    pub fn parse(wire: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.wire() == wire)
    }
}

/// One message to one receiver, as it is listed.
#[derive(Debug, Clone)]
pub struct Delivery {
    pub id: i64,
    pub receiver: String,
    pub state: DeliveryState,
    pub notice: Option<Notice>,
    pub notice_id: String,
    pub attempts: i64,
    pub created_at: i64,
    /// Of one that is on its way.
    pub next_at: i64,
    pub ended_at: Option<i64>,
    /// What came of the last attempt.
    pub answer: Option<String>,
}

impl Delivery {
    pub fn status(&self) -> Option<NoticeStatus> {
        self.notice.as_ref().map(Notice::status)
    }
}

/// Which messages are wanted; newest first, below `before`.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    pub state: Option<DeliveryState>,
    pub receiver: Option<String>,
    pub before: Option<i64>,
    pub limit: Option<i64>,
}

/// # Errors
/// The store does not answer.
pub(super) async fn list(db: &Db, wanted: &Wanted) -> Result<Vec<Delivery>, sqlx::Error> {
    let select = "SELECT d.seq, r.name, d.state, n.notice, d.notice_id, d.attempts, n.created_at, d.next_at, d.ended_at,
            d.answer
        FROM deliveries d JOIN receivers r ON r.id = d.receiver_id JOIN notices n ON n.id = d.notice_id
        WHERE ($1 = '' OR d.state = $1) AND ($2 = '' OR r.name = $2) AND d.seq < $3 ORDER BY d.seq DESC LIMIT $4";
    let state = wanted.state.map_or("", DeliveryState::wire);
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
                notice_id: row.try_get(4)?,
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

/// Starts a dead letter again, as if it were new.
///
/// # Errors
/// There is none of this number, or it is not dead.
pub(super) async fn revive(tx: &mut Tx, id: i64, now: i64) -> Result<(), NotifyError> {
    let state: Option<String> = on_either!(&mut *tx, Tx, |tx| {
        let query = sqlx::query_scalar("SELECT state FROM deliveries WHERE seq = $1").bind(id);
        query.fetch_optional(&mut **tx).await?
    });
    let missing = || NotifyError::NotFound {
        what: "message",
        name: id.to_string(),
    };
    let state = state.ok_or_else(missing)?;
    let state = DeliveryState::parse(&state).unwrap_or(DeliveryState::Dead);
    if state != DeliveryState::Dead {
        return Err(NotifyError::NotDead { state: state.wire() });
    }
    let statement =
        "UPDATE deliveries SET state = 'pending', ended_at = NULL, attempts = 0, since = $1, next_at = $1
        WHERE seq = $2";
    on_either!(tx, Tx, |tx| {
        sqlx::query(statement)
            .bind(now)
            .bind(id)
            .execute(&mut **tx)
            .await?;
    });
    Ok(())
}
