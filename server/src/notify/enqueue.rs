//! Enqueues in the caller's transaction: one row for the message, one for each receiver that did not get the same
//! recently.

use std::borrow::Cow;
use std::collections::BTreeSet;

use domain::alerts::limits::ALERTS_PER_NOTICE_MAX;
use domain::duration::millis;
use domain::hex;
use domain::notification::{Notice, NoticeStatus};
use sha2::{Digest as _, Sha256};
use sqlx::Row as _;

use super::active_alerts;
use super::limits::WINDOW;
use super::pacing::{self, Pacing, Scheduled};
use super::receiver::ReceiverKind;
use runtime::db::{Tx, on_either};

/// Limit of an indexed group name.
const GROUP_BYTES_MAX: usize = 300;

/// Why a group is notified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Occasion {
    /// An alert fires or has resolved.
    Change,
    /// The receivers of the rule have changed, or a receiver was added: sent to those that lack a firing alert.
    Reroute,
    /// The group may only have grown: sent only if it has grown by the factor.
    Growth,
}

/// Enqueues a notice for the receivers that it names, or for all; call [`wake`](super::Notifier::wake) after the
/// commit. The same content for the same group is not sent again within [`WINDOW`]. Returns the number of receivers.
///
/// # Errors
/// The store refuses or does not answer: the transaction must be rolled back.
pub async fn enqueue(tx: &mut Tx, notice: &Notice, now: i64) -> Result<u64, sqlx::Error> {
    enqueue_at(tx, notice, Occasion::Change, Pacing::IMMEDIATE, now).await
}

/// As [`enqueue`], at the pace of a group of alerts. A change within its interval waits until the interval has passed;
/// later changes join the waiting message. A receiver that the notice does not name gets the ends of the alerts that it
/// was sent as firing.
///
/// # Errors
/// The store refuses or does not answer: the transaction must be rolled back.
pub async fn enqueue_at(
    tx: &mut Tx,
    notice: &Notice,
    occasion: Occasion,
    pacing: Pacing,
    now: i64,
) -> Result<u64, sqlx::Error> {
    let all = receivers(tx).await?;
    let group = key(&notice.group);
    let named = select_receivers(&all, &notice.receivers);
    let mut id: Option<String> = None;
    let mut count = 0;
    for receiver in &all {
        let is_named = named.iter().any(|named| named.id == receiver.id);
        let own = receiver.select_alerts(tx, (&group, notice), occasion, is_named);
        let Some(own) = Box::pin(own).await? else {
            continue;
        };
        let own: &Notice = &own;
        if receiver.is_alertmanager() && occasion != Occasion::Growth {
            active_alerts::set(tx, &receiver.id, &own.alerts, now).await?;
        }
        let receiver_group = (receiver.id.as_str(), group.as_str());
        let last = pacing::last_message(tx, receiver_group).await?;
        let key = NotificationKey {
            group: &group,
            digest: &digest(own),
            size: i64::try_from(own.size()).unwrap_or(i64::MAX),
            growth_factor: i64::from(pacing.growth_factor),
            occasion,
        };
        if !record_if_new(tx, &receiver.id, &key, now).await? {
            continue;
        }
        // An Alertmanager has a pace of its own.
        let pace = if receiver.is_alertmanager() {
            Pacing::IMMEDIATE
        } else {
            pacing
        };
        let scheduled = Box::pin(pace.schedule(tx, receiver_group, (own, last), now)).await?;
        let (notification_id, at) = match scheduled {
            Scheduled::Nothing => continue,
            Scheduled::Merged(merged, at) => (insert(tx, &merged, &group, now).await?, at),
            Scheduled::AsIs(at) => {
                let stored = match id.clone().filter(|_| is_named) {
                    Some(id) => id,
                    None => insert(tx, own, &group, now).await?,
                };
                if is_named {
                    id = Some(stored.clone());
                }
                (stored, at)
            }
        };
        insert_delivery(tx, receiver_group, &notification_id, at).await?;
        count += 1;
    }
    Ok(count)
}

async fn insert_delivery(
    tx: &mut Tx,
    (receiver, group): (&str, &str),
    notification_id: &str,
    at: i64,
) -> Result<(), sqlx::Error> {
    let statement =
        "INSERT INTO deliveries (notification_id, receiver_id, group_key, state, attempts_since, next_at)
        VALUES ($1, $2, $3, 'pending', $4, $4)";
    on_either!(tx, Tx, |tx| {
        let query = sqlx::query(statement).bind(notification_id).bind(receiver);
        query.bind(group).bind(at).execute(&mut **tx).await?;
    });
    Ok(())
}

struct StoredReceiver {
    id: String,
    name: String,
    kind: String,
}

impl StoredReceiver {
    fn is_alertmanager(&self) -> bool {
        self.kind == ReceiverKind::Alertmanager.as_str()
    }

