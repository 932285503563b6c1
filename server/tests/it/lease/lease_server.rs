//! A lease service with its HTTP front on a free port, over a throwaway store.

use std::sync::Arc;
use std::time::Duration;

use ::config::{EtcdAddress, LeaseStoreConfig, LeaseStores, PostgresAddress, PostgresLeaseStore};
use ::lease::store::Store;
use ::lease::store::etcd::EtcdStore;
use ::lease::store::postgres::PostgresStore;
use ::lease::store::sqlite::SqliteStore;
use ::lease::{LeaseCaller, LeaseConfig, LeaseError, LeaseService};
use ::testkit::{EtcdCluster, EtcdOptions, Postgres, PostgresOptions, Throwaway, eventually};
use axum::http::StatusCode;
use domain::lease::LeaseId;
use runtime::clock::Clock;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

pub(super) use crate::support::aside;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StoreKind {
    Sqlite,
    Postgres,
    /// Three members.
    Etcd,
    /// Two shards: two databases of one Postgres.
    PostgresShards,
    /// Two shards: two prefixes of one etcd of one member.
    EtcdShards,
}

/// Where the leases are; outlives the servers on it.
pub(super) struct LeaseStore {
    /// Of a sharded store: those of all shards, separated by spaces.
    pub(super) url: String,
    pub(super) folder: tempfile::TempDir,
    pub(super) postgres: Option<Postgres>,
    pub(super) etcd: Option<EtcdCluster>,
}

impl LeaseStore {
    pub(super) async fn new(kind: StoreKind) -> Self {
        let folder = tempfile::tempdir().unwrap();
        match kind {
            StoreKind::Sqlite => Self {
                url: format!("sqlite:{}", folder.path().join("leases.db").display()),
                folder,
                postgres: None,
                etcd: None,
            },
            StoreKind::Etcd => Self::etcd(folder, 3).await,
            StoreKind::EtcdShards => {
                let store = Self::etcd(folder, 1).await;
                let of = |shard: &str| store.url.replace("/leasehold/", &format!("/leasehold-{shard}/"));
                Self {
                    url: format!("{} {}", of("0"), of("1")),
                    ..store
                }
            }
            StoreKind::PostgresShards => {
                let options = PostgresOptions {
                    fast: true,
                    ..Default::default()
                };
                let store = Self::postgres(folder, options).await;
                store.sql("CREATE DATABASE shard_1").await;
                let second = store.postgres.as_ref().unwrap().superuser_url_to("shard_1");
                Self {
                    url: format!("{} {second}", store.url),
                    ..store
                }
            }
            StoreKind::Postgres => {
                Self::postgres(
                    folder,
                    PostgresOptions {
                        fast: true,
                        ..Default::default()
                    },
                )
                .await
            }
        }
    }

    /// The store by itself, without the service. Not a sharded one: the service routes to shards.
    pub(super) async fn open(&self, clock: &Clock) -> Box<dyn Store> {
        if let Some(path) = self.url.strip_prefix("sqlite:") {
            return Box::new(SqliteStore::open(path.as_ref(), clock.clone()).await.unwrap());
        }
        if self.postgres.is_some() {
            return Box::new(PostgresStore::open(&self.url, clock.clone()).await.unwrap());
        }
        // Without a margin an expired lock is free at once, as in the model.
        let config = LeaseStoreConfig {
            max_clock_skew: Duration::ZERO,
            ..LeaseStoreConfig::at(EtcdAddress::parse(&self.url).unwrap())
        };
        Box::new(EtcdStore::open(&config, clock.clone()).await.unwrap())
    }

    pub(super) async fn postgres(folder: tempfile::TempDir, options: PostgresOptions) -> Self {
        let postgres = Throwaway::postgres(options).await.unwrap();
        Self {
            url: postgres.superuser_url(),
            folder,
            postgres: Some(postgres),
            etcd: None,
        }
    }

    async fn etcd(folder: tempfile::TempDir, members: usize) -> Self {
        let fast = EtcdOptions {
            fast: true,
            ..EtcdOptions::default()
        };
        let etcd = Throwaway::etcd_cluster(members, fast).await.unwrap();
        Self {
            url: format!("etcd://{}/leasehold/", etcd.addresses()),
            folder,
            postgres: None,
            etcd: Some(etcd),
        }
    }

    pub(super) async fn serve(&self) -> LeaseServer {
        self.serve_with(LeaseConfig::default(), None).await
    }

    pub(super) async fn serve_with(&self, config: LeaseConfig, caller: Option<LeaseCaller>) -> LeaseServer {
        serve_at_with(&self.url, config, caller).await
    }

