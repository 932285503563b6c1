//! The pace of a group of alerts: after a message, changes of the group wait for its interval and are sent as one.
//!
//! **Invariant:** an alert that a receiver got as firing is sent as resolved; one that fired and resolved while its
//! message waited is not sent.

use config::notify::GROWTH_FACTOR_DEFAULT;
use domain::alerts::limits::ALERTS_PER_NOTICE_MAX;
use domain::notification::{Notice, NoticeAlert, NoticeStatus};

use super::limits::GROWN_SIZE_MIN;
use runtime::db::{Tx, on_either};

/// Dead letters read for one message; ends in earlier ones stay unknown.
const DEAD_LETTERS_MAX: i64 = 20;

/// How often a group is notified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pacing {
    /// A group with this many times the alerts of its last message does not wait.
    pub growth_factor: u32,
    /// Time between two messages about a group, in milliseconds; 0: none.
    pub group_interval_ms: i64,
}

/// The last message of a group to one receiver, sent or waiting.
#[derive(Debug, Clone, Copy)]
pub(super) struct LastMessage {
    at: i64,
    size: i64,
}

/// When a message is sent, in milliseconds since 1970.
#[derive(Debug)]
pub(super) enum Scheduled {
    AsIs(i64),
    /// With the changes of the message that waited.
    Merged(Box<Notice>, i64),
    /// The waiting changes have cancelled each other.
    Nothing,
}

/// Receiver and group.
type ReceiverGroup<'a> = (&'a str, &'a str);

impl Pacing {
    pub const IMMEDIATE: Self = Self {
        growth_factor: GROWTH_FACTOR_DEFAULT,
        group_interval_ms: 0,
    };

    /// Decides when a change is sent, and takes the message that waits for it.
    pub(super) async fn schedule(
        self,
        tx: &mut Tx,
        receiver_group: ReceiverGroup<'_>,
        (notice, last): (&Notice, Option<LastMessage>),
        now: i64,
    ) -> Result<Scheduled, sqlx::Error> {
        let Some(last) = last.filter(|_| self.group_interval_ms > 0) else {
            return Ok(Scheduled::AsIs(now));
        };
        let waiting = take_waiting(tx, receiver_group, now).await?;
        let due = self.due(last, waiting.as_ref().map(|(_, due)| *due), now);
        let waiting = waiting.and_then(|(waiting, _)| waiting);
        let sent = last_sent(tx, receiver_group).await?;
        let is_grown = self.is_grown(notice, last);
        let is_sent = sent.is_some();
        // After dead letters alone the receiver does not wait.
        let at = if is_grown || !is_sent { now } else { due };
        let (seq, sent) = sent.unwrap_or_default();
        let waiting = waiting.map(|waiting| waiting.alerts).unwrap_or_default();
        let dead = alerts_of_dead_letters(tx, receiver_group, seq).await?;
        // If a newer version wrote the last message, every end is sent.
        let mut known = sent.map_or_else(|| ended(notice), |sent| sent.alerts);
        if !is_sent {
            // It may have got a dead letter without an answer.
            known.retain(|alert| has(&firing(&dead), alert));
        }
        let (merged, has_changes) = merge_changes(&known, &waiting, &dead, notice);
        // A group that has grown is sent even if the listed alerts are the same.
        let (scheduled, at) = if has_changes || is_grown {
            (Scheduled::Merged(Box::new(merged), at), at)
        } else {
            (Scheduled::Nothing, due - self.group_interval_ms)
        };
        let statement = "UPDATE notification_groups SET at = $1 WHERE receiver_id = $2 AND group_key = $3";
        on_either!(&mut *tx, Tx, |tx| {
            let query = sqlx::query(statement)
                .bind(at)
                .bind(receiver_group.0)
                .bind(receiver_group.1);
            query.execute(&mut **tx).await?;
        });
        Ok(scheduled)
    }

