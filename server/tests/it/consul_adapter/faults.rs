//! Agents that are down, hang, or are another kind of server.

use std::time::Duration;

use ::backends::{Backend, BackendError};
use ::testkit::{EtcdOptions, Throwaway};

use super::watched_consul::{WatchedConsul, backend, kv};
use crate::support::proxy::{Link, Proxy};
use crate::support::watching::{refresh, scan};

#[tokio::test]
async fn the_adapter_recovers_when_the_agent_returns() {
    // Every question names the refusal; no question needs the adapter rebuilt.
    let watched = WatchedConsul::start().await;
    watched.consul.stop().await.unwrap();
    let backend = backend(&watched.consul.url(), |_, _| {});
    let (source, resource) = kv("locks/a");
    for error in [
        scan(&backend).await.unwrap_err(),
        backend.probe().await.unwrap_err(),
        refresh(&backend, "kv", &["locks/a"]).await.unwrap_err(),
        backend.inspect(&source, &resource).await.unwrap_err(),
    ] {
        assert!(
            matches!(&error, BackendError::Unreachable { detail } if detail.contains("refused")),
            "{error:?}"
        );
    }
    watched.consul.restart().await.unwrap();
    assert!(scan(&backend).await.unwrap().is_whole());
}

#[tokio::test]
async fn a_silent_agent_costs_one_timeout() {
    // A black hole before and after the first answer.
    let watched = WatchedConsul::start().await;
    let proxy = Proxy::start(watched.consul.port()).await;
    let backend = backend(&format!("http://127.0.0.1:{}", proxy.port()), |config, _| {
        config.timeout = Duration::from_millis(700);
    });
    for is_warm in [false, true] {
        if is_warm {
            proxy.set(Link::Pass).await;
            scan(&backend).await.unwrap();
        }
        proxy.set(Link::Blackhole).await;
        let error = scan(&backend).await.unwrap_err();
        assert!(
            matches!(error, BackendError::NoAnswer { after_ms: 700 }),
            "{error:?}"
        );
    }
}

#[tokio::test]
async fn another_kind_of_server_is_named() {
    // An etcd on the port: it speaks HTTP as well, and answers "not found" to everything of Consul's.
    let etcd = Throwaway::etcd(EtcdOptions {
        fast: true,
        ..EtcdOptions::default()
    })
    .await
    .unwrap();
    let error = scan(&backend(&etcd.endpoint(), |_, _| {})).await.unwrap_err();
    assert!(
        matches!(&error, BackendError::Protocol { detail } if detail.contains("this is not Consul")),
        "{error:?}"
    );
    assert!(error.remedy().contains("kind"), "{error:?}");
}