    /// The part of a notice for this receiver; `None`: nothing.
    async fn select_alerts<'n>(
        &self,
        tx: &mut Tx,
        (group, notice): (&str, &'n Notice),
        occasion: Occasion,
        is_named: bool,
    ) -> Result<Option<Cow<'n, Notice>>, sqlx::Error> {
        match (occasion, is_named) {
            (Occasion::Change | Occasion::Growth, true) => Ok(Some(Cow::Borrowed(notice))),
            (Occasion::Reroute, true) => {
                let sent = self.sent_as_firing(tx, (group, notice)).await?;
                let mut listed = notice.alerts.iter().take(ALERTS_PER_NOTICE_MAX);
                let has_all = listed.all(|alert| sent.contains(&alert.fingerprint));
                Ok((!has_all).then_some(Cow::Borrowed(notice)))
            }
            (Occasion::Change, false) if notice.has_end() => {
                let sent = self.sent_as_firing(tx, (group, notice)).await?;
                let mut own = notice.clone();
                own.alerts.retain(|alert| sent.contains(&alert.fingerprint));
                own.truncated = 0;
                Ok(own.has_end().then_some(Cow::Owned(own)))
            }
            (_, false) => Ok(None),
        }
    }

    /// Fingerprints of the alerts of this notice, and perhaps of others, that this receiver was sent as firing or is about
    /// to be.
    async fn sent_as_firing(
        &self,
        tx: &mut Tx,
        (group, notice): (&str, &Notice),
    ) -> Result<BTreeSet<String>, sqlx::Error> {
        if self.is_alertmanager() {
            return active_alerts::firing(tx, &self.id, &notice.alerts).await;
        }
        let last = pacing::last_sent(tx, (&self.id, group)).await?;
        let notice = last.and_then(|(_, notice)| notice);
        let alerts = notice.map(|notice| notice.alerts).unwrap_or_default();
        let firing = alerts
            .into_iter()
            .filter(|alert| alert.status == NoticeStatus::Firing);
        Ok(firing.map(|alert| alert.fingerprint).collect())
    }
}

async fn receivers(tx: &mut Tx) -> Result<Vec<StoredReceiver>, sqlx::Error> {
    let select = "SELECT id, name, kind FROM receivers ORDER BY name";
    let mut stored = Vec::new();
    on_either!(tx, Tx, |tx| {
        for row in sqlx::query(select).fetch_all(&mut **tx).await? {
            stored.push(StoredReceiver {
                id: row.try_get(0)?,
                name: row.try_get(1)?,
                kind: row.try_get(2)?,
            });
        }
    });
    Ok(stored)
}

/// The named receivers. If no name exists any more, all receivers: an alert must not be lost.
fn select_receivers<'k>(all: &'k [StoredReceiver], names: &[String]) -> Vec<&'k StoredReceiver> {
    let found: Vec<&StoredReceiver> = all
        .iter()
        .filter(|receiver| names.contains(&receiver.name))
        .collect();
    if !found.is_empty() {
        return found;
    }
    if !names.is_empty() && !all.is_empty() {
        tracing::warn!(
            "an alert names receivers that do not exist, so it is sent to every receiver: {}",
            domain::escape::visible(&names.join(", "))
        );
    }
    all.iter().collect()
}

/// Identity of a message for the comparison with the last one.
struct NotificationKey<'a> {
    group: &'a str,
    digest: &'a str,
    /// Number of alerts in the group, including those not listed.
    size: i64,
    growth_factor: i64,
    occasion: Occasion,
}

async fn record_if_new(
    tx: &mut Tx,
    receiver: &str,
    key: &NotificationKey<'_>,
    now: i64,
) -> Result<bool, sqlx::Error> {
    let statement =
        "INSERT INTO notification_groups (receiver_id, group_key, digest, at, size) VALUES ($1, $2, $3, $4, $5)
        ON CONFLICT (receiver_id, group_key) DO UPDATE
        SET digest = excluded.digest, at = excluded.at, size = excluded.size
        WHERE ($6 = 0 AND (notification_groups.digest <> excluded.digest OR notification_groups.at <= $7))
            OR (notification_groups.size > 0 AND excluded.size >= notification_groups.size * $8)";
    let changed = on_either!(tx, Tx, |tx| {
        let query = sqlx::query(statement).bind(receiver).bind(key.group);
        let query = query.bind(key.digest).bind(now).bind(key.size);
        let query = query.bind(i64::from(key.occasion == Occasion::Growth));
        let query = query.bind(now - millis(WINDOW)).bind(key.growth_factor);
        query.execute(&mut **tx).await?.rows_affected()
    });
    Ok(changed > 0)
}

/// Stores a message; returns its id.
pub(super) async fn insert(
    tx: &mut Tx,
    notice: &Notice,
    group: &str,
    now: i64,
) -> Result<String, sqlx::Error> {
    let mut listed = notice.clone();
    listed.truncate(ALERTS_PER_NOTICE_MAX);
    let id = runtime::random::prefixed_id("n_");
    let json = serde_json::to_string(&listed).map_err(|error| sqlx::Error::Encode(Box::new(error)))?;
    let statement = "INSERT INTO notifications (id, group_key, body, created_at) VALUES ($1, $2, $3, $4)";
    on_either!(tx, Tx, |tx| {
        let query = sqlx::query(statement).bind(&id).bind(group).bind(json).bind(now);
        query.execute(&mut **tx).await?;
    });
    Ok(id)
}

/// The group name within the limits of the index and of Postgres text.
fn key(group: &str) -> String {
    if group.len() <= GROUP_BYTES_MAX && !group.contains('\0') {
        return group.to_owned();
    }
    let start: String = group.chars().filter(|c| *c != '\0').take(40).collect();
    format!("{start}…{}", hex::text(&Sha256::digest(group.as_bytes())))
}

/// Hash of status and labels of the listed alerts, without values and times, which a restart may change.
fn digest(notice: &Notice) -> String {
    let mut statuses: Vec<(&str, bool)> = notice
        .alerts
        .iter()
        .take(ALERTS_PER_NOTICE_MAX)
        .map(|alert| (alert.fingerprint.as_str(), alert.status == NoticeStatus::Firing))
        .collect();
    statuses.sort_unstable();
    let mut hash = Sha256::new();
    for (fingerprint, is_firing) in statuses {
        hash.update(fingerprint.as_bytes());
        hash.update([0, u8::from(is_firing)]);
    }
    hex::text(&hash.finalize())
}
