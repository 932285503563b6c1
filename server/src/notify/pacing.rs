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
        let due = waiting.as_ref().map(|(_, due)| *due);
        let due = due.unwrap_or_else(|| now.max(last.at + self.group_interval_ms));
        let waiting = waiting.and_then(|(waiting, _)| waiting);
        let Some((seq, sent)) = last_sent(tx, receiver_group).await? else {
            return Ok(Scheduled::AsIs(now));
        };
        let is_grown = self.is_grown(notice, last);
        let at = if is_grown { now } else { due };
        let mut unsent = waiting.map(|waiting| waiting.alerts).unwrap_or_default();
        unsent.extend(alerts_of_dead_letters(tx, receiver_group, seq).await?);
        let changes = changes_since(&sent, &unsent, notice, now);
        // A group that has grown is sent even if the listed alerts are the same.
        let (scheduled, at) = match changes.or_else(|| is_grown.then(|| notice.clone())) {
            Some(changes) => (Scheduled::Merged(Box::new(changes), at), at),
            None => (Scheduled::Nothing, due - self.group_interval_ms),
        };
        let statement = "UPDATE notification_groups SET at = $1 WHERE receiver_id = $2 AND group_key = $3";
        on_either!(tx, Tx, |tx| {
            let query = sqlx::query(statement)
                .bind(at)
                .bind(receiver_group.0)
                .bind(receiver_group.1);
            query.execute(&mut **tx).await?;
        });
        Ok(scheduled)
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

