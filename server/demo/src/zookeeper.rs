//! The demo's ZooKeeper: queues of ephemeral sequential nodes, as Curator makes them.
//!
//! The nodes of a session are deleted with it, so each holding uses its own session.

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
const TIMEOUT: Duration = Duration::from_secs(5);
/// Interval at which a contender checks its position in the queue.
const POLL_EVERY: Duration = Duration::from_millis(250);

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
    timeout(TIMEOUT, connect)
        .await
        .map_err(|_| WorkloadError::LeaseGone)?
        .map_err(WorkloadError::from)
}

/// Joins the queue of `path`, holds the lock for a while, and leaves.
pub(super) async fn wait_and_hold(
    cluster: String,
    path: &'static str,
    owner: &'static str,
    contender: Contender,
    hold: Duration,
) -> Result<(), WorkloadError> {
    let client = connect(&cluster).await?;
    let persistent = CreateMode::Persistent.with_acls(Acls::anyone_all());
    client.mkdir(path, &persistent).await?;
    let prefix = format!("{path}/_c_{}-{}", random::id(), contender.name());
    let ephemeral = CreateMode::EphemeralSequential.with_acls(Acls::anyone_all());
    let (_, sequence) = client.create(&prefix, owner.as_bytes(), &ephemeral).await?;
    let own_node = format!("{prefix}{sequence}");
    let sequence = sequence.to_string();
    while !is_next(&client, path, &sequence, contender).await? {
        sleep(POLL_EVERY).await;
    }
    sleep(hold).await;
    match client.delete(&own_node, None).await {
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
    let conflicts = |name: &&String| match contender {
        Contender::Reader => name.contains(Contender::Writer.name()),
        Contender::Mutex | Contender::Writer => true,
    };
    let is_ahead = |name: &String| {
        name.get(name.len().saturating_sub(sequence.len())..)
            .is_some_and(|it| it < sequence)
    };
    Ok(!names.iter().filter(conflicts).any(is_ahead))
}

/// Creates the path that the console reads, so that it exists from the start.
pub(super) async fn prepare(server: &Zookeeper) -> Result<(), WorkloadError> {
    let client = connect(&server.cluster()).await?;
    let persistent = CreateMode::Persistent.with_acls(Acls::anyone_all());
    client.mkdir(PATH, &persistent).await?;
    Ok(())
}
