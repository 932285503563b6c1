//! Enqueues in the caller's transaction: one row for the message, one for each receiver that did not get the same
//! recently.

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
/// later changes join the waiting message.
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
    let key = NotificationKey {
        group: &group,
        digest: &digest(notice),
        size: i64::try_from(notice.size()).unwrap_or(i64::MAX),
        growth_factor: i64::from(pacing.growth_factor),
        occasion,
    };
    let mut id: Option<String> = None;
    let mut count = 0;
    for receiver in select_receivers(&all, &notice.receivers) {
        if receiver.kind == ReceiverKind::Alertmanager.as_str() && occasion == Occasion::Change {
            active_alerts::set(tx, &receiver.id, &notice.alerts, now).await?;
        }
        let receiver_group = (receiver.id.as_str(), group.as_str());
        let last = pacing::last_message(tx, receiver_group).await?;
        if !record_if_new(tx, &receiver.id, &key, now).await? {
            continue;
        }
        // An Alertmanager has a pace of its own.
        let is_paced = receiver.kind != ReceiverKind::Alertmanager.as_str();
        let pace = if is_paced { pacing } else { Pacing::IMMEDIATE };
        let (notification_id, at) = match pace.schedule(tx, receiver_group, (notice, last), now).await? {
            Scheduled::Nothing => continue,
            Scheduled::Merged(merged, at) => (insert(tx, &merged, &group, now).await?, at),
            Scheduled::AsIs(at) => match &id {
                Some(id) => (id.clone(), at),
                None => (id.insert(insert(tx, notice, &group, now).await?).clone(), at),
            },
        };
        let statement =
            "INSERT INTO deliveries (notification_id, receiver_id, group_key, state, attempts_since, next_at)
            VALUES ($1, $2, $3, 'pending', $4, $4)";
        on_either!(&mut *tx, Tx, |tx| {
            let query = sqlx::query(statement).bind(notification_id).bind(&receiver.id);
            query.bind(&group).bind(at).execute(&mut **tx).await?;
        });
        count += 1;
    }
    Ok(count)
}

struct StoredReceiver {
    id: String,
    name: String,
    kind: String,
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

async fn insert(tx: &mut Tx, notice: &Notice, group: &str, now: i64) -> Result<String, sqlx::Error> {
    let id = runtime::random::prefixed_id("n_");
    let json = serde_json::to_string(notice).map_err(|error| sqlx::Error::Encode(Box::new(error)))?;
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

/// Hash of status and labels, without values and times, which a restart may change.
fn digest(notice: &Notice) -> String {
    let mut statuses: Vec<(&str, bool)> = notice
        .alerts
        .iter()
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
