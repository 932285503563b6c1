//! The demo's ZooKeeper: queues of ephemeral sequential nodes, as Curator makes them.
//!
//! A session that ends takes its nodes with it, so each turn has a session of its own.

use std::time::Duration;

use tokio::time::{sleep, timeout};
use zookeeper_client::{Acls, Client, CreateMode, Error};

use super::fault::WorkloadError;
use runtime::random;
use testkit::Zookeeper;

pub(super) const PATH: &str = "/locks";
/// The lock with a queue, its contenders, and a quiet one.
pub(super) const CONTENDED: &str = "/locks/warehouse/eu-west/shelf-plan";
pub(super) const CONTENDERS: [&str; 4] = ["planner-1", "planner-2", "planner-3", "planner-4"];
pub(super) const QUIET: (&str, &str) = ("/locks/search/shard-split", "splitter-1");
/// The lock that readers share while a writer waits.
pub(super) const SHARED: &str = "/locks/catalog/prices";
const SESSION: Duration = Duration::from_secs(15);
const PATIENCE: Duration = Duration::from_secs(5);
/// How often a contender looks whether it is its turn.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Name of a contender, up to its sequence.
#[derive(Debug, Clone, Copy)]
pub(super) enum Contender {
    Mutex,
    Reader,
    Writer,
}

impl Contender {
    const fn name(self) -> &'static str {
        match self {
            Self::Mutex => "lock-",
            Self::Reader => "__READ__",
            Self::Writer => "__WRIT__",
        }
    }
}

async fn connect(cluster: &str) -> Result<Client, WorkloadError> {
    let connect = Client::connector()
        .with_session_timeout(SESSION)
        .with_fail_eagerly()
        .connect(cluster);
    timeout(PATIENCE, connect)
        .await
        .map_err(|_| WorkloadError::LeaseGone)?
        .map_err(WorkloadError::from)
}

/// Joins the queue of `path`, holds the lock for a while, and leaves.
pub(super) async fn takes_turns(
    cluster: String,
    path: &'static str,
    owner: &'static str,
    contender: Contender,
    hold: Duration,
) -> Result<(), WorkloadError> {
    let client = connect(&cluster).await?;
    let lasting = CreateMode::Persistent.with_acls(Acls::anyone_all());
    client.mkdir(path, &lasting).await?;
    let prefix = format!("{path}/_c_{}-{}", random::id(), contender.name());
    let joining = CreateMode::EphemeralSequential.with_acls(Acls::anyone_all());
    let (_, sequence) = client.create(&prefix, owner.as_bytes(), &joining).await?;
    let mine = format!("{prefix}{sequence}");
    let sequence = sequence.to_string();
    while !is_next(&client, path, &sequence, contender).await? {
        sleep(LOOK_EVERY).await;
    }
    sleep(hold).await;
    match client.delete(&mine, None).await {
        // Unlocked by force.
        Ok(()) | Err(Error::NoNode) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Whether no contender has a lower sequence; for a reader, no writer.
async fn is_next(
    client: &Client,
    path: &str,
    sequence: &str,
    contender: Contender,
) -> Result<bool, WorkloadError> {
    let names = client.list_children(path).await?;
    let counts = |name: &&String| match contender {
        Contender::Reader => name.contains(Contender::Writer.name()),
        Contender::Mutex | Contender::Writer => true,
    };
    let before = |name: &String| {
        name.get(name.len().saturating_sub(sequence.len())..)
            .is_some_and(|it| it < sequence)
    };
    Ok(!names.iter().filter(counts).any(before))
}

/// Creates the path that the console reads, so that it exists from the start.
pub(super) async fn prepare(server: &Zookeeper) -> Result<(), WorkloadError> {
    let client = connect(&server.cluster()).await?;
    let lasting = CreateMode::Persistent.with_acls(Acls::anyone_all());
    client.mkdir(PATH, &lasting).await?;
    Ok(())
}
