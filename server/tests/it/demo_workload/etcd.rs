//! `etcd-coord`: leased keys, a contended mutex, an election, a key without a lease.

use ::config::SystemConfig;
use ::demo::Demo;
use etcd_client::{Client, GetOptions, KeyValue, SortOrder, SortTarget};

use testkit::within;

use super::backends::{Sample, comes_and_goes, falls_silent, renews};
use super::{MINUTE, backend};

pub(super) async fn shows_all(demo: &Demo) {
    let SystemConfig::Etcd(config) = backend(demo, "etcd-coord") else {
        panic!("not etcd")
    };
    let etcd = Client::connect(&config.endpoints, None).await.unwrap();
    tokio::join!(
        renews("a leased key", || sample(&etcd, "/locks/deploy/checkout")),
        renews("the leader", || sample(&etcd, "/locks/scheduler/leader/")),
        renews("the mutex's holder", || sample(
            &etcd,
            "/locks/tenant_311:statement-run:2026-04/"
        )),
        falls_silent("a shard move", || sample(&etcd, "/locks/tenant_311:shard-move:4")),
        comes_and_goes("a drain", async || {
            let keys = under(&etcd, "/locks/node/drain/").await;
            keys.iter().map(|key| key.key_str().unwrap().to_owned()).collect()
        }),
        runs_out(&etcd),
        queues(&etcd),
    );
    let keys = under(&etcd, &config.prefixes[0]).await.len();
    assert!((18..=40).contains(&keys), "{keys} keys");
}

/// Oldest first.
async fn under(etcd: &Client, prefix: &str) -> Vec<KeyValue> {
    let order = GetOptions::new()
        .with_prefix()
        .with_sort(SortTarget::Create, SortOrder::Ascend);
    etcd.clone().get(prefix, Some(order)).await.unwrap().take_kvs()
}

/// The oldest key under the prefix.
async fn sample(etcd: &Client, prefix: &str) -> Option<Sample> {
    let lease = under(etcd, prefix).await.first()?.lease();
    let left = etcd.clone().lease_time_to_live(lease, None).await.unwrap().ttl();
    Some(Sample {
        identity: format!("{lease:x}"),
        remaining_ms: left * 1_000,
    })
}

async fn runs_out(etcd: &Client) {
    let keys = [
        "certs/renew/api",
        "certs/renew/shop",
        "deploy/search",
        "tenant_408:rekey",
    ];
    within(
        MINUTE,
        "a key that is never renewed is near its end",
        async || {
            for key in keys {
                let left = sample(etcd, &format!("/locks/{key}")).await;
                if left.is_some_and(|sample| (0..5_000).contains(&sample.remaining_ms)) {
                    return true;
                }
            }
            false
        },
    )
    .await;
}

/// A holder with three waiters, a leader with one candidate, and a key without a lease.
async fn queues(etcd: &Client) {
    within(MINUTE, "a mutex with a holder and three waiters", async || {
        let keys = under(etcd, "/locks/tenant_311:statement-run:2026-04/").await;
        let by_lease = keys
            .iter()
            .all(|key| key.key().ends_with(format!("/{:x}", key.lease()).as_bytes()));
        keys.len() == 4 && by_lease
    })
    .await;
    within(
        MINUTE,
        "an election with a candidate behind the leader",
        async || {
            let keys = under(etcd, "/locks/scheduler/leader/").await;
            keys.len() == 2 && keys.iter().all(|key| key.value().starts_with(b"scheduler-"))
        },
    )
    .await;
    within(MINUTE, "a key without a lease", async || {
        let keys = under(etcd, "/locks/warehouse/us-east/stock-count").await;
        keys.len() == 1 && keys[0].lease() == 0
    })
    .await;
}
