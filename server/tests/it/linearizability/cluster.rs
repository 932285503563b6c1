//! Everything of one run: store, servers, a proxy and a process for each client, the protected resource.

use crate::support::client;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ::testkit::{EtcdCluster, EtcdOptions, Postgres, PostgresOptions, Throwaway};
use rustix::process::Signal;
use tokio::task::JoinHandle;

use super::client::{ClientCommand, acquired, send};
use super::fleet::{Client, FleetCounts, LANES};
use super::history::{Call, Death, History, Micros, OperationKind, RecordedAnswer, now};
use super::register::Register;
use super::rows;
use super::servers::{LEASE_STORE, Server, ServerWrapper};
use crate::support::proxy::Proxy;
use testkit::eventually;

pub(super) const CLIENTS: u32 = 8;
const RESOURCES: usize = 20;
/// The cap of a life is near, so that renewals reach it.
const LIMITS: [(&str, &str); 3] = [
    ("LEASEHOLD_LEASE__MAX_CLOCK_SKEW", MARGIN.0),
    ("LEASEHOLD_LEASE__MAX_TTL", "2s"),
    ("LEASEHOLD_LEASE__MAX_LIFETIME", "3s"),
];
const LIFETIME_MS: i64 = 3_000;
/// As configured, and in milliseconds.
const MARGIN: (&str, i64) = ("300ms", 300);
/// The external reader of locks.
const OBSERVER: u32 = 0;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum StoreKind {
    Sqlite,
    /// SQLite in a folder that is a disk of a few MiB.
    SqliteOnSmallDisk,
    Postgres,
    /// Leases in databases of two Postgres servers, users in the first of them.
    PostgresShards,
    /// Leases in an etcd of three members, users in Postgres.
    Etcd,
}

pub(super) struct Cluster {
    pub(super) kind: StoreKind,
    pub(super) folder: tempfile::TempDir,
    pub(super) postgres: Option<Postgres>,
    /// The Postgres of the second shard.
    pub(super) second: Option<Postgres>,
    pub(super) etcd: Option<EtcdCluster>,
    pub(super) url: String,
    pub(super) servers: Vec<Server>,
    token: String,
    http: reqwest::Client,
    pub(super) proxies: Vec<Proxy>,
    pub(super) register: Register,
    pub(super) clients: Vec<Client>,
    pub(super) tally: Arc<FleetCounts>,
    pub(super) history: History,
    /// The wall clock of the server was moved that serves an SQLite file.
    pub(super) wall_moved: bool,
    next_client: u32,
    seed: u64,
    looking: Arc<AtomicBool>,
    looker: Option<JoinHandle<Vec<Call>>>,
}

