//! Into the outbox, in the caller's transaction: one row for the message, one for each receiver that has not just heard it.

use domain::hex;
use domain::notice::{Notice, NoticeStatus};
use sha2::{Digest as _, Sha256};
use sqlx::Row as _;

use super::limits::WINDOW;
use super::receiver::Kind;
use super::{ms, standing};
use crate::db::{Tx, on_either};

/// Where a group's name goes into an index.
const GROUP_BYTES_MAX: usize = 300;

/// Tells the receivers that it names, or every one; after the commit, [`wake`](super::Notifier::wake). The same of the
/// same group is not said again within [`WINDOW`]. Answers how many are told.
///
/// # Errors
/// The store refuses or does not answer: the transaction must be given up.
pub async fn enqueue(tx: &mut Tx, notice: &Notice, now: i64) -> Result<u64, sqlx::Error> {
    let all = receivers(tx).await?;
    let group = key(&notice.group);
    let digest = digest(notice);
    let mut id = None;
    let mut told = 0;
    for receiver in meant(&all, &notice.receivers) {
        if receiver.kind == Kind::Alertmanager.wire() {
            standing::set(tx, &receiver.id, &notice.alerts, now).await?;
        }
        if !is_news(tx, &receiver.id, (&group, &digest), now).await? {
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

async fn is_news(
    tx: &mut Tx,
    receiver: &str,
    (group, digest): (&str, &str),
    now: i64,
) -> Result<bool, sqlx::Error> {
    let statement = "INSERT INTO notice_groups (receiver_id, grp, digest, at) VALUES ($1, $2, $3, $4)
        ON CONFLICT (receiver_id, grp) DO UPDATE SET digest = excluded.digest, at = excluded.at
        WHERE notice_groups.digest <> excluded.digest OR notice_groups.at <= $5";
    let changed = on_either!(tx, Tx, |tx| {
        let query = sqlx::query(statement).bind(receiver).bind(group).bind(digest);
        let query = query.bind(now).bind(now - ms(WINDOW));
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
