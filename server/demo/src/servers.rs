//! The demo's servers: started in parallel, prepared, and described as the console's configuration.

use std::sync::Arc;

use domain::names::{BackendName, NameError};
use futures::future::try_join_all;
use secrecy::SecretString;

use super::DemoError;
use super::consul;
use super::deadlock;
use super::etcd;
use super::fault::WorkloadError;
use super::postgres::{self, schema};
use super::redis;
use super::zookeeper;
use config::backend::{POLL_INTERVAL_DEFAULT, SCAN_TIMEOUT_DEFAULT, TIMEOUT_DEFAULT};
use config::consul::ConsulConfig;
use config::etcd::EtcdConfig;
use config::postgres::{
    AdvisoryNameConfig, LeaseTableConfig, LeaseTablePreset, LeaseTableRelease, PostgresConfig, QueryText,
};
use config::redis::{RedisConfig, RedisMode};
use config::tls::TlsConfig;
use config::zookeeper::{REQUESTS_PER_SECOND_DEFAULT, ZookeeperConfig};
use config::{BackendConfig, SystemConfig};
use runtime::random;
use testkit::{
    Consul, ConsulOptions, Etcd, EtcdOptions, MissingServer, Postgres, PostgresOptions, Redis, RedisOptions,
    Server, StartError, Throwaway, Zookeeper, ZookeeperOptions,
};

/// Running servers; `None`: not installed on this machine.
pub(super) struct Servers {
    pub(super) orders: Option<Orders>,
    pub(super) cache: Option<Cache>,
    pub(super) cache_eu: Option<Cache>,
    /// Nodes of one Redlock.
    pub(super) redlock: Option<Vec<Cache>>,
    pub(super) coord: Option<Etcd>,
    pub(super) plan: Option<Zookeeper>,
    pub(super) dc1: Option<Consul>,
}

pub(super) struct Orders {
    pub(super) server: Postgres,
    pub(super) passwords: schema::Passwords,
}

pub(super) struct Cache {
    pub(super) server: Arc<Redis>,
    watch_password: String,
    unlock_password: String,
}

impl Servers {
    pub(super) async fn start() -> Result<(Self, Vec<MissingServer>), DemoError> {
        let mut missing = Vec::new();
        let (orders, cache, cache_eu, redlock, coord, plan, dc1) = tokio::join!(
            orders(),
            cache(Some("KEA"), random::id()),
            cache(None, random::id()),
            redlock(),
            Throwaway::etcd(EtcdOptions::default()),
            Throwaway::zookeeper(ZookeeperOptions::default()),
            Throwaway::consul(ConsulOptions::default()),
        );
        let servers = Self {
            orders: installed(orders, &mut missing)?,
            cache: installed(cache, &mut missing)?,
            cache_eu: installed(cache_eu, &mut missing)?,
            redlock: installed(redlock, &mut missing)?,
            coord: installed(coord.map_err(DemoError::Start), &mut missing)?,
            plan: installed(plan.map_err(DemoError::Start), &mut missing)?,
            dc1: installed(dc1.map_err(DemoError::Start), &mut missing)?,
        };
        if servers.running().is_empty() {
            return Err(DemoError::NothingInstalled(missing));
        }
        Ok((servers, missing))
    }

    pub(super) fn configs(&self) -> Result<Vec<BackendConfig>, NameError> {
        let orders = self
            .orders
            .iter()
            .map(|orders| backend("orders-db", orders.config()));
        let cache = self
            .cache
            .iter()
            .map(|cache| backend("redis-cache", cache.config()));
        let cache_eu = self
            .cache_eu
            .iter()
            .map(|cache| backend("cache-eu", cache.config()));
        let redlock = self
            .redlock
            .iter()
            .map(|nodes| backend("payments-redlock", redlock_config(nodes)));
        let coord = self.coord.iter().map(|server| {
            let (endpoints, prefixes) = (vec![server.endpoint()], vec![etcd::PREFIX.to_owned()]);
            backend(
                "etcd-coord",
                SystemConfig::Etcd(EtcdConfig {
                    endpoints,
                    prefixes,
                    // The demo's etcd has authentication disabled: the account is only a name.
                    unlock_user: Some("leasehold-unlock".to_owned()),
                    unlock_password: None,
                }),
            )
        });
        let plan = self
            .plan
            .iter()
            .map(|server| backend("zk-plan", zookeeper_config(server)));
        let dc1 = self
            .dc1
            .iter()
            .map(|server| backend("consul-dc1", consul_config(server)));
        let known = orders.chain(cache).chain(cache_eu).chain(redlock).chain(coord);
        known.chain(plan).chain(dc1).collect()
    }
}