    /// When the next message is due: as the waiting one, or an interval after the last one. At most an interval from
    /// now: the server that wrote them may have a clock that is ahead.
    fn due(self, last: LastMessage, waiting: Option<i64>, now: i64) -> i64 {
        let due = waiting.unwrap_or_else(|| now.max(last.at + self.group_interval_ms));
        due.min(now + self.group_interval_ms)
    }

    fn is_grown(self, notice: &Notice, last: LastMessage) -> bool {
        let size = i64::try_from(notice.size()).unwrap_or(i64::MAX);
        size >= GROWN_SIZE_MIN && size >= last.size.saturating_mul(i64::from(self.growth_factor))
    }
}

pub(super) async fn last_message(
    tx: &mut Tx,
    receiver_group: ReceiverGroup<'_>,
) -> Result<Option<LastMessage>, sqlx::Error> {
    let select = "SELECT at, size FROM notification_groups WHERE receiver_id = $1 AND group_key = $2";
    let last: Option<(i64, i64)> = on_either!(tx, Tx, |tx| {
        let query = sqlx::query_as(select)
            .bind(receiver_group.0)
            .bind(receiver_group.1);
        query.fetch_optional(&mut **tx).await?
    });
    Ok(last.map(|(at, size)| LastMessage { at, size }))
}

/// Removes the message of this group that no attempt was made to send, and returns it with the time at which it was due;
/// `None` for the message if a newer version wrote another format.
async fn take_waiting(
    tx: &mut Tx,
    receiver_group: ReceiverGroup<'_>,
    now: i64,
) -> Result<Option<(Option<Notice>, i64)>, sqlx::Error> {
    let delete = "DELETE FROM deliveries WHERE receiver_id = $1 AND group_key = $2 AND state = 'pending'
        AND attempts = 0 AND next_at > $3 RETURNING notification_id, next_at";
    let select = "SELECT body FROM notifications WHERE id = $1";
    let unused = "DELETE FROM notifications WHERE id = $1
        AND NOT EXISTS (SELECT 1 FROM deliveries WHERE notification_id = $1)";
    let message: Option<(String, i64)> = on_either!(&mut *tx, Tx, |tx| {
        let query = sqlx::query_as(delete)
            .bind(receiver_group.0)
            .bind(receiver_group.1)
            .bind(now);
        let message: Option<(String, i64)> = query.fetch_optional(&mut **tx).await?;
        match message {
            None => None,
            Some((id, due)) => {
                let body: String = sqlx::query_scalar(select).bind(&id).fetch_one(&mut **tx).await?;
                sqlx::query(unused).bind(&id).execute(&mut **tx).await?;
                Some((body, due))
            }
        }
    });
    Ok(message.map(|(body, due)| (serde_json::from_str(&body).ok(), due)))
}

/// The newest message of this group that the receiver got or is about to get, with the number of its delivery; `None` for
/// the message if a newer version wrote another format.
pub(super) async fn last_sent(
    tx: &mut Tx,
    receiver_group: ReceiverGroup<'_>,
) -> Result<Option<(i64, Option<Notice>)>, sqlx::Error> {
    let select = "SELECT d.seq, n.body FROM deliveries d JOIN notifications n ON n.id = d.notification_id
        WHERE d.receiver_id = $1 AND d.group_key = $2 AND d.state <> 'dead' ORDER BY d.seq DESC LIMIT 1";
    let message: Option<(i64, String)> = on_either!(tx, Tx, |tx| {
        let query = sqlx::query_as(select)
            .bind(receiver_group.0)
            .bind(receiver_group.1);
        query.fetch_optional(&mut **tx).await?
    });
    Ok(message.map(|(seq, body)| (seq, serde_json::from_str(&body).ok())))
}

