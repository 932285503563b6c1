//! One throwaway ZooKeeper with an adapter and clients that hold locks in it.

use std::time::Duration;

use ::backends::BackendError;
use ::backends::zookeeper::{ZookeeperBackend, connect};
use ::config::backend::{BackendConfig, SystemConfig};
use ::config::zookeeper::{REQUESTS_PER_SECOND_DEFAULT, ZookeeperConfig};
use ::testkit::{Throwaway, Zookeeper, ZookeeperOptions};
use domain::names::{Resource, Source};
use zookeeper_client::{Acls, Client, CreateMode, Stat};

use crate::support::watching::{backend_config, clock};

pub(crate) struct WatchedZookeeper {
    pub(crate) zookeeper: Zookeeper,
    pub(crate) client: Client,
    pub(crate) backend: ZookeeperBackend,
}

impl WatchedZookeeper {
    /// With an adapter that may unlock: without a password the account is no more than a name.
    pub(crate) async fn start() -> Self {
        let zookeeper = zookeeper().await;
        let client = client(&zookeeper.cluster()).await;
        Self {
            backend: unlocker(&zookeeper.cluster()),
            client,
            zookeeper,
        }
    }
}

pub(crate) async fn zookeeper() -> Zookeeper {
    let config = ["minSessionTimeout=1000", "extendedTypesEnabled=true"];
    let config = config.map(str::to_owned).to_vec();
    let options = ZookeeperOptions { config, id: None };
    Throwaway::zookeeper(options).await.unwrap()
}

pub(crate) async fn client(cluster: &str) -> Client {
    let connector = Client::connector().with_session_timeout(Duration::from_secs(30));
    connector.connect(cluster).await.unwrap()
}

/// The defaults of the configuration, changed by `change`.
pub(crate) fn backend(
    connect_string: &str,
    change: impl FnOnce(&mut BackendConfig, &mut ZookeeperConfig),
) -> ZookeeperBackend {
    try_backend(connect_string, change).unwrap()
}

pub(crate) fn try_backend(
    connect_string: &str,
    change: impl FnOnce(&mut BackendConfig, &mut ZookeeperConfig),
) -> Result<ZookeeperBackend, BackendError> {
    let mut zookeeper = ZookeeperConfig {
        connect: connect_string.to_owned(),
        paths: vec!["/locks".to_owned()],
        requests_per_second: REQUESTS_PER_SECOND_DEFAULT,
        unlock_user: None,
        unlock_password: None,
    };
    let mut config = backend_config("zk", SystemConfig::Zookeeper(zookeeper.clone()));
    change(&mut config, &mut zookeeper);
    connect(&config, &zookeeper, clock())
}

pub(crate) fn unlocker(connect_string: &str) -> ZookeeperBackend {
    backend(connect_string, |config, zookeeper| {
        config.timeout = Duration::from_secs(10);
        zookeeper.unlock_user = Some("leasehold-unlock".to_owned());
    })
}

pub(crate) fn node(path: &str) -> (Source, Resource) {
    (Source::parse("node").unwrap(), path.into())
}

/// A persistent node and its parents.
pub(crate) async fn folder(client: &Client, path: &str) {
    let options = CreateMode::Persistent.with_acls(Acls::anyone_all());
    client.mkdir(path, &options).await.unwrap();
}

/// Joins a queue as clients do; `prefix` is the path up to the sequence. Returns the path of the new node.
pub(crate) async fn enqueue(client: &Client, prefix: &str, data: &str) -> (String, Stat) {
    let options = CreateMode::EphemeralSequential.with_acls(Acls::anyone_all());
    let (stat, sequence) = client.create(prefix, data.as_bytes(), &options).await.unwrap();
    (format!("{prefix}{sequence}"), stat)
}

/// A contender with a name of our choice: as after the counter wrapped.
pub(crate) async fn contender(client: &Client, path: &str, data: &str) -> Stat {
    let options = CreateMode::Ephemeral.with_acls(Acls::anyone_all());
    client.create(path, data.as_bytes(), &options).await.unwrap().0
}
