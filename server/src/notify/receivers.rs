//! Stored receivers and their changes, each with its audit entry.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::Ordering;

use domain::audit::Action;
use domain::escape::visible;
use secrecy::SecretString;
use serde_json::{Value, json};
use sqlx::Row as _;

use super::limits::RECEIVERS_MAX;
use super::outbox::{self, Delivery, DeliveryFilter};
use super::receiver::{
    Address, NewReceiver, Receiver, ReceiverKind, ReceiverView, check_name, check_secret, check_urls,
};
use super::sealed_columns::{decrypt, encrypt};
use super::secret_box::SecretBox;
use super::{Notifier, NotifyError, enqueue};
use crate::audit::{Appended, Entry};
use crate::identity::{AccessChange, Principal};
use runtime::db::{Db, Tx, on_either};
use runtime::random::prefixed_id;

/// # Errors
/// The store does not answer.
pub(super) async fn find(
    db: &Db,
    vault: &SecretBox,
    condition: &'static str,
    value: &str,
) -> Result<Option<Receiver>, sqlx::Error> {
    on_either!(db, Db, |pool| {
        let mut query = sqlx::QueryBuilder::new("SELECT id, name, kind, urls, secret FROM receivers WHERE ");
        query.push(condition);
        let row = query.build().bind(value).fetch_optional(pool).await?;
        row.map(|row| {
            let (id, kind, urls): (String, String, String) =
                (row.try_get(0)?, row.try_get(2)?, row.try_get(3)?);
            let secret: Option<String> = row.try_get(4)?;
            let had_secret = secret.is_some();
            let decrypted = decrypt(vault, &id, &urls, secret);
            let locked = decrypted.as_ref().err().map(ToString::to_string);
            let (urls, secret) = decrypted.unwrap_or_default();
            Ok(Receiver {
                id,
                name: row.try_get(1)?,
                // A database constraint allows no other value.
                kind: ReceiverKind::parse(&kind).unwrap_or(ReceiverKind::Webhook),
                urls,
                secret,
                had_secret,
                locked,
            })
        })
        .transpose()
    })
}

/// # Errors
/// No receiver has this name, or the store does not answer.
pub(super) async fn find_by_name(notifier: &Notifier, name: &str) -> Result<Receiver, NotifyError> {
    // Postgres rejects text with NUL.
    let found = match name.contains('\0') {
        true => None,
        false => find(notifier.db(), &notifier.vault, "name = $1", name).await?,
    };
    found.ok_or_else(|| NotifyError::NotFound {
        what: "receiver",
        name: visible(name).into_owned(),
    })
}

/// Records the result of the last message.
///
/// # Errors
/// The store refuses or does not answer.
pub(super) async fn record_result(
    db: &Db,
    id: &str,
    fault: Option<&str>,
    now: i64,
) -> Result<(), sqlx::Error> {
    let mut tx = db.begin().await?;
    record_fault(&mut tx, id, fault, now).await?;
    tx.commit().await
}

/// As [`record_result`], in the caller's transaction.
///
/// # Errors
/// The store refuses or does not answer.
pub(super) async fn record_fault(
    tx: &mut Tx,
    id: &str,
    fault: Option<&str>,
    now: i64,
) -> Result<(), sqlx::Error> {
    on_either!(tx, Tx, |tx| {
        let query = match fault {
            None => sqlx::query("UPDATE receivers SET last_ok_at = $1 WHERE id = $2")
                .bind(now)
                .bind(id),
            Some(fault) => {
                sqlx::query("UPDATE receivers SET last_fault_at = $1, last_fault = $3 WHERE id = $2")
                    .bind(now)
                    .bind(id)
                    .bind(fault)
            }
        };
        query.execute(&mut **tx).await?;
    });
    Ok(())
}