fn zookeeper_config(server: &Zookeeper) -> SystemConfig {
    SystemConfig::Zookeeper(ZookeeperConfig {
        connect: server.cluster(),
        paths: vec![zookeeper::PATH.to_owned()],
        requests_per_second: REQUESTS_PER_SECOND_DEFAULT,
        // The demo's nodes are open to everyone: the account is only a name.
        unlock_user: Some("leasehold-unlock".to_owned()),
        unlock_password: None,
    })
}

fn consul_config(server: &Consul) -> SystemConfig {
    SystemConfig::Consul(ConsulConfig {
        url: server.url(),
        token: None,
        prefixes: vec![consul::PREFIX.to_owned()],
        // The demo's Consul has ACLs off: any token enables forced unlocks.
        unlock_token: Some(SecretString::from(random::id())),
        datacenter: None,
        namespace: None,
    })
}

impl Servers {
    fn running(&self) -> Vec<&Server> {
        let orders = self.orders.iter().map(|orders| &*orders.server);
        let caches = self.cache.iter().chain(&self.cache_eu);
        let caches = caches.chain(self.redlock.iter().flatten());
        let mut servers: Vec<&Server> = orders.chain(caches.map(|cache| &**cache.server)).collect();
        servers.extend(self.coord.as_deref());
        servers.extend(self.plan.as_deref());
        servers.extend(self.dc1.as_deref());
        servers
    }

    pub(super) async fn crash(&self) -> Result<(), StartError> {
        try_join_all(self.running().into_iter().map(async |server: &Server| {
            // A failed kill shows in the restart.
            let _ = server.kill().await;
            server.restart().await
        }))
        .await
        .map(drop)
    }
}

impl Orders {
    fn config(&self) -> SystemConfig {
        let url =
            self.server
                .url_with_password(postgres::WATCH_ROLE, &self.passwords.watch, postgres::DATABASE);
        let unlock_url =
            self.server
                .url_with_password(postgres::UNLOCK_ROLE, &self.passwords.unlock, postgres::DATABASE);
        let table = |name: &str, preset, notify| LeaseTableConfig {
            stale_after: None,
            table: format!("public.{name}"),
            preset,
            columns: Default::default(),
            held_when: None,
            expires_unit: None,
            notify,
            // Its tokens are in a separate table.
            release: (preset == LeaseTablePreset::Common).then_some(LeaseTableRelease::Delete),
        };
        SystemConfig::Postgres(PostgresConfig {
            url: SecretString::from(url),
            unlock_url: Some(SecretString::from(unlock_url)),
            advisory_locks: true,
            blocked_sessions: true,
            query_text: QueryText::default(),
            lease_tables: vec![
                table(
                    "distributed_locks",
                    LeaseTablePreset::Common,
                    Some(schema::CHANNEL.to_owned()),
                ),
                table("shedlock", LeaseTablePreset::Shedlock, None),
                table("databasechangeloglock", LeaseTablePreset::Liquibase, None),
            ],
            advisory_names: vec![AdvisoryNameConfig {
                key: Some(postgres::advisory::PRISMA_KEY),
                key1: None,
                key2: None,
                name: "prisma migrate".to_owned(),
            }],
            names: [
                postgres::advisory::CONTENDED,
                deadlock::LOCK,
                postgres::advisory::QUIET,
                postgres::prepared::NAME,
            ]
            .map(str::to_owned)
            .to_vec(),
            poolers: Vec::new(),
        })
    }
}