    /// A connection to the first database of a Postgres.
    pub(super) async fn first_database(&self) -> sqlx::PgConnection {
        use sqlx::Connection as _;
        let first = self.url.split(' ').next().unwrap();
        sqlx::PgConnection::connect(first).await.unwrap()
    }

    /// One statement in the first database.
    pub(super) async fn sql_once(&self, statement: &'static str) {
        let mut connection = self.first_database().await;
        sqlx::raw_sql(statement).execute(&mut connection).await.unwrap();
    }

    /// Runs one statement in each shard without the service, as an operator's mistake or a restore would.
    pub(super) async fn sql(&self, statement: &str) {
        use sqlx::{AssertSqlSafe, Connection as _, PgConnection, SqliteConnection};
        let statement = || AssertSqlSafe(statement.to_owned());
        if self.postgres.is_some() {
            for url in self.url.split(' ') {
                let mut connection = PgConnection::connect(url).await.unwrap();
                sqlx::raw_sql(statement()).execute(&mut connection).await.unwrap();
            }
        } else {
            let mut connection = SqliteConnection::connect(&self.url).await.unwrap();
            sqlx::raw_sql(statement()).execute(&mut connection).await.unwrap();
        }
    }
}

/// A server on the store at this address.
pub(super) async fn serve_at(url: &str) -> LeaseServer {
    serve_at_with(url, LeaseConfig::default(), None).await
}

async fn serve_at_with(url: &str, config: LeaseConfig, caller: Option<LeaseCaller>) -> LeaseServer {
    // Only the first of a process counts; reqwest wants one even for plain HTTP.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let stop = CancellationToken::new();
    let config = LeaseConfig {
        store: config.store.or_else(|| lease_stores(url)),
        ..config
    };
    let service = LeaseService::open(console_store(url), config, Clock::start(), stop.clone())
        .await
        .unwrap();
    if url.starts_with("postgres") {
        connect_lanes(&service).await;
    }
    let mut app = leasehold::http::lease::standalone(service.clone());
    if let Some(caller) = caller {
        app = app.layer(axum::Extension(caller));
    }
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let end = stop.clone();
    let server = aside(async move {
        let served = axum::serve(listener, app).with_graceful_shutdown(end.cancelled_owned());
        served.await.unwrap();
    });
    LeaseServer {
        service,
        base,
        stop,
        server,
        http: reqwest::Client::new(),
    }
}

/// Each lane connects to Postgres with its first operation, which may take longer than a batch may on a machine that is busy with
/// other tests. An unknown lease changes nothing.
async fn connect_lanes(service: &LeaseService) {
    let (caller, unknown) = (LeaseCaller::open(), LeaseId::from_parts(0, [0; 10]));
    eventually("both lanes have answered", async || {
        let renewed = service.renew(&caller, unknown, None).await.err();
        let released = service.release(&caller, unknown).await.err();
        [renewed, released] == [Some(LeaseError::NotFound), Some(LeaseError::NotFound)]
    })
    .await;
}

/// `lease.store` of these addresses; `None` for one SQL store. Without a margin an expired lock is free at once on etcd, as
/// on the other stores; the margin has tests of its own.
pub(super) fn lease_stores(url: &str) -> Option<LeaseStores> {
    let etcd = |url| LeaseStoreConfig {
        max_clock_skew: Duration::ZERO,
        ..LeaseStoreConfig::at(EtcdAddress::parse(url).unwrap())
    };
    let postgres = |url| PostgresLeaseStore::at(PostgresAddress::parse(url).unwrap());
    let mut stores = match (EtcdAddress::is_etcd(url), url.contains(' ')) {
        (true, _) => LeaseStores::Etcd(url.split(' ').map(etcd).collect()),
        (false, true) => LeaseStores::Postgres(url.split(' ').map(postgres).collect()),
        (false, false) => return None,
    };
    stores.set_installation("test");
    Some(stores)
}

/// `store` next to these addresses: a Postgres that is not opened, so that no file is locked.
fn console_store(url: &str) -> &str {
    url.split(' ').next().unwrap()
}

pub(super) struct LeaseServer {
    pub(super) service: Arc<LeaseService>,
    pub(super) base: String,
    pub(super) stop: CancellationToken,
    pub(super) server: tokio::task::JoinHandle<()>,
    pub(super) http: reqwest::Client,
}

impl LeaseServer {
    pub(super) async fn close(self) {
        self.stop.cancel();
        tokio::time::timeout(Duration::from_secs(10), self.server)
            .await
            .unwrap()
            .unwrap();
        self.service.close().await;
    }

    pub(super) async fn post(&self, path: &str, body: Value) -> (StatusCode, Value) {
        answer(self.http.post(format!("{}{path}", self.base)).json(&body)).await
    }

