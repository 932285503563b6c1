//! Servers that are down, hang, are of another kind, or are only some of several.

use std::time::Duration;

use ::backends::{Backend, BackendError};
use ::testkit::{RedisOptions, Throwaway, free_port};
use domain::observation::{Coverage, Inspection};
use domain::reported::Reported;

use super::watched_zookeeper::{WatchedZookeeper, backend, enqueue, folder, node};
use crate::support::proxy::{Link, Proxy};
use crate::support::watching::{refresh, scan, scan_within};

#[tokio::test]
async fn the_adapter_recovers_when_the_server_returns() {
    // Made before the server runs; every question names the refusal; no question needs the adapter rebuilt.
    let watched = WatchedZookeeper::start().await;
    watched.zookeeper.stop().await.unwrap();
    let backend = backend(&watched.zookeeper.cluster(), |_, _| {});
    let (source, resource) = node("/locks/a");
    for error in [
        scan(&backend).await.unwrap_err(),
        backend.probe().await.unwrap_err(),
        refresh(&backend, "node", &["/locks/a"]).await.unwrap_err(),
        backend.inspect(&source, &resource).await.unwrap_err(),
    ] {
        assert!(
            matches!(&error, BackendError::Unreachable { detail } if detail.contains("refused")),
            "{error:?}"
        );
    }
    watched.zookeeper.restart().await.unwrap();
    scan(&backend).await.unwrap();
    assert_eq!(
        backend.inspect(&source, &resource).await.unwrap(),
        Inspection::default()
    );
}

#[tokio::test]
async fn a_silent_server_costs_one_timeout() {
    // A black hole before and after the first answer; the next server of the list is used instead.
    let watched = WatchedZookeeper::start().await;
    folder(&watched.client, "/locks/job").await;
    enqueue(&watched.client, "/locks/job/lock-", "w-1").await;
    let proxy = Proxy::start(watched.zookeeper.port()).await;
    let silent = format!("127.0.0.1:{}", proxy.port());
    let alone = backend(&silent, |config, _| config.timeout = Duration::from_millis(700));
    for is_warm in [false, true] {
        if is_warm {
            proxy.set(Link::Pass).await;
            scan(&alone).await.unwrap();
        }
        proxy.set(Link::Blackhole).await;
        let error = scan(&alone).await.unwrap_err();
        assert!(
            matches!(error, BackendError::NoAnswer { after_ms: 700 }),
            "{error:?}"
        );
    }
    let dead = format!("127.0.0.1:{}", free_port().unwrap());
    let both = backend(&format!("{dead},{}", watched.zookeeper.cluster()), |_, _| {});
    assert_eq!(scan(&both).await.unwrap().names(), ["/locks/job"]);
    proxy.set(Link::Pass).await;
    assert_eq!(scan(&alone).await.unwrap().names(), ["/locks/job"]);
}

#[tokio::test]
async fn another_kind_of_server_is_named() {
    // A Redis on the port.
    let redis = Throwaway::redis(RedisOptions::default()).await.unwrap();
    let backend = backend(&format!("127.0.0.1:{}", redis.port()), |_, _| {});
    let error = scan(&backend).await.unwrap_err();
    assert!(
        matches!(&error, BackendError::Protocol { detail } if detail.contains("another kind of server")),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_scan_without_time_is_partial() {
    // Few requests per second, and little time for many nodes.
    let watched = WatchedZookeeper::start().await;
    for number in 0..60 {
        let path = format!("/locks/job-{number}");
        folder(&watched.client, &path).await;
        enqueue(&watched.client, &format!("{path}/lock-"), "w-1").await;
    }
    let slow = backend(&watched.zookeeper.cluster(), |_, zookeeper| {
        zookeeper.requests_per_second = 100;
    });
    let seen = scan_within(&slow, Duration::from_millis(500)).await.unwrap();
    let Coverage::Partial { seen: read, of, why } = &seen.pass.as_ref().unwrap().sources[0].coverage else {
        panic!("{:?}", seen.pass)
    };
    assert!(*read > 0 && of.unwrap() > *read, "{read} of {of:?}");
    assert!(why.contains("scan_timeout"), "{why}");
    let all = scan(&backend(&watched.zookeeper.cluster(), |_, _| {}))
        .await
        .unwrap();
    assert_eq!(all.locks.len(), 60);
}

#[tokio::test]
async fn the_version_is_that_of_the_server() {
    // From the command `srvr`, with its part in the ensemble.
    let watched = WatchedZookeeper::start().await;
    folder(&watched.client, "/locks").await;
    let Reported::Value(version) = watched.backend.probe().await.unwrap().version else {
        panic!("the throwaway server allows the command")
    };
    assert!(
        version.starts_with("3.") && version.ends_with("(standalone)"),
        "{version}"
    );
}
