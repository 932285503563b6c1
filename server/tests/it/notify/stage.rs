//! A notifier on a throwaway store, and what it is told.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use domain::notice::{Notice, NoticeAlert, NoticeStatus};
use leasehold::audit::{Audit, Heads};
use leasehold::clock::Clock;
use leasehold::config::NotifyConfig;
use leasehold::db::Db;
use leasehold::identity::Who;
use leasehold::notify::{
    Delivering, Delivery, DeliveryState, Kind, NewReceiver, Notifier, Wanted, enqueue, fingerprint, keys,
};
use sqlx::AssertSqlSafe;
use tokio_util::sync::CancellationToken;

use crate::support::eventually::eventually;
pub(super) use crate::support::store::Store;

pub(super) const SECRET: &str = "a secret of thirty-two characters";
pub(super) const HOME: &str = "https://locks.example.com";

pub(super) struct Stage {
    pub(super) store: Store,
    pub(super) db: Db,
    pub(super) notifier: Arc<Notifier>,
    config: NotifyConfig,
    delivering: Delivering,
    stop: CancellationToken,
}

/// This machine is declared; an Alertmanager is told each second.
pub(super) fn config() -> NotifyConfig {
    NotifyConfig {
        allow: vec!["127.0.0.1/32".parse().unwrap()],
        resend: Duration::from_secs(1),
        ..NotifyConfig::default()
    }
}

impl Stage {
    pub(super) async fn start() -> Self {
        Self::on(Store::sqlite(), config()).await
    }

    pub(super) async fn on(store: Store, config: NotifyConfig) -> Self {
        let _installed = rustls::crypto::ring::default_provider().install_default();
        let db = Db::open(&store.url).await.unwrap();
        let stop = CancellationToken::new();
        let audit = Audit::new(db.clone(), Clock::start(), Heads::default());
        let vault = keys::open(&db, &store.url, &config).await.unwrap();
        let started = Notifier::start(audit, vault, &config, HOME, Clock::start(), stop.clone());
        let (notifier, delivering) = started;
        Self {
            store,
            db,
            notifier,
            config,
            delivering,
            stop,
        }
    }

    /// Stops; what is left is the store.
    pub(super) async fn stopped(self) -> (Store, NotifyConfig) {
        self.stop.cancel();
        self.delivering.ended().await;
        self.db.close().await;
        (self.store, self.config)
    }

    pub(super) async fn again(self) -> Self {
        let (store, config) = self.stopped().await;
        Self::on(store, config).await
    }

    pub(super) async fn add(&self, name: &str, kind: Kind, urls: &[&str]) {
        let new = NewReceiver {
            name: name.to_owned(),
            kind,
            urls: urls.iter().map(|url| (*url).into()).collect(),
            secret: (kind == Kind::Webhook).then(|| SECRET.into()),
        };
        self.notifier.add(&Who::system("test"), new).await.unwrap();
    }

    /// As an evaluator of rules does it; answers how many are told.
    pub(super) async fn tell(&self, notice: &Notice) -> u64 {
        let told = tell(&self.db, notice).await;
        self.notifier.wake();
        told
    }

    pub(super) async fn sql(&self, statement: &str) {
        let statement = AssertSqlSafe(statement.to_owned());
        match &self.db {
            Db::Sqlite(pool) => drop(sqlx::raw_sql(statement).execute(pool).await.unwrap()),
            Db::Postgres(pool) => drop(sqlx::raw_sql(statement).execute(pool).await.unwrap()),
        }
    }

    /// Oldest first.
    pub(super) async fn outbox(&self) -> Vec<Delivery> {
        let mut all = self.notifier.deliveries(&Wanted::default()).await.unwrap();
        all.reverse();
        all
    }

    /// Until all messages are in this state.
    pub(super) async fn are(&self, state: DeliveryState) -> Vec<Delivery> {
        eventually(&format!("all are {state:?}"), async || {
            let all = self.outbox().await;
            !all.is_empty() && all.iter().all(|one| one.state == state)
        })
        .await;
        self.outbox().await
    }
}

pub(super) async fn tell(db: &Db, notice: &Notice) -> u64 {
    let mut tx = db.begin().await.unwrap();
    let told = enqueue(&mut tx, notice, Clock::start().now().wall.timestamp_millis());
    let told = told.await.unwrap();
    tx.commit().await.unwrap();
    told
}

pub(super) fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    pairs.iter().map(owned).collect()
}

/// One alert about a resource, as a group of its own.
pub(super) fn firing(resource: &str) -> Notice {
    let labels = map(&[
        ("alertname", "LongHeld"),
        ("severity", "warning"),
        ("resource", resource),
    ]);
    let alert = NoticeAlert {
        status: NoticeStatus::Firing,
        annotations: map(&[("summary", "held for 41 m")]),
        starts_at: Clock::start().now().wall.timestamp_millis() - 60_000,
        ends_at: None,
        path: "/locks/builtin/jobs".to_owned(),
        fingerprint: fingerprint(&labels),
        labels,
    };
    Notice {
        group: format!("LongHeld:{resource}"),
        receivers: Vec::new(),
        group_labels: map(&[("alertname", "LongHeld")]),
        alerts: vec![alert],
        truncated: 0,
    }
}

/// The same, over now.
pub(super) fn resolved(mut notice: Notice) -> Notice {
    for alert in &mut notice.alerts {
        alert.status = NoticeStatus::Resolved;
        alert.ends_at = Some(Clock::start().now().wall.timestamp_millis());
    }
    notice
}