impl Cluster {
    /// `count` servers on one store; SQLite has one.
    pub(super) async fn start((kind, count): (StoreKind, usize), seed: u64) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let folder = tempfile::tempdir().unwrap();
        let etcd = lease_store(kind, &folder).await;
        let (postgres, url, around) = store(kind, &folder).await;
        let second = second_shard(kind, &folder, postgres.as_ref()).await;
        let mut servers = Vec::new();
        for _ in 0..count {
            servers.push(Server::start(&url, folder.path(), around.clone(), &LIMITS).await);
        }
        let mut proxies = Vec::new();
        for number in 0..CLIENTS as usize {
            proxies.push(Proxy::start(servers[number % count].port).await);
        }
        let mut cluster = Self {
            kind,
            folder,
            postgres,
            second,
            etcd,
            url,
            token: servers[0].token(),
            http: servers[0].http(),
            servers,
            proxies,
            register: Register::start().await,
            clients: Vec::new(),
            tally: Arc::default(),
            history: History {
                lifetime_ms_max: LIFETIME_MS,
                margin_ms: if kind == StoreKind::Etcd { MARGIN.1 } else { 0 },
                ..History::default()
            },
            wall_moved: false,
            next_client: 1,
            seed,
            looking: Arc::new(AtomicBool::new(true)),
            looker: None,
        };
        for place in 0..CLIENTS as usize {
            let client = cluster.hire(place);
            cluster.clients.push(client);
        }
        let urls: Vec<String> = cluster.servers.iter().map(|server| server.url("")).collect();
        let http = client(&cluster.token, Duration::from_secs(2));
        cluster.looker = Some(super::aside(read_directly(urls, http, cluster.looking.clone())));
        cluster
    }

    fn hire(&mut self, place: usize) -> Client {
        let number = self.next_client;
        self.next_client += 1;
        let server = format!("http://127.0.0.1:{}", self.proxies[place].port());
        let order = ClientCommand {
            client: number,
            seed: self.seed,
            lanes: LANES,
            server,
            token: self.token.clone(),
            register: self.register.address.to_string(),
        };
        Client::start(&order, &self.tally)
    }

    /// Kills a client and puts another in its place.
    pub(super) async fn replace(&mut self, place: usize, bound_ms: i64) -> u32 {
        let next = self.hire(place);
        let old = std::mem::replace(&mut self.clients[place], next);
        let client = old.number;
        let (at, calls) = old.kill().await;
        self.history.calls.extend(calls);
        self.history.deaths.push(Death { client, at, bound_ms });
        client
    }

    /// A call of our own past the proxies, written down like any other. The status, and the answer.
    pub(super) async fn probe(&mut self, resource: &str) -> (u16, RecordedAnswer) {
        let owner = format!("probe-{}", self.history.calls.len());
        let begin = now();
        let body = serde_json::json!({"resource": resource, "ownerId": owner, "ttlSeconds": 1});
        let url = self.servers[0].url("/v1/locks/acquire");
        let answer = send(self.http.post(url).json(&body)).await;
        let (status, answer) = (answer.0, acquired(answer));
        self.history.calls.push(Call {
            client: OBSERVER,
            begin,
            end: (answer != RecordedAnswer::Unknown).then(now),
            what: OperationKind::Acquire {
                resource: resource.to_owned(),
                owner,
                ttl_ms: 1_000,
            },
            answer: answer.clone(),
        });
        (status, answer)
    }

    pub(super) fn known(&self) -> u64 {
        self.tally.known.load(Ordering::Relaxed)
    }

    pub(super) fn unknown(&self) -> u64 {
        self.tally.unknown.load(Ordering::Relaxed)
    }

    /// Waits until each client has a definite answer to a call made after now.
    pub(super) async fn all_served_again(&self) {
        let from: Micros = now();
        eventually("every client is served again", || async {
            self.clients.iter().all(|client| client.last_known() > from)
        })
        .await;
    }

    /// On SQLite a restart uses the wall clock of that moment.
    pub(super) async fn restart(&mut self, server: usize) {
        self.history.clock_moved |= self.wall_moved;
        self.servers[server].restart().await;
    }

    /// Stops all processes gracefully and reads the store.
    pub(super) async fn finish(mut self) -> History {
        let mut history = std::mem::take(&mut self.history);
        for calls in futures::future::join_all(self.clients.drain(..).map(Client::finish)).await {
            history.calls.extend(calls);
        }
        self.looking.store(false, Ordering::Relaxed);
        history.calls.extend(self.looker.take().unwrap().await.unwrap());
        history.accesses = self.register.log();
        let database = self.close().await;
        (history.rows, history.ledger) = match &self.etcd {
            Some(etcd) => rows::read_etcd(&etcd.endpoints()).await,
            None => rows::read(&database).await,
        };
        if let Some(second) = &self.second {
            let (more, ledger) = rows::read(&second.superuser_url()).await;
            history.rows.extend(more);
            history.ledger.extend(ledger);
        }
        for server in &self.servers {
            let log = server.read_log();
            assert!(!log.contains("panicked"), "{log}");
        }
        history
    }
}

impl Cluster {
    /// Ends the servers in good order. Returns where the store is.
    async fn close(&mut self) -> String {
        if self.kind == StoreKind::SqliteOnSmallDisk {
            // The disk is removed with its server: both files are copied while the server is stopped.
            self.servers[0].signal(Signal::STOP);
            for file in ["leases.db", "leases.db-wal"] {
                let from = self.servers[0].seen_by_it(&format!("disk/{file}"));
                std::fs::copy(from, self.folder.path().join(file)).unwrap();
            }
            return format!("sqlite:{}", self.folder.path().join("leases.db").display());
        }
        for server in &mut self.servers {
            let status = server.end(Signal::TERM).await;
            assert_eq!(status.code(), Some(0), "{}", server.read_log());
        }
        self.url.clone()
    }
}

/// The etcd of the leases, if they are in one.
async fn lease_store(kind: StoreKind, folder: &tempfile::TempDir) -> Option<EtcdCluster> {
    if kind != StoreKind::Etcd {
        return None;
    }
    // Elections after a second, as usual: the shortest ones would be caused by a busy machine alone.
    let options = EtcdOptions {
        has_links: true,
        ..EtcdOptions::default()
    };
    let etcd = Throwaway::etcd_cluster(3, options).await.unwrap();
    let url = format!("etcd://{}/leasehold/", etcd.addresses());
    std::fs::write(folder.path().join(LEASE_STORE), url).unwrap();
    Some(etcd)
}

