//! Scale: 100,000 contenders below 20,000 lock nodes, within the scan timeout and the configured requests per second.

use std::time::Duration;

use ::backends::{Backend, Batch, Budget, Sink};
use ::config::backend::SCAN_TIMEOUT_DEFAULT;
use futures::{StreamExt, TryStreamExt};
use zookeeper_client::{Acls, Client, CreateMode};

use super::watched_zookeeper::{backend, client, clock, folder, zookeeper};
use crate::support::watching::resident_bytes;

const NODES: usize = 20_000;
const CONTENDERS_PER_NODE: usize = 5;
const IN_FLIGHT: usize = 256;

/// Counts, and keeps nothing.
#[derive(Default)]
struct Counted {
    locks: usize,
    waiters: u64,
}

impl Sink for Counted {
    fn accept(&mut self, batch: Batch) {
        self.locks += batch.locks.len();
        let waiters = batch.locks.iter().filter_map(|lock| lock.waiter_count.known());
        self.waiters += waiters.map(|count| u64::from(*count)).sum::<u64>();
    }
}

async fn seed(client: &Client) {
    folder(client, "/locks").await;
    let lasting = CreateMode::Persistent.with_acls(Acls::anyone_all());
    let joining = CreateMode::EphemeralSequential.with_acls(Acls::anyone_all());
    let made = futures::stream::iter(0..NODES).map(|number| {
        let (lasting, joining) = (lasting.clone(), joining.clone());
        async move {
            let path = format!("/locks/tenant-{number:05}:billing-close");
            client.create(&path, b"", &lasting).await?;
            for place in 0..CONTENDERS_PER_NODE {
                let data = format!("worker-{number}-{place}");
                client
                    .create(&format!("{path}/lock-"), data.as_bytes(), &joining)
                    .await?;
            }
            Ok::<(), zookeeper_client::Error>(())
        }
    });
    made.buffer_unordered(IN_FLIGHT)
        .try_collect::<()>()
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: part of `make prove`"]
async fn a_hundred_thousand_contenders_are_read_in_one_scan() {
    // The first scan reads every contender, the next ones only the nodes and their holders.
    let zookeeper = zookeeper().await;
    let holder = client(&zookeeper.cluster()).await;
    seed(&holder).await;
    let watched = backend(&zookeeper.cluster(), |_, _| {});
    let before = resident_bytes();
    let mut scans_ms = Vec::new();
    for _ in 0..3 {
        let (mut counted, started) = (Counted::default(), clock().tick());
        let budget = Budget {
            time_max: SCAN_TIMEOUT_DEFAULT,
        };
        let pass = watched.observe(budget, &mut counted).await.unwrap();
        scans_ms.push(clock().tick().since(started));
        assert!(
            pass.sources[0].coverage.is_complete(),
            "{:?} after {scans_ms:?} ms",
            pass.sources
        );
        assert_eq!(counted.locks, NODES);
        assert_eq!(counted.waiters, (NODES * (CONTENDERS_PER_NODE - 1)) as u64);
    }
    let grown = resident_bytes().saturating_sub(before) / NODES as u64;
    println!(
        "ZooKeeper: {NODES} nodes, scans of {scans_ms:?} ms, {grown} bytes per lock resident in the adapter"
    );
    // 20,000 lists, 100,000 stats and 20,000 reads of data, at 10,000 per second.
    let requests = Duration::from_secs(13);
    assert!(
        scans_ms[0] >= i64::try_from(requests.as_millis()).unwrap(),
        "faster than configured: {scans_ms:?}"
    );
}