impl Notifier {
    /// All receivers, by name.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn receivers(&self) -> Result<Vec<ReceiverView>, NotifyError> {
        let select = "SELECT id, name, kind, urls, secret IS NOT NULL, created_at, created_by, last_ok_at, last_fault_at,
            last_fault FROM receivers ORDER BY name";
        let open = self.open().await?;
        let count = |id: &str, state: &str| {
            let found = open.get(&(id.to_owned(), state.to_owned()));
            found.copied().unwrap_or_default()
        };
        let mut views = Vec::new();
        on_either!(self.db(), Db, |pool| {
            for row in sqlx::query(select).fetch_all(pool).await? {
                let (id, kind, urls): (String, String, String) =
                    (row.try_get(0)?, row.try_get(2)?, row.try_get(3)?);
                let kind = ReceiverKind::parse(&kind).unwrap_or(ReceiverKind::Webhook);
                let decrypted = decrypt(&self.vault, &id, &urls, None);
                let locked = decrypted.as_ref().err().map(ToString::to_string);
                let (urls, _) = decrypted.unwrap_or_default();
                views.push(ReceiverView {
                    name: row.try_get(1)?,
                    kind,
                    urls: urls.iter().map(|address| address.display_address(kind)).collect(),
                    locked,
                    has_secret: row.try_get(4)?,
                    created_at: row.try_get(5)?,
                    created_by: row.try_get(6)?,
                    last_ok_at: row.try_get(7)?,
                    last_fault_at: row.try_get(8)?,
                    last_fault: row.try_get(9)?,
                    waiting: count(&id, "pending"),
                    dead: count(&id, "dead"),
                });
            }
        });
        Ok(views)
    }

    /// Pending and dead messages per receiver.
    async fn open(&self) -> Result<HashMap<(String, String), u64>, sqlx::Error> {
        let select = "SELECT receiver_id, state, count(*) FROM deliveries WHERE state <> 'delivered'
            GROUP BY receiver_id, state";
        let mut counts = HashMap::new();
        on_either!(self.db(), Db, |pool| {
            for row in sqlx::query(select).fetch_all(pool).await? {
                let count: i64 = row.try_get(2)?;
                let key = (row.try_get(0)?, row.try_get(1)?);
                counts.insert(key, u64::try_from(count).unwrap_or_default());
            }
        });
        Ok(counts)
    }

    /// Number of receivers.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn count(&self) -> Result<u64, sqlx::Error> {
        let count: i64 = on_either!(self.db(), Db, |pool| {
            sqlx::query_scalar("SELECT count(*) FROM receivers")
                .fetch_one(pool)
                .await?
        });
        Ok(u64::try_from(count).unwrap_or_default())
    }

    /// The next evaluation sends it the alerts that fire.
    ///
    /// # Errors
    /// A field is invalid, or the name is taken.
    pub async fn add(&self, who: &Principal, new: NewReceiver) -> Result<(), NotifyError> {
        check_name(&new.name)?;
        check_secret(new.kind, new.secret.as_ref())?;
        if new.urls.is_empty() {
            return Err(NotifyError::invalid("urls", "is needed", "Write where to send."));
        }
        let urls = check_urls(new.kind, &new.urls, &self.guard).await?;
        if self.count().await? >= RECEIVERS_MAX as u64 {
            return Err(NotifyError::TooMany { max: RECEIVERS_MAX });
        }
        let id = prefixed_id("a_");
        let after = to_json(&new.name, new.kind, &urls, new.secret.is_some());
        let (sealed_urls, sealed_secret) = encrypt(&self.vault, &id, &urls, new.secret.as_ref())?;
        let entry = entry(who, Action::ReceiverCreate, (None, Some(after)));
        let (mut tx, appended) = self.begin_recorded(entry).await?;
        count_added(&mut tx).await?;
        let insert = "INSERT INTO receivers (id, name, kind, urls, secret, created_at, created_by)
            VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (name) DO NOTHING";
        let inserted = on_either!(&mut tx, Tx, |tx| {
            let query = sqlx::query(insert)
                .bind(&id)
                .bind(&new.name)
                .bind(new.kind.as_str());
            let query = query.bind(sealed_urls).bind(sealed_secret);
            let query = query.bind(self.now_ms()).bind(who.name());
            query.execute(&mut **tx).await?.rows_affected()
        });
        if inserted == 0 {
            return Err(NotifyError::Exists { name: new.name });
        }
        tx.commit().await?;
        self.receivers_added.fetch_add(1, Ordering::Relaxed);
        self.audit.export(&appended).await;
        Ok(())
    }

    /// Replaces addresses, secret, or both; an omitted one stays. For a new origin the secret must be entered again: otherwise
    /// the stored one would be sent to that origin. Every receiver is notified, this one with its new address and secret.
    ///
    /// # Errors
    /// A field is invalid, or there is no such receiver.
    pub async fn change(
        &self,
        who: &Principal,
        name: &str,
        urls: &[SecretString],
        secret: Option<SecretString>,
    ) -> Result<(), NotifyError> {
        let receiver = find_by_name(self, name).await?;
        let has_new_secret = secret.is_some();
        receiver.check_decryptable(!urls.is_empty(), has_new_secret)?;
        let secret = secret.or_else(|| receiver.secret.clone());
        check_secret(receiver.kind, secret.as_ref())?;
        let addresses = match urls.is_empty() {
            true => receiver.urls.clone(),
            false => check_urls(receiver.kind, urls, &self.guard).await?,
        };
        if !has_new_secret {
            receiver.check_kept_secret(&addresses)?;
        }
        let (sealed_urls, sealed_secret) = encrypt(&self.vault, &receiver.id, &addresses, secret.as_ref())?;
        let before = to_json(name, receiver.kind, &receiver.urls, receiver.had_secret);
        let mut after = to_json(name, receiver.kind, &addresses, secret.is_some());
        let has_new_urls = addresses != receiver.urls;
        after["newSecret"] = json!(has_new_secret);
        after["newUrls"] = json!(has_new_urls);
        let entry = entry(who, Action::ReceiverChange, (Some(before), Some(after)));
        let (mut tx, appended) = self.begin_recorded(entry).await?;
        let update = "UPDATE receivers SET urls = $1, secret = $2 WHERE id = $3";
        on_either!(&mut tx, Tx, |tx| {
            let query = sqlx::query(update).bind(sealed_urls).bind(sealed_secret);
            query.bind(&receiver.id).execute(&mut **tx).await?;
        });
        if has_new_secret || has_new_urls {
            self.notify_all(&mut tx, &access_change(who, "receiver_changed", "changed", name))
                .await?;
        }
        self.commit_and_export(tx, appended).await?;
        self.wake();
        Ok(())
    }

    /// Removes a receiver and its pending messages, whose number is in the audit entry. The others are notified.
    ///
    /// # Errors
    /// There is no such receiver.
    pub async fn remove(&self, who: &Principal, name: &str) -> Result<(), NotifyError> {
        let receiver = find_by_name(self, name).await?;
        let pending = self
            .open()
            .await?
            .remove(&(receiver.id.clone(), "pending".to_owned()));
        let pending = pending.unwrap_or_default();
        let mut before = to_json(name, receiver.kind, &receiver.urls, receiver.had_secret);
        before["pendingMessages"] = json!(pending);
        let entry = entry(who, Action::ReceiverRemove, (Some(before), None));
        let (mut tx, appended) = self.begin_recorded(entry).await?;
        on_either!(&mut tx, Tx, |tx| {
            let query = sqlx::query("DELETE FROM receivers WHERE id = $1").bind(&receiver.id);
            query.execute(&mut **tx).await?;
        });
        self.notify_all(&mut tx, &access_change(who, "receiver_removed", "removed", name))
            .await?;
        self.commit_and_export(tx, appended).await?;
        self.wake();
        Ok(())
    }

    /// Notifies every receiver in the transaction of the change, which is rolled back without the message.
    async fn notify_all(&self, tx: &mut Tx, change: &AccessChange<'_>) -> Result<(), NotifyError> {
        let now = self.now_ms();
        let notice = change.notice(now).map_err(|_| NotifyError::NoChance)?;
        Box::pin(enqueue(tx, &notice, now)).await?;
        Ok(())
    }

    /// Messages of the outbox.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn deliveries(&self, filter: &DeliveryFilter) -> Result<Vec<Delivery>, NotifyError> {
        Ok(outbox::list(self.db(), filter).await?)
    }

    /// Retries a dead letter. `firing`: fingerprints of the alerts of rules that fire; others are sent as resolved.
    ///
    /// # Errors
    /// There is no such message, or it is not dead.
    pub async fn retry(
        &self,
        who: &Principal,
        id: i64,
        firing: &BTreeSet<String>,
    ) -> Result<(), NotifyError> {
        let after = json!({"notification": id.to_string()});
        let entry = entry(who, Action::ReceiverRetry, (None, Some(after)));
        let (mut tx, appended) = self.begin_recorded(entry).await?;
        Box::pin(outbox::revive(&mut tx, id, firing, self.now_ms())).await?;
        self.commit_and_export(tx, appended).await?;
        self.wake();
        Ok(())
    }

    /// A transaction that begins with its audit entry, so that it holds no other lock while it waits for the append
    /// lock.
    async fn begin_recorded(&self, entry: Entry) -> Result<(Tx, Appended), NotifyError> {
        let mut tx = self.db().begin().await?;
        let appended = self.audit.append_in(&mut tx, entry).await?;
        Ok((tx, appended))
    }

    async fn commit_and_export(&self, tx: Tx, appended: Appended) -> Result<(), NotifyError> {
        tx.commit().await?;
        self.audit.export(&appended).await;
        Ok(())
    }
}