/// The Postgres of the second of two shards; the first is next to the users.
async fn second_shard(
    kind: StoreKind,
    folder: &tempfile::TempDir,
    first: Option<&Postgres>,
) -> Option<Postgres> {
    let first = first.filter(|_| kind == StoreKind::PostgresShards)?;
    let second = fast_postgres().await;
    let urls = [first, &second].map(|postgres| format!("{:?}", postgres.superuser_url()));
    std::fs::write(folder.path().join(LEASE_STORE), format!("[{}]", urls.join(", "))).unwrap();
    Some(second)
}

async fn fast_postgres() -> Postgres {
    let options = PostgresOptions {
        fast: true,
        ..Default::default()
    };
    Throwaway::postgres(options).await.unwrap()
}

async fn store(kind: StoreKind, folder: &tempfile::TempDir) -> (Option<Postgres>, String, ServerWrapper) {
    let file = folder.path().join("leases.db");
    match kind {
        StoreKind::PostgresShards => {
            let postgres = fast_postgres().await;
            let url = postgres.superuser_url();
            (Some(postgres), url, ServerWrapper::Nothing)
        }
        StoreKind::Postgres => {
            let postgres = fast_postgres().await;
            super::clock::install(&postgres.superuser_url()).await;
            let url = postgres.superuser_url();
            (Some(postgres), url, ServerWrapper::Nothing)
        }
        StoreKind::Etcd => {
            let postgres = fast_postgres().await;
            let offset = folder.path().join("offset");
            std::fs::write(&offset, "+0").unwrap();
            let url = postgres.superuser_url();
            (Some(postgres), url, ServerWrapper::Faketime(offset))
        }
        StoreKind::Sqlite => {
            let offset = folder.path().join("offset");
            std::fs::write(&offset, "+0").unwrap();
            (
                None,
                format!("sqlite:{}", file.display()),
                ServerWrapper::Faketime(offset),
            )
        }
        StoreKind::SqliteOnSmallDisk => (
            None,
            "sqlite:disk/leases.db".to_owned(),
            ServerWrapper::SmallDisk { mib: 24 },
        ),
    }
}

/// Reads one lock after the other directly, without the proxies.
async fn read_directly(servers: Vec<String>, http: reqwest::Client, looking: Arc<AtomicBool>) -> Vec<Call> {
    let mut calls = Vec::new();
    for number in 0.. {
        if !looking.load(Ordering::Relaxed) {
            break;
        }
        let resource = format!("proof:{:02}", number % RESOURCES);
        let begin = now();
        let url = format!("{}/v1/resources/{resource}", servers[number % servers.len()]);
        let (status, body) = send(http.get(url)).await;
        let holder = &body["holder"];
        let answer = match status {
            200 => RecordedAnswer::Holder {
                last: body["lastFencingToken"].as_u64().unwrap(),
                holder: holder["fencingToken"]
                    .as_u64()
                    .map(|token| (token, holder["ownerId"].as_str().unwrap().to_owned())),
            },
            _ => RecordedAnswer::Unknown,
        };
        calls.push(Call {
            client: OBSERVER,
            begin,
            end: (answer != RecordedAnswer::Unknown).then(now),
            what: OperationKind::Look { resource },
            answer,
        });
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    calls
}

/// How often each thing was done, for the report of a run.
pub(super) fn summary(history: &History) -> String {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for call in &history.calls {
        let name = match &call.answer {
            RecordedAnswer::Unknown => "unknown",
            RecordedAnswer::Granted { .. } => "granted",
            RecordedAnswer::Refused { .. } => "refused",
            RecordedAnswer::RefusedForWaiters(_) => "refused for waiters",
            RecordedAnswer::Renewed => "renewed",
            RecordedAnswer::Alive => "read alive",
            RecordedAnswer::AtCap => "at their cap",
            RecordedAnswer::Released => "released",
            RecordedAnswer::Lost => "lost",
            RecordedAnswer::Holder { .. } => "looks",
            RecordedAnswer::Reported => "rejections",
            RecordedAnswer::Unexpected(_) => "unexpected",
        };
        *counts.entry(name).or_insert(0) += 1;
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_unstable();
    let counts: Vec<String> = counts
        .iter()
        .map(|(name, count)| format!("{count} {name}"))
        .collect();
    format!(
        "{} calls ({}), {} leases kept",
        history.calls.len(),
        counts.join(", "),
        history.rows.len()
    )
}