    pub(super) async fn get(&self, path: &str) -> (StatusCode, Value) {
        answer(self.http.get(format!("{}{path}", self.base))).await
    }

    pub(super) async fn delete(&self, lease: &Value) -> (StatusCode, Value) {
        let mut was_late = false;
        loop {
            let (status, mut answer) = self.delete_once(lease).await;
            if !is_store_late(&answer) {
                // The call that was late may have released it, which only the store knows.
                if was_late && answer["state"] == "released" {
                    answer = json!({"released": true});
                }
                return (status, answer);
            }
            was_late = true;
        }
    }

    /// Also 503, of a store that is down.
    pub(super) async fn delete_once(&self, lease: &Value) -> (StatusCode, Value) {
        let url = format!("{}/v1/locks/{}", self.base, lease["leaseId"].as_str().unwrap());
        answer(self.http.delete(url)).await
    }

    pub(super) async fn acquire(&self, resource: &str, owner: &str, ttl: i64) -> Value {
        self.acquire_waiting(resource, owner, ttl, 0).await
    }

    pub(super) async fn acquire_waiting(&self, resource: &str, owner: &str, ttl: i64, wait: i64) -> Value {
        let body = json!({"resource": resource, "ownerId": owner, "ttlSeconds": ttl, "waitSeconds": wait});
        loop {
            let (status, answer) = self.post("/v1/locks/acquire", body.clone()).await;
            if !is_store_late(&answer) {
                assert_eq!(status, StatusCode::OK, "{answer}");
                return answer;
            }
        }
    }

    pub(super) async fn renew(&self, lease: &Value) -> (StatusCode, Value) {
        loop {
            let (status, answer) = self.renew_once(lease).await;
            if !is_store_late(&answer) {
                return (status, answer);
            }
        }
    }

    /// Also 503, of a store that is down.
    pub(super) async fn renew_once(&self, lease: &Value) -> (StatusCode, Value) {
        let path = format!("/v1/locks/{}/renew", lease["leaseId"].as_str().unwrap());
        answer(self.http.post(format!("{}{path}", self.base))).await
    }

    pub(super) async fn resource(&self, name: &str) -> Value {
        let mut url = url::Url::parse(&self.base).unwrap();
        url.path_segments_mut().unwrap().extend(["v1", "resources", name]);
        loop {
            let (status, answer) = answer(self.http.get(url.clone())).await;
            if !is_store_late(&answer) {
                assert_eq!(status, StatusCode::OK, "{answer}");
                return answer;
            }
        }
    }
}

/// Whether the store has not answered in time, which is no fault on a machine that is busy with other tests: a client repeats
/// the call.
fn is_store_late(answer: &Value) -> bool {
    answer["code"] == "store_unavailable"
}

/// For the test's own measurements.
#[expect(
    clippy::disallowed_methods,
    reason = "a test that measures a duration from outside"
)]
pub(super) fn stopwatch() -> std::time::Instant {
    std::time::Instant::now()
}

pub(super) async fn answer(request: reqwest::RequestBuilder) -> (StatusCode, Value) {
    let response = request.send().await.unwrap();
    let status = StatusCode::from_u16(response.status().as_u16()).unwrap();
    let text = response.text().await.unwrap();
    (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
}

pub(super) fn id(lease: &Value) -> LeaseId {
    LeaseId::parse(lease["leaseId"].as_str().unwrap()).unwrap()
}

pub(super) fn token(answer: &Value) -> u64 {
    answer["fencingToken"]
        .as_u64()
        .unwrap_or_else(|| panic!("no token in {answer}"))
}

pub(super) fn is_granted(answer: &Value) -> bool {
    answer["acquired"].as_bool().unwrap()
}

/// The same test on each of these stores.
macro_rules! on_stores {
    ($name:ident, |$store:ident| $body:block, $($test:ident: $kind:ident),+) => {
        mod $name {
            use super::*;

            async fn run($store: &LeaseStore) $body

            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $test() {
                    run(&LeaseStore::new(StoreKind::$kind).await).await;
                }
            )+
        }
    };
}
pub(super) use on_stores;

macro_rules! on_every_store {
    ($name:ident, |$store:ident| $body:block) => {
        $crate::lease::lease_server::on_stores!(
            $name, |$store| $body, on_sqlite: Sqlite, on_postgres: Postgres, on_etcd: Etcd,
            on_postgres_shards: PostgresShards, on_etcd_shards: EtcdShards
        );
    };
}
pub(super) use on_every_store;

/// On both SQL stores.
macro_rules! on_both_stores {
    ($name:ident, |$store:ident| $body:block) => {
        $crate::lease::lease_server::on_stores!($name, |$store| $body, on_sqlite: Sqlite, on_postgres: Postgres);
    };
}
pub(super) use on_both_stores;
