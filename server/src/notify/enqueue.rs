//! Into the outbox, in the caller's transaction: one row for the message, one for each receiver that has not just heard it.

use domain::hex;
use domain::notice::{Notice, NoticeStatus};
use sha2::{Digest as _, Sha256};
use sqlx::Row as _;

use super::limits::WINDOW;
use super::receiver::Kind;
use super::{ms, standing};
use crate::config::notify::GROWTH_FACTOR_DEFAULT;
use crate::db::{Tx, on_either};

/// Where a group's name goes into an index.
const GROUP_BYTES_MAX: usize = 300;

/// Why a group is to be notified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Occasion {
    /// An alert fires or has resolved.
    Change,
    /// Nothing but its size may have changed: sent only if it has grown by the factor.
    Growth,
}

/// Notifies the receivers that it names, or every one; after the commit, [`wake`](super::Notifier::wake). The same of the
/// same group is not sent again within [`WINDOW`]. Answers the number of receivers.
///
/// # Errors
/// The store refuses or does not answer: the transaction must be given up.
pub async fn enqueue(tx: &mut Tx, notice: &Notice, now: i64) -> Result<u64, sqlx::Error> {
    enqueue_at(tx, notice, Occasion::Change, GROWTH_FACTOR_DEFAULT, now).await
}

/// The same; a group with `growth_factor` times the alerts of its last message is always news.
///
/// # Errors
/// The store refuses or does not answer: the transaction must be given up.
pub async fn enqueue_at(
    tx: &mut Tx,
    notice: &Notice,
    occasion: Occasion,
    growth_factor: u32,
    now: i64,
) -> Result<u64, sqlx::Error> {
    let all = receivers(tx).await?;
    let group = key(&notice.group);
    let said = Said {
        group: &group,
        digest: &digest(notice),
        size: i64::try_from(notice.size()).unwrap_or(i64::MAX),
        growth_factor: i64::from(growth_factor),
        occasion,
    };
    let mut id = None;
    let mut told = 0;
    for receiver in meant(&all, &notice.receivers) {
        if receiver.kind == Kind::Alertmanager.wire() && occasion == Occasion::Change {
            standing::set(tx, &receiver.id, &notice.alerts, now).await?;
        }
        if !is_news(tx, &receiver.id, &said, now).await? {
            continue;
        }
        let notice_id = match &id {
            Some(id) => id,
            None => id.insert(insert(tx, notice, &group, now).await?),
        };
        let statement = "INSERT INTO deliveries (notice_id, receiver_id, grp, state, since, next_at)
            VALUES ($1, $2, $3, 'pending', $4, $4)";
        on_either!(&mut *tx, Tx, |tx| {
            let query = sqlx::query(statement).bind(notice_id).bind(&receiver.id);
            query.bind(&group).bind(now).execute(&mut **tx).await?;
        });
        told += 1;
    }
    Ok(told)
}

struct Known {
    id: String,
    name: String,
    kind: String,
}

async fn receivers(tx: &mut Tx) -> Result<Vec<Known>, sqlx::Error> {
    let select = "SELECT id, name, kind FROM receivers ORDER BY name";
    let mut known = Vec::new();
    on_either!(tx, Tx, |tx| {
        for row in sqlx::query(select).fetch_all(&mut **tx).await? {
            known.push(Known {
                id: row.try_get(0)?,
                name: row.try_get(1)?,
                kind: row.try_get(2)?,
            });
        }
    });
    Ok(known)
}

/// Those that are named. A name that nobody has any more must not make an alert vanish: then everybody is told.
fn meant<'k>(all: &'k [Known], named: &[String]) -> Vec<&'k Known> {
    let found: Vec<&Known> = all
        .iter()
        .filter(|receiver| named.contains(&receiver.name))
        .collect();
    if !found.is_empty() {
        return found;
    }
    if !named.is_empty() && !all.is_empty() {
        tracing::warn!(
            "an alert names receivers that are not there, so every receiver is told: {}",
            domain::escape::visible(&named.join(", "))
        );
    }
    all.iter().collect()
}

/// What decides whether a receiver was sent the same before.
struct Said<'a> {
    group: &'a str,
    digest: &'a str,
    /// Alerts of the group, those that are not listed among them.
    size: i64,
    growth_factor: i64,
    occasion: Occasion,
}

async fn is_news(tx: &mut Tx, receiver: &str, said: &Said<'_>, now: i64) -> Result<bool, sqlx::Error> {
    let statement =
        "INSERT INTO notice_groups (receiver_id, grp, digest, at, size) VALUES ($1, $2, $3, $4, $5)
        ON CONFLICT (receiver_id, grp) DO UPDATE
        SET digest = excluded.digest, at = excluded.at, size = excluded.size
        WHERE ($6 = 0 AND (notice_groups.digest <> excluded.digest OR notice_groups.at <= $7))
            OR (notice_groups.size > 0 AND excluded.size >= notice_groups.size * $8)";
    let changed = on_either!(tx, Tx, |tx| {
        let query = sqlx::query(statement).bind(receiver).bind(said.group);
        let query = query.bind(said.digest).bind(now).bind(said.size);
        let query = query.bind(i64::from(said.occasion == Occasion::Growth));
        let query = query.bind(now - ms(WINDOW)).bind(said.growth_factor);
        query.execute(&mut **tx).await?.rows_affected()
    });
    Ok(changed > 0)
}

async fn insert(tx: &mut Tx, notice: &Notice, group: &str, now: i64) -> Result<String, sqlx::Error> {
    let id = format!("n_{:032x}", rand::random::<u128>());
    let json = serde_json::to_string(notice).map_err(|error| sqlx::Error::Encode(Box::new(error)))?;
    let statement = "INSERT INTO notices (id, grp, notice, created_at) VALUES ($1, $2, $3, $4)";
    on_either!(tx, Tx, |tx| {
        let query = sqlx::query(statement).bind(&id).bind(group).bind(json).bind(now);
        query.execute(&mut **tx).await?;
    });
    Ok(id)
}

/// As it is, where an index takes it and Postgres keeps it.
fn key(group: &str) -> String {
    if group.len() <= GROUP_BYTES_MAX && !group.contains('\0') {
        return group.to_owned();
    }
    let start: String = group.chars().filter(|c| *c != '\0').take(40).collect();
    format!("{start}…{}", hex::text(&Sha256::digest(group.as_bytes())))
}

/// What is said of which alerts. Neither values nor times, which a restart may change.
fn digest(notice: &Notice) -> String {
    let mut said: Vec<(&str, bool)> = notice
        .alerts
        .iter()
        .map(|alert| (alert.fingerprint.as_str(), alert.status == NoticeStatus::Firing))
        .collect();
    said.sort_unstable();
    let mut hash = Sha256::new();
    for (fingerprint, is_firing) in said {
        hash.update(fingerprint.as_bytes());
        hash.update([0, u8::from(is_firing)]);
    }
    hex::text(&hash.finalize())
}
