//! A store, and processes on it with scripted observations.

use std::ops::Deref;
use std::sync::Arc;

use ::backends::{Batch, Pass, SourcePass};
use ::config::HistoryConfig;
use ::inventory::{BackendInfo, Inventory, InventoryWriter};
use ::lease::{LeaseConfig, LeaseService};
use domain::backend::{BackendKind, BackendTraits};
use domain::generation::Generation;
use domain::lock_detail::EventKind;
use domain::names::{BackendName, OwnerId, Resource, Source};
use domain::observation::{Coverage, Lifetime, ObservedLock};
use domain::reported::Reported;
use domain::safety::{Safety, SafetyClass};
use leasehold::history::{History, Recording};
use runtime::clock::Clock;
use runtime::db::Db;
use sqlx::AssertSqlSafe;
use tokio_util::sync::CancellationToken;

use crate::support::store::Store;
use testkit::eventually;

pub(super) struct HistoryStore(Store);

impl Deref for HistoryStore {
    type Target = Store;

    fn deref(&self) -> &Store {
        &self.0
    }
}

impl HistoryStore {
    pub(super) fn sqlite() -> Self {
        Self(Store::sqlite())
    }

    pub(super) async fn postgres() -> Self {
        Self(Store::postgres().await)
    }

    pub(super) async fn db(&self) -> Db {
        Db::open(&self.url)
            .await
            .unwrap()
            .history(&self.url)
            .await
            .unwrap()
    }

    /// One statement directly on the store, for example to make rows older.
    pub(super) async fn sql(&self, statement: &str) {
        let statement = AssertSqlSafe(statement.to_owned());
        match self.db().await {
            Db::Sqlite(pool) => sqlx::raw_sql(statement).execute(&pool).await.map(drop).unwrap(),
            Db::Postgres(pool) => sqlx::raw_sql(statement).execute(&pool).await.map(drop).unwrap(),
        }
    }

    pub(super) async fn count(&self) -> i64 {
        self.number("SELECT count(*) FROM lock_events").await
    }

    pub(super) async fn number(&self, select: &'static str) -> i64 {
        match self.db().await {
            Db::Sqlite(pool) => sqlx::query_scalar(select).fetch_one(&pool).await.unwrap(),
            Db::Postgres(pool) => sqlx::query_scalar(select).fetch_one(&pool).await.unwrap(),
        }
    }
}

/// One process: an inventory with scripted observations, and its recorder.
pub(super) struct Server {
    pub(super) feed: InventoryWriter,
    pub(super) clock: Clock,
    pub(super) history: Arc<History>,
    pub(super) recording: Recording,
    pub(super) leases: Arc<LeaseService>,
    pub(super) stop: CancellationToken,
}

impl Server {
    pub(super) async fn start(home: &HistoryStore) -> Self {
        Self::keeping(home, HistoryConfig::default()).await
    }

    pub(super) async fn keeping(home: &HistoryStore, keep: HistoryConfig) -> Self {
        let (clock, stop) = (Clock::start(), CancellationToken::new());
        let leases = LeaseService::open(&home.url, LeaseConfig::default(), clock.clone(), stop.clone());
        let leases = leases.await.unwrap();
        let inventory = Inventory::new(vec![BackendInfo {
            name: backend(),
            kind: BackendKind::Redis,
            address: "127.0.0.1".to_owned(),
            poll_interval_ms: 60_000,
            capabilities: Vec::new(),
            traits: BackendTraits::default(),
        }]);
        let safety = || Safety {
            class: SafetyClass::Efficiency,
            why: "no token".into(),
        };
        let feed = inventory
            .feed(&backend(), clock.now(), move |_| (safety(), 1))
            .unwrap();
        let db = home.db().await;
        let (history, recording) = History::start(db, &inventory, &leases, keep, clock.clone(), stop.clone());
        let server = Self {
            feed,
            clock,
            history,
            recording,
            leases,
            stop,
        };
        // The first scan finds locks that existed before: no events.
        server.pass(&[]);
        server
    }

    /// A whole pass that finds these, each with its owner.
    pub(super) fn pass(&self, locks: &[(&str, &str)]) {
        self.saw(locks.iter().map(|(name, owner)| lock(name, owner)).collect());
    }

    /// A whole pass that finds these.
    pub(super) fn saw(&self, locks: Vec<ObservedLock>) {
        self.feed.begin(self.clock.now());
        self.feed.accept(Batch {
            sent_at: self.clock.tick(),
            locks,
            gone: Vec::new(),
        });
        let part = SourcePass {
            source: source(),
            coverage: Coverage::Complete,
            fault: None,
        };
        let pass = Pass {
            sources: vec![part],
            clock: Reported::unknown("no clock"),
        };
        self.feed.end(pass, self.clock.now());
    }

    pub(super) async fn stopped(self) {
        self.stop.cancel();
        self.recording.ended().await;
        self.leases.close().await;
    }

    pub(super) async fn written(&self, home: &HistoryStore, rows: i64) {
        eventually("all is written", async || home.count().await == rows).await;
    }

    /// Waits for whole rounds in which it acquired the lease of the leader and was refused by the store. The round that
    /// acquires the first lease from here may have taken its changes before; the next one ends before the third.
    pub(super) async fn failed_terms(&self, home: &HistoryStore) {
        let terms = "SELECT max(last_token) FROM resource_tokens";
        let before = home.number(terms).await;
        eventually("it has tried again", async || {
            home.number(terms).await >= before + 3
        })
        .await;
    }

    /// Kinds and owners, newest first.
    pub(super) async fn recorded(&self, name: &str) -> Vec<(EventKind, Option<String>)> {
        let recorded = self
            .history
            .lock_events(&backend(), Some(&source()), &Resource::from(name), 50)
            .await;
        let recorded = recorded.unwrap().into_iter();
        recorded
            .map(|event| (event.kind, event.owner_id.map(|owner| owner.to_string())))
            .collect()
    }
}

pub(super) fn backend() -> BackendName {
    BackendName::parse("cache").unwrap()
}

pub(super) fn source() -> Source {
    Source::fixed("key")
}

pub(super) fn lock(name: &str, owner: &str) -> ObservedLock {
    ObservedLock {
        source: source(),
        resource: Resource::from(name),
        owner: Reported::Value(OwnerId::new(owner)),
        owner_count: 1,
        sharers: Vec::new(),
        lease_id: Reported::absent("none here"),
        generation: Reported::Value(Generation::new(owner)),
        fencing_token: Reported::absent("none here"),
        acquired_at: Reported::unknown("not recorded"),
        renewed_at: Reported::unknown("not recorded"),
        lifetime: Lifetime::NoTtl {
            why: "PTTL is -1".into(),
        },
        waiter_count: Reported::unknown("not recorded"),
        oldest_waiter_ms: None,
        line: Vec::new(),
        condition: None,
    }
}
