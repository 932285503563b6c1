//! A notifier on a throwaway store, with scripted notices.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ::config::NotifyConfig;
use domain::notification::{Notice, NoticeAlert, NoticeStatus};
use leasehold::audit::{Audit, ChainCheckpoints};
use leasehold::identity::Principal;
use leasehold::notify::{
    Delivering, Delivery, DeliveryFilter, DeliveryState, NewReceiver, Notifier, ReceiverKind, enqueue,
    fingerprint, secret_keys,
};
use runtime::clock::Clock;
use runtime::db::Db;
use sqlx::AssertSqlSafe;
use tokio_util::sync::CancellationToken;

pub(crate) use crate::support::store::Store;
use testkit::eventually;

/// Receivers of this machine are allowed.
pub(crate) const LOCAL_RECEIVERS: &str = "[notify]\nallowed_networks = [\"127.0.0.1/32\"]\n";
pub(crate) const SECRET: &str = "a secret of thirty-two characters";
pub(crate) const HOME: &str = "https://locks.example.com";

pub(crate) struct TestNotifier {
    pub(crate) store: Store,
    pub(crate) db: Db,
    pub(crate) notifier: Arc<Notifier>,
    config: NotifyConfig,
    delivering: Delivering,
    stop: CancellationToken,
}

/// This machine is declared; an Alertmanager is notified each second.
pub(crate) fn config() -> NotifyConfig {
    NotifyConfig {
        allowed_networks: vec!["127.0.0.1/32".parse().unwrap()],
        resend_interval: Duration::from_secs(1),
        ..NotifyConfig::default()
    }
}

impl TestNotifier {
    pub(crate) async fn start() -> Self {
        Self::on(Store::sqlite(), config()).await
    }

    pub(crate) async fn on(store: Store, config: NotifyConfig) -> Self {
        let _installed = rustls::crypto::ring::default_provider().install_default();
        let db = Db::open(&store.url).await.unwrap();
        let stop = CancellationToken::new();
        let audit = Audit::new(db.clone(), Clock::start(), ChainCheckpoints::default());
        let vault = secret_keys::open(&db, &store.url, &config).await.unwrap();
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

    /// Stops it and returns the store.
    pub(crate) async fn stopped(self) -> (Store, NotifyConfig) {
        self.stop.cancel();
        self.delivering.ended().await;
        self.db.close().await;
        (self.store, self.config)
    }

    pub(crate) async fn again(self) -> Self {
        let (store, config) = self.stopped().await;
        Self::on(store, config).await
    }

    pub(crate) async fn add(&self, name: &str, kind: ReceiverKind, urls: &[&str]) {
        let new = NewReceiver {
            name: name.to_owned(),
            kind,
            urls: urls.iter().map(|url| (*url).into()).collect(),
            secret: (kind == ReceiverKind::Webhook).then(|| SECRET.into()),
        };
        self.notifier.add(&Principal::system("test"), new).await.unwrap();
    }

    /// Sends a notice as an evaluator of rules does; returns the number of receivers.
    pub(crate) async fn enqueue_notice(&self, notice: &Notice) -> u64 {
        let enqueued = enqueue_notice(&self.db, notice).await;
        self.notifier.wake();
        enqueued
    }

    pub(crate) async fn sql(&self, statement: &str) {
        let statement = AssertSqlSafe(statement.to_owned());
        match &self.db {
            Db::Sqlite(pool) => drop(sqlx::raw_sql(statement).execute(pool).await.unwrap()),
            Db::Postgres(pool) => drop(sqlx::raw_sql(statement).execute(pool).await.unwrap()),
        }
    }

    /// Oldest first.
    pub(crate) async fn outbox(&self) -> Vec<Delivery> {
        let mut all = self
            .notifier
            .deliveries(&DeliveryFilter::default())
            .await
            .unwrap();
        all.reverse();
        all
    }

    /// Until all messages are in this state.
    pub(crate) async fn are(&self, state: DeliveryState) -> Vec<Delivery> {
        eventually(&format!("all are {state:?}"), async || {
            let all = self.outbox().await;
            !all.is_empty() && all.iter().all(|one| one.state == state)
        })
        .await;
        self.outbox().await
    }
}

pub(crate) async fn enqueue_notice(db: &Db, notice: &Notice) -> u64 {
    let mut tx = db.begin().await.unwrap();
    let enqueued = enqueue(&mut tx, notice, Clock::start().now().wall.timestamp_millis());
    let enqueued = enqueued.await.unwrap();
    tx.commit().await.unwrap();
    enqueued
}

pub(crate) fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    pairs.iter().map(owned).collect()
}

/// One alert about a resource, as a group of its own.
pub(crate) fn firing(resource: &str) -> Notice {
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

/// The same, resolved now.
pub(crate) fn resolved(mut notice: Notice) -> Notice {
    for alert in &mut notice.alerts {
        alert.status = NoticeStatus::Resolved;
        alert.ends_at = Some(Clock::start().now().wall.timestamp_millis());
    }
    notice
}