impl Cache {
    fn config(&self) -> SystemConfig {
        let url = self.server.url_for(redis::WATCH_USER, &self.watch_password);
        let unlock_url = self.server.url_for(redis::UNLOCK_USER, &self.unlock_password);
        SystemConfig::Redis(RedisConfig {
            unlock_url: Some(SecretString::from(unlock_url)),
            ..RedisConfig::new(RedisMode::Standalone, vec![SecretString::from(url)])
        })
    }
}

async fn orders() -> Result<Orders, DemoError> {
    let settings = [
        ("max_prepared_transactions", "4"),
        ("shared_buffers", "16MB"),
        ("max_connections", "60"),
        // A session that waits for a lock would not detect a lost client otherwise.
        ("client_connection_check_interval", "1s"),
    ];
    let options = PostgresOptions {
        fast: true,
        password: Some(random::id()),
        settings: settings
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .to_vec(),
        ..Default::default()
    };
    let server = Throwaway::postgres(options).await?;
    let passwords = schema::Passwords {
        app: random::id(),
        watch: random::id(),
        unlock: random::id(),
    };
    schema::create(&server, &passwords)
        .await
        .map_err(|fault| prepare_error("orders-db", &fault))?;
    Ok(Orders { server, passwords })
}

/// Three independent servers with one account for forced unlocks.
async fn redlock() -> Result<Vec<Cache>, DemoError> {
    let unlock_password = random::id();
    let nodes = (0..3).map(|_| cache(Some("KEA"), unlock_password.clone()));
    try_join_all(nodes).await
}

fn redlock_config(nodes: &[Cache]) -> SystemConfig {
    let urls = nodes
        .iter()
        .map(|node| SecretString::from(node.server.url_for(redis::WATCH_USER, &node.watch_password)));
    SystemConfig::Redis(RedisConfig {
        unlock_user: Some(redis::UNLOCK_USER.to_owned()),
        unlock_password: nodes
            .first()
            .map(|node| SecretString::from(node.unlock_password.clone())),
        ..RedisConfig::new(RedisMode::Redlock, urls.collect())
    })
}

async fn cache(notify_keyspace_events: Option<&str>, unlock_password: String) -> Result<Cache, DemoError> {
    let (password, watch_password) = (random::id(), random::id());
    let options = |is_old| RedisOptions {
        append_only: true,
        notify_keyspace_events: notify_keyspace_events.map(str::to_owned),
        password: Some(password.clone()),
        acl_users: vec![
            redis::watch_acl(&watch_password, is_old),
            redis::unlock_acl(&unlock_password),
        ],
        ..Default::default()
    };
    // Older versions exit on an unknown ACL rule.
    let server = match Throwaway::redis(options(false)).await {
        Err(StartError::Exited { .. }) => Throwaway::redis(options(true)).await?,
        other => other?,
    };
    Ok(Cache {
        server: Arc::new(server),
        watch_password,
        unlock_password,
    })
}

/// An uninstalled server is reported and left out.
fn installed<T>(
    started: Result<T, DemoError>,
    missing: &mut Vec<MissingServer>,
) -> Result<Option<T>, DemoError> {
    match started {
        Ok(server) => Ok(Some(server)),
        Err(DemoError::Start(StartError::Missing(server))) => {
            if !missing.contains(&server) {
                missing.push(server);
            }
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

pub(super) fn prepare_error(server: &'static str, fault: &WorkloadError) -> DemoError {
    DemoError::Prepare {
        server,
        detail: fault.to_string(),
    }
}

fn backend(name: &str, system: SystemConfig) -> Result<BackendConfig, NameError> {
    Ok(BackendConfig {
        name: BackendName::parse(name)?,
        poll_interval: POLL_INTERVAL_DEFAULT,
        timeout: TIMEOUT_DEFAULT,
        scan_timeout: SCAN_TIMEOUT_DEFAULT,
        tls: TlsConfig::default(),
        user: None,
        password: None,
        system,
    })
}
