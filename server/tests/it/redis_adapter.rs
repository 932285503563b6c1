//! The Redis adapter against real throwaway servers.

mod account;
mod authentication;
mod change_notifications;
mod cluster;
mod cluster_scale;
mod faults;
mod inspect;
mod redlock;
mod release;
mod scan;
mod sentinel;
mod shapes;

use std::time::Duration;

use ::backends::redis::RedisBackend;
use ::backends::{Backend, BackendError, Batch, Budget, NamePredicate, Pass, Sink};
use ::config::redis::{RedisConfig, RedisMode, RedisValues};
use ::config::tls::TlsConfig;
use ::config::{BackendConfig, SystemConfig};
use ::testkit::{Redis, RedisOptions, Throwaway};
use domain::names::{BackendName, Resource, Source};
use domain::observation::ObservedLock;
use redis::aio::MultiplexedConnection;
use runtime::clock::Clock;

/// A configuration to change before it is used.
struct Setup {
    config: BackendConfig,
    redis: RedisConfig,
}

impl Setup {
    fn new(url: &str) -> Self {
        Self::with(RedisConfig::new(RedisMode::Standalone, vec![url.into()]))
    }

    /// Several servers.
    fn mode(mode: RedisMode, urls: impl IntoIterator<Item = String>) -> Self {
        let urls = urls.into_iter().map(Into::into).collect();
        let mut setup = Self::with(RedisConfig::new(mode, urls));
        // A node may take this long to answer, on a busy machine too.
        setup.config.poll_interval = Duration::from_secs(2);
        setup
    }

    fn with(redis: RedisConfig) -> Self {
        let config = BackendConfig {
            name: BackendName::parse("cache").unwrap(),
            poll_interval: Duration::from_millis(40),
            timeout: Duration::from_secs(10),
            scan_timeout: Duration::from_secs(60),
            tls: TlsConfig::default(),
            user: None,
            password: None,
            system: SystemConfig::Redis(redis.clone()),
        };
        Self { config, redis }
    }

    fn patterns(mut self, patterns: &[&str]) -> Self {
        self.redis.patterns = patterns.iter().map(|pattern| (*pattern).to_owned()).collect();
        self
    }

    fn unlocking(mut self, url: &str) -> Self {
        self.redis.unlock_url = Some(url.into());
        self
    }

    /// On every data node, without authentication.
    fn unlocking_all(mut self) -> Self {
        self.redis.unlock_user = Some("leasehold-unlock".to_owned());
        self
    }

    fn timeout(mut self, timeout: Duration) -> Self {
        self.config.timeout = timeout;
        self
    }

    fn tls(mut self, change: impl FnOnce(&mut TlsConfig)) -> Self {
        change(&mut self.config.tls);
        self
    }

    fn showing_values(mut self) -> Self {
        self.redis.value_display = RedisValues::Plain;
        self
    }

    fn connect(&self) -> Result<RedisBackend, BackendError> {
        backends::redis::connect(&self.config, &self.redis, Clock::start())
    }

    fn backend(&self) -> RedisBackend {
        self.connect().unwrap()
    }
}

/// Stores everything that is handed over.
#[derive(Default)]
struct Seen {
    locks: Vec<ObservedLock>,
    gone: Vec<(Source, Resource)>,
    batches: usize,
    /// Parts that a partial scan has read completely.
    parts: Vec<(Source, NamePredicate)>,
    undecided: Vec<Source>,
}

impl Sink for Seen {
    fn accept(&mut self, batch: Batch) {
        self.batches += 1;
        self.locks.extend(batch.locks);
        self.gone.extend(batch.gone);
    }

    fn read_part(&mut self, source: &Source, covers: NamePredicate) {
        self.parts.push((source.clone(), covers));
    }

    fn mark_undecided(&mut self, source: &Source) {
        self.undecided.push(source.clone());
    }
}

impl Seen {
    fn named(&self, name: impl AsRef<[u8]>) -> &ObservedLock {
        let resource = Resource::from_bytes(name.as_ref());
        self.locks
            .iter()
            .find(|lock| lock.resource == resource)
            .unwrap_or_else(|| panic!("{resource:?} not seen"))
    }

    /// Whether the scan would have found a lock of this name.
    fn has_read(&self, name: &str) -> bool {
        self.parts.iter().any(|(_, covers)| covers(name.as_bytes()))
    }

    fn has(&self, name: &str) -> bool {
        self.locks
            .iter()
            .any(|lock| lock.resource == Resource::from(name))
    }
}

const BUDGET: Budget = Budget {
    time_max: Duration::from_secs(60),
};

async fn try_observe(backend: &RedisBackend) -> Result<(Pass, Seen), BackendError> {
    let mut seen = Seen::default();
    let pass = backend.observe(BUDGET, &mut seen).await?;
    Ok((pass, seen))
}

async fn observe(backend: &RedisBackend) -> (Pass, Seen) {
    try_observe(backend).await.unwrap()
}

async fn start() -> Redis {
    Throwaway::redis(RedisOptions::default()).await.unwrap()
}

async fn start_with(change: impl FnOnce(&mut RedisOptions)) -> Redis {
    let mut options = RedisOptions::default();
    change(&mut options);
    Throwaway::redis(options).await.unwrap()
}

/// The driver's own connection, as the default user.
async fn driver(redis: &Redis) -> MultiplexedConnection {
    let client = redis::Client::open(redis.url()).unwrap();
    let settings = redis::AsyncConnectionConfig::new().set_response_timeout(Some(Duration::from_secs(30)));
    client
        .get_multiplexed_async_connection_with_config(&settings)
        .await
        .unwrap()
}

/// Runs one command given as words.
async fn run(connection: &mut MultiplexedConnection, words: &[&str]) -> redis::Value {
    let mut command = redis::cmd(words[0]);
    command.arg(&words[1..]);
    command.query_async(connection).await.unwrap()
}

fn key() -> Source {
    Source::fixed("key")
}

fn hash() -> Source {
    Source::fixed("hash")
}
