//! Appending: the next number, the hash of the last entry, one insert; serialized over all processes.

use std::sync::Arc;

use domain::lease::StoreTime;
use sqlx::Row as _;

use super::{Audit, Entry, chain};
use runtime::change_signal::ChangeSignal;
use runtime::db::{Tx, from_row, on_either};

/// Serializes appenders on Postgres within their transactions; SQLite has a single writer. A row lock, because any
/// role that may connect could hold an advisory lock.
const POSTGRES_TURN: &str = "SELECT id FROM audit_append_lock FOR UPDATE";

const LAST: &str = "SELECT seq, hash FROM audit_entries ORDER BY seq DESC LIMIT 1";

const INSERT: &str = "INSERT INTO audit_entries (seq, created_at, action, phase, outcome, actor_id, actor_name, role, backend,
    source, resource, unlock_id, reason, approver_id, before, after, ip, user_agent, request_id, trace_id, prev_hash, hash)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22)";

from_row! {
    /// A stored entry.
    #[derive(Debug, Clone, PartialEq, Eq, Default)]
    pub struct AuditRecord {
        pub seq: i64,
        pub created_at: i64,
        pub action: String,
        pub phase: String,
        pub outcome: String,
        pub actor_id: String,
        pub actor_name: String,
        pub role: Option<String>,
        pub backend: Option<String>,
        pub source: Option<String>,
        pub resource: Option<String>,
        pub unlock_id: Option<String>,
        pub reason: Option<String>,
        pub approver_id: Option<String>,
        pub before: Option<String>,
        pub after: Option<String>,
        pub ip: Option<String>,
        pub user_agent: Option<String>,
        pub request_id: Option<String>,
        pub trace_id: Option<String>,
        pub prev_hash: String,
        pub hash: String,
    }
}

/// Number and hash of an appended entry. Valid only after the commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Appended {
    pub seq: i64,
    pub hash: String,
}

impl AuditRecord {
    /// Mandatory fields, in the order of the hash.
    pub fn required(&self) -> [&str; 5] {
        [
            &self.action,
            &self.phase,
            &self.outcome,
            &self.actor_id,
            &self.actor_name,
        ]
    }

    /// Optional fields, in the order of the hash.
    pub fn optional(&self) -> [Option<&str>; 13] {
        [
            &self.role,
            &self.backend,
            &self.source,
            &self.resource,
            &self.unlock_id,
            &self.reason,
            &self.approver_id,
            &self.before,
            &self.after,
            &self.ip,
            &self.user_agent,
            &self.request_id,
            &self.trace_id,
        ]
        .map(Option::as_deref)
    }

    fn from_entry(entry: Entry, seq: i64, prev_hash: String, now: StoreTime) -> Self {
        let json = |value: Option<serde_json::Value>| value.map(|value| value.to_string());
        let text = |shared: Option<Arc<str>>| shared.as_deref().map(str::to_owned);
        let mut row = Self {
            seq,
            created_at: now.ms(),
            action: entry.action.as_str().to_owned(),
            phase: entry.phase.as_str().to_owned(),
            outcome: entry.outcome,
            actor_id: entry.actor.id,
            actor_name: entry.actor.name,
            role: entry.actor.role,
            backend: entry.subject.backend,
            source: entry.subject.source,
            resource: entry.subject.resource,
            unlock_id: entry.subject.unlock_id,
            reason: entry.reason,
            approver_id: entry.approver_id,
            before: json(entry.before),
            after: json(entry.after),
            ip: entry.origin.ip.map(|ip| ip.to_string()),
            user_agent: text(entry.origin.user_agent),
            request_id: text(entry.origin.request_id),
            trace_id: text(entry.origin.trace_id),
            prev_hash,
            hash: String::new(),
        };
        row.hash = chain::hash(&row);
        row
    }
}

impl Audit {
    /// Appends one entry in a transaction of its own.
    ///
    /// # Errors
    /// It is not recorded, or the outcome is unknown: the caller must not proceed.
    pub async fn append(&self, entry: Entry) -> Result<Appended, sqlx::Error> {
        let mut tx = self.db().begin().await?;
        let appended = self.append_in(&mut tx, entry).await?;
        tx.commit().await?;
        self.export(&appended).await;
        Ok(appended)
    }

    /// Appends one entry in the caller's transaction. After the commit the caller must [`export`](Self::export) it.
    ///
    /// # Errors
    /// The store refuses or does not answer: the transaction must be rolled back.
    pub async fn append_in(&self, tx: &mut Tx, entry: Entry) -> Result<Appended, sqlx::Error> {
        if let Tx::Postgres(tx) = tx {
            sqlx::query(POSTGRES_TURN).execute(&mut **tx).await?;
        }
        let (seq, prev_hash) = on_either!(tx, Tx, |tx| {
            match sqlx::query(LAST).fetch_optional(&mut **tx).await? {
                Some(last) => (last.try_get::<i64, _>(0)?, last.try_get::<String, _>(1)?),
                None => (0, chain::GENESIS.to_owned()),
            }
        });
        let now = StoreTime::from_ms(self.clock.now().wall.timestamp_millis());
        let row = AuditRecord::from_entry(entry, seq + 1, prev_hash, now);
        on_either!(tx, Tx, |tx| {
            let mut insert = sqlx::query(INSERT).bind(row.seq).bind(row.created_at);
            for text in row.required() {
                insert = insert.bind(text);
            }
            for text in row.optional() {
                insert = insert.bind(text);
            }
            insert = insert.bind(&row.prev_hash).bind(&row.hash);
            insert.execute(&mut **tx).await?;
        });
        Ok(Appended {
            seq: row.seq,
            hash: row.hash,
        })
    }

    /// Publishes the checkpoint outside of the store, so that truncation can be detected.
    pub async fn export(&self, appended: &Appended) {
        self.checkpoints.publish(appended).await;
        self.published.announce();
    }

    /// Number of entries published by this process; with SQLite no other process appends.
    pub fn publish_count(&self) -> u64 {
        self.published.count()
    }

    /// Announces each entry that this process published.
    pub fn published(&self) -> &ChangeSignal {
        &self.published
    }
}
