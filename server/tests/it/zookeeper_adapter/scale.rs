//! Scale: 100,000 contenders below 20,000 lock nodes, within the scan timeout and the configured requests per second.

use ::backends::Budget;
use ::backends::zookeeper::ZookeeperBackend;
use ::config::backend::SCAN_TIMEOUT_DEFAULT;
use ::config::zookeeper::REQUESTS_PER_SECOND_DEFAULT;
use ::testkit::Zookeeper;
use futures::{StreamExt, TryStreamExt};
use zookeeper_client::{Acls, Client, CreateMode};

use super::watched_zookeeper::{backend, client, folder, zookeeper};
use crate::support::scale::{BYTES_PER_LOCK_MAX, ScanSize, heap_bytes, scan_size};
use crate::support::watching::clock;

const NODES: usize = 20_000;
const CONTENDERS_PER_NODE: usize = 5;
const WAITERS: usize = NODES * (CONTENDERS_PER_NODE - 1);
const IN_FLIGHT: usize = 256;
/// Packets of a scan that are no requests of it: pings of two sessions, and those that opened one.
const OTHER_PACKETS_MAX: u64 = 100;

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

/// A scan that takes no more of the ensemble than configured, as the server counts requests.
async fn paced_scan(zookeeper: &Zookeeper, watched: &ZookeeperBackend) -> ScanSize {
    let budget = Budget {
        time_max: SCAN_TIMEOUT_DEFAULT,
    };
    let before = zookeeper.packets_received().await.unwrap();
    let size = scan_size(watched, &clock(), budget).await;
    let requests = zookeeper.packets_received().await.unwrap() - before;
    // A scan may begin and end within a window of 10 ms.
    let took_ms = u64::try_from(size.took_ms).unwrap() + 20;
    let most = took_ms * u64::from(REQUESTS_PER_SECOND_DEFAULT) / 1_000 + OTHER_PACKETS_MAX;
    assert!(requests <= most, "{requests} requests, at most {most}: {size:?}");
    println!("{requests} requests, {size:?}");
    size
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: part of `make prove`"]
async fn a_hundred_thousand_contenders_are_read_in_one_scan() {
    // The first scan reads every contender, the next ones the nodes, their holders and the owners of some waiters, until the
    // owners of all are known.
    let zookeeper = zookeeper().await;
    let holder = client(&zookeeper.cluster()).await;
    seed(&holder).await;
    let watched = backend(&zookeeper.cluster(), |_, _| {});
    let before = heap_bytes();
    for scan in 1.. {
        let size = paced_scan(&zookeeper, &watched).await;
        assert_eq!((size.locks, size.waiters), (NODES, WAITERS));
        let kept = heap_bytes().saturating_sub(before) / NODES;
        println!("scan {scan}: {kept} bytes per lock on the heap of the adapter");
        if size.identified == WAITERS {
            assert!(kept <= BYTES_PER_LOCK_MAX, "{kept} bytes per lock");
            return;
        }
    }
}