/// Shows the evaluator that a receiver is added; its row orders the locks as in every change of rules and alerts.
async fn count_added(tx: &mut Tx) -> Result<(), sqlx::Error> {
    let count = "UPDATE alert_evaluator SET revision = revision + 1, receivers_added = receivers_added + 1";
    on_either!(tx, Tx, |tx| {
        sqlx::query(count).execute(&mut **tx).await?;
    });
    Ok(())
}

fn entry(who: &Principal, action: Action, (before, after): (Option<Value>, Option<Value>)) -> Entry {
    Entry {
        before,
        after,
        ..Entry::new(action, "ok", who.actor(None), who.origin.clone())
    }
}

/// The notification of a changed receiver: without it, a receiver could be redirected or removed to hide a later change.
fn access_change<'a>(
    who: &'a Principal,
    change: &'static str,
    done: &str,
    receiver: &'a str,
) -> AccessChange<'a> {
    AccessChange {
        change,
        subject: receiver,
        by: who.name(),
        summary: format!(
            "{} {done} the receiver {}",
            visible(who.name()),
            visible(receiver)
        ),
        path: "/alerts/receivers",
    }
}

/// For the audit log, without secrets.
fn to_json(name: &str, kind: ReceiverKind, urls: &[Address], has_secret: bool) -> Value {
    let urls: Vec<String> = urls.iter().map(|address| address.display_address(kind)).collect();
    json!({"name": name, "kind": kind.as_str(), "urls": urls, "hasSecret": has_secret})
}