/// Alerts of dead letters after [`last_sent`], newest first. One that resolved in them is in no later notice.
async fn alerts_of_dead_letters(
    tx: &mut Tx,
    receiver_group: ReceiverGroup<'_>,
    sent_seq: i64,
) -> Result<Vec<NoticeAlert>, sqlx::Error> {
    let select = "SELECT n.body FROM deliveries d JOIN notifications n ON n.id = d.notification_id
        WHERE d.receiver_id = $1 AND d.group_key = $2 AND d.state = 'dead' AND d.seq > $3
        ORDER BY d.seq DESC LIMIT $4";
    let bodies: Vec<String> = on_either!(tx, Tx, |tx| {
        let query = sqlx::query_scalar(select)
            .bind(receiver_group.0)
            .bind(receiver_group.1)
            .bind(sent_seq)
            .bind(DEAD_LETTERS_MAX);
        query.fetch_all(&mut **tx).await?
    });
    let notices = bodies
        .iter()
        .filter_map(|body| serde_json::from_str::<Notice>(body).ok());
    Ok(notices.flat_map(|notice| notice.alerts).collect())
}

/// The ends of alerts that were sent as firing, the alerts that fire, and whether any of them is new to the receiver. `waiting`
/// are alerts of a message that waited, `dead` those of dead letters.
///
/// An alert that was sent as firing, or waited to be, and is neither firing nor resolved in the notice has been silenced since.
/// It stays in the list, so that its end is sent.
fn merge_changes(
    sent: &[NoticeAlert],
    waiting: &[NoticeAlert],
    dead: &[NoticeAlert],
    notice: &Notice,
) -> (Notice, bool) {
    let (known, fires) = (firing(sent), firing(&notice.alerts));
    let unsent = firing(waiting).into_iter().filter(|alert| !has(&known, alert));
    // With its newest texts.
    let end_of = |candidate: &NoticeAlert| {
        let all = notice.alerts.iter().chain(waiting).chain(dead);
        let mut ends = all.filter(|alert| alert.status == NoticeStatus::Resolved);
        ends.find(|alert| alert.fingerprint == candidate.fingerprint)
    };
    let is_silenced = |candidate: &&NoticeAlert| !has(&fires, candidate) && end_of(candidate).is_none();
    let ended = known.iter().copied().filter(|candidate| !has(&fires, candidate));
    let ends: Vec<&NoticeAlert> = ended.filter_map(end_of).collect();
    let (repeated, new): (Vec<&NoticeAlert>, Vec<&NoticeAlert>) = fires
        .iter()
        .copied()
        .partition(|candidate| has(&known, candidate));
    let silenced_known = known.iter().copied().filter(is_silenced);
    // New ones last: the others have been sent.
    let old: Vec<&NoticeAlert> = ends
        .iter()
        .copied()
        .chain(silenced_known)
        .chain(repeated)
        .collect();
    let new: Vec<&NoticeAlert> = unsent.filter(is_silenced).chain(new).collect();
    let is_new_listed = !new.is_empty() && old.len() < ALERTS_PER_NOTICE_MAX;
    let has_changes = !ends.is_empty() || is_new_listed;
    let mut merged = Notice {
        alerts: old.into_iter().chain(new).cloned().collect(),
        ..notice.clone()
    };
    merged.truncate(ALERTS_PER_NOTICE_MAX);
    (merged, has_changes)
}

/// The alerts that only end in a notice, as they were before.
fn ended(notice: &Notice) -> Vec<NoticeAlert> {
    let fires = firing(&notice.alerts);
    let ended = notice.alerts.iter().filter(|alert| !has(&fires, alert));
    let ended = ended.map(|alert| NoticeAlert {
        status: NoticeStatus::Firing,
        ends_at: None,
        ..alert.clone()
    });
    ended.collect()
}

fn firing(alerts: &[NoticeAlert]) -> Vec<&NoticeAlert> {
    let firing = alerts.iter();
    let firing = firing.filter(|alert| alert.status == NoticeStatus::Firing);
    firing.collect()
}

fn has(alerts: &[&NoticeAlert], candidate: &NoticeAlert) -> bool {
    alerts
        .iter()
        .any(|alert| alert.fingerprint == candidate.fingerprint)
}

#[cfg(test)]
mod tests;