/// The newest message of this group that the receiver got or is about to get, with the number of its delivery.
async fn last_sent(
    tx: &mut Tx,
    receiver_group: ReceiverGroup<'_>,
) -> Result<Option<(i64, Notice)>, sqlx::Error> {
    let select = "SELECT d.seq, n.body FROM deliveries d JOIN notifications n ON n.id = d.notification_id
        WHERE d.receiver_id = $1 AND d.group_key = $2 AND d.state <> 'dead' ORDER BY d.seq DESC LIMIT 1";
    let message: Option<(i64, String)> = on_either!(tx, Tx, |tx| {
        let query = sqlx::query_as(select)
            .bind(receiver_group.0)
            .bind(receiver_group.1);
        query.fetch_optional(&mut **tx).await?
    });
    Ok(message.and_then(|(seq, body)| Some((seq, serde_json::from_str(&body).ok()?))))
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

/// Firing alerts, and resolved ones that were sent as firing; `None` if the receiver has all of them already. `unsent`
/// are those of messages that waited or failed.
///
/// An alert that was sent as firing and is neither listed nor resolved still fires: it is silenced since, or beyond the
/// length of the list. It stays in the list, so that its end is sent.
fn changes_since(sent: &Notice, unsent: &[NoticeAlert], notice: &Notice, now: i64) -> Option<Notice> {
    let firing = |notice: &Notice| {
        let alerts = notice.alerts.iter();
        let firing = alerts.filter(|alert| alert.status == NoticeStatus::Firing);
        firing.cloned().collect::<Vec<NoticeAlert>>()
    };
    let (known, fires) = (firing(sent), firing(notice));
    let has = |alerts: &[NoticeAlert], candidate: &NoticeAlert| {
        alerts
            .iter()
            .any(|alert| alert.fingerprint == candidate.fingerprint)
    };
    // With its newest texts.
    let end_of = |candidate: &NoticeAlert| {
        let all = notice.alerts.iter().chain(unsent);
        let mut ends = all.filter(|alert| alert.status == NoticeStatus::Resolved);
        ends.find(|alert| alert.fingerprint == candidate.fingerprint)
            .cloned()
    };
    // A list full of resolved alerts leaves out further ones.
    let has_more_ends = fires.is_empty() && notice.truncated > 0;
    let (mut alerts, mut unlisted) = (Vec::new(), Vec::new());
    for candidate in known.iter().filter(|candidate| !has(&fires, candidate)) {
        match end_of(candidate) {
            Some(end) => alerts.push(end),
            None if has_more_ends => alerts.push(NoticeAlert {
                status: NoticeStatus::Resolved,
                ends_at: Some(now),
                ..candidate.clone()
            }),
            None => unlisted.push(candidate.clone()),
        }
    }
    let (repeated, new): (Vec<NoticeAlert>, Vec<NoticeAlert>) =
        fires.into_iter().partition(|candidate| has(&known, candidate));
    if alerts.is_empty() && new.is_empty() {
        return None;
    }
    // Unlisted ones beyond the length of the list were counted as such.
    let counted = notice.truncated.saturating_sub(unlisted.len() as u64);
    // Resolved alerts first: they are sent only once. New ones last: the others have been sent.
    alerts.extend(unlisted.into_iter().chain(repeated).chain(new));
    let cut = alerts.len().saturating_sub(ALERTS_PER_NOTICE_MAX);
    alerts.truncate(ALERTS_PER_NOTICE_MAX);
    Some(Notice {
        alerts,
        truncated: counted.saturating_add(cut as u64),
        ..notice.clone()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn alert(fingerprint: &str, starts_at: i64, ends_at: Option<i64>) -> NoticeAlert {
        NoticeAlert {
            status: ends_at.map_or(NoticeStatus::Firing, |_| NoticeStatus::Resolved),
            labels: BTreeMap::new(),
            annotations: BTreeMap::new(),
            starts_at,
            ends_at,
            path: String::new(),
            fingerprint: fingerprint.to_owned(),
        }
    }

    fn notice(alerts: Vec<NoticeAlert>) -> Notice {
        Notice {
            group: "near_expiry/1".to_owned(),
            receivers: Vec::new(),
            group_labels: BTreeMap::new(),
            alerts,
            truncated: 0,
        }
    }

    fn changes(
        sent: Vec<NoticeAlert>,
        waiting: Vec<NoticeAlert>,
        now: Vec<NoticeAlert>,
    ) -> Option<Vec<(String, NoticeStatus)>> {
        let changes = changes_since(&notice(sent), &waiting, &notice(now), 200)?;
        let entry = |alert: NoticeAlert| (alert.fingerprint, alert.status);
        Some(changes.alerts.into_iter().map(entry).collect())
    }

    #[test]
    fn a_resolved_alert_of_the_waiting_message_is_kept() {
        // One resolved while another fired, then the second resolved and a third fired.
        let sent = vec![alert("a", 50, None)];
        let waiting = vec![alert("a", 50, Some(110)), alert("b", 110, None)];
        let now = vec![alert("b", 110, Some(120)), alert("c", 120, None)];
        let expected = [
            ("a".to_owned(), NoticeStatus::Resolved),
            ("c".to_owned(), NoticeStatus::Firing),
        ];
        assert_eq!(changes(sent, waiting, now).unwrap(), expected);
    }

    #[test]
    fn an_alert_that_is_not_listed_is_not_resolved() {
        // One silenced since; another fires. Then the silenced one resolves. Then more fire than a message lists.
        let sent = vec![alert("silenced", 50, None)];
        let now = vec![alert("other", 110, None)];
        let firing = |fingerprint: &str| (fingerprint.to_owned(), NoticeStatus::Firing);
        let both = [firing("silenced"), firing("other")];
        assert_eq!(changes(sent, Vec::new(), now).unwrap(), both);
        let sent = vec![alert("silenced", 50, None), alert("other", 110, None)];
        let now = vec![alert("silenced", 50, Some(120)), alert("other", 110, None)];
        let resolved = ("silenced".to_owned(), NoticeStatus::Resolved);
        assert_eq!(
            changes(sent, Vec::new(), now).unwrap(),
            [resolved, firing("other")]
        );
        let numbered =
            |numbers: std::ops::Range<usize>| numbers.map(|number| alert(&number.to_string(), 50, None));
        let known: Vec<NoticeAlert> = numbered(0..ALERTS_PER_NOTICE_MAX).collect();
        let now = numbered(50..ALERTS_PER_NOTICE_MAX + 50).collect();
        let listed = changes(known, Vec::new(), now).unwrap();
        let names: Vec<(String, NoticeStatus)> = (0..ALERTS_PER_NOTICE_MAX)
            .map(|number| firing(&number.to_string()))
            .collect();
        assert_eq!(listed, names);
    }

    #[test]
    fn changes_that_cancel_each_other_are_not_sent() {
        // An alert fired and resolved while the message waited; one that was sent resolved and fired again.
        let sent = vec![alert("a", 50, None), alert("c", 50, None)];
        let waiting = vec![
            alert("c", 50, Some(115)),
            alert("a", 50, None),
            alert("b", 110, None),
        ];
        let now = vec![
            alert("b", 110, Some(120)),
            alert("a", 50, None),
            alert("c", 120, None),
        ];
        assert_eq!(changes(sent, waiting, now), None);
    }

    #[test]
    fn only_a_group_that_grows_large_does_not_wait() {
        let pacing = Pacing {
            growth_factor: 2,
            group_interval_ms: 1_000,
        };
        let of = |count| notice((0..count).map(|_| alert("a", 0, None)).collect());
        let grown = |count, size| pacing.is_grown(&of(count), LastMessage { at: 0, size });
        assert!(grown(20, 10) && grown(10, 1));
        assert!(!grown(2, 1) && !grown(19, 10));
    }
}
