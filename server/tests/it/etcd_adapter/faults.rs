//! Servers that are down, hang, restart, or are only some of several.

use std::time::Duration;

use ::backends::{Backend, BackendError};
use ::testkit::{RedisOptions, Throwaway, free_port};
use domain::observation::Inspection;
use domain::reported::Reported;
use runtime::clock::Clock;

use super::watched_etcd::{WatchedEtcd, backend, refreshed, seen, source_of, try_backend};
use crate::support::proxy::{Link, Proxy};

#[tokio::test]
async fn the_adapter_recovers_when_the_server_returns() {
    // Made before the server runs; every question names the refusal; no question needs the adapter rebuilt.
    let watched = WatchedEtcd::start().await;
    watched.etcd.stop().await.unwrap();
    let backend = backend(&[watched.etcd.endpoint()], &["/locks/"], |_| {});
    let source = source_of("key");
    for error in [
        seen(&backend).await.unwrap_err(),
        backend.probe().await.unwrap_err(),
        refreshed(&backend, &[("key", "/locks/a")]).await.unwrap_err(),
        backend.inspect(&source, &"/locks/a".into()).await.unwrap_err(),
    ] {
        assert!(
            matches!(&error, BackendError::Unreachable { detail } if detail.contains("refused")),
            "{error:?}"
        );
    }
    watched.etcd.restart().await.unwrap();
    assert!(seen(&backend).await.unwrap().whole());
    assert_eq!(
        backend.inspect(&source, &"/locks/a".into()).await.unwrap(),
        Inspection::default()
    );
}

#[tokio::test]
async fn a_black_hole_costs_one_timeout() {
    // The connection opens and no data comes back, as behind a firewall that drops packets.
    let watched = WatchedEtcd::start().await;
    let proxy = Proxy::start(watched.etcd.port()).await;
    let endpoint = format!("http://127.0.0.1:{}", proxy.port());
    let backend = backend(&[endpoint], &["/locks/"], |config| {
        config.timeout = Duration::from_millis(700)
    });
    for warm in [false, true] {
        if warm {
            proxy.set(Link::Pass).await;
            seen(&backend).await.unwrap();
        }
        proxy.set(Link::Blackhole).await;
        let error = seen(&backend).await.unwrap_err();
        assert!(
            matches!(error, BackendError::NoAnswer { after_ms: 700 }),
            "{error:?}"
        );
        assert!(matches!(
            backend.probe().await.unwrap_err(),
            BackendError::NoAnswer { .. }
        ));
    }
    proxy.set(Link::Pass).await;
    assert!(seen(&backend).await.unwrap().whole());
}

#[tokio::test]
async fn a_paused_server_times_out_and_recovers() {
    // SIGSTOP: the kernel still accepts connections.
    let mut watched = WatchedEtcd::start().await;
    let backend = backend(&[watched.etcd.endpoint()], &["/locks/"], |config| {
        config.timeout = Duration::from_millis(500)
    });
    watched.put("/locks/a", "o", 0).await;
    assert_eq!(seen(&backend).await.unwrap().locks.len(), 1);
    watched.etcd.pause().await.unwrap();
    let error = seen(&backend).await.unwrap_err();
    watched.etcd.resume().await.unwrap();
    assert!(matches!(error, BackendError::NoAnswer { .. }), "{error:?}");
    assert_eq!(seen(&backend).await.unwrap().locks.len(), 1);
}

#[tokio::test]
async fn a_dead_or_silent_endpoint_is_skipped() {
    // First a closed port, then an endpoint that never answers, then the real one; and the reverse, when the endpoint
    // in use stops answering.
    let mut watched = WatchedEtcd::start().await;
    watched.put("/locks/a", "o", 0).await;
    let proxy = Proxy::start(watched.etcd.port()).await;
    let dead = format!("http://127.0.0.1:{}", free_port().unwrap());
    let silent = format!("http://127.0.0.1:{}", proxy.port());
    proxy.set(Link::Blackhole).await;
    let timeout = |config: &mut config::BackendConfig| config.timeout = Duration::from_millis(1_500);
    let first = backend(
        &[dead.clone(), silent.clone(), watched.etcd.endpoint()],
        &["/locks/"],
        timeout,
    );
    assert_eq!(seen(&first).await.unwrap().locks.len(), 1);
    let clock = Clock::start();
    assert_eq!(seen(&first).await.unwrap().locks.len(), 1);
    assert!(
        clock.tick().0 < 1_000,
        "the good endpoint is kept: {:?}",
        clock.tick()
    );
    proxy.set(Link::Pass).await;
    let second = backend(&[silent, watched.etcd.endpoint()], &["/locks/"], timeout);
    assert_eq!(seen(&second).await.unwrap().locks.len(), 1);
    proxy.set(Link::Blackhole).await;
    assert_eq!(seen(&second).await.unwrap().locks.len(), 1);
}

#[tokio::test]
async fn address_errors_contain_no_secret() {
    // No URL, another scheme, TLS towards a plain port, another protocol; a password in the URL shows nowhere.
    let watched = WatchedEtcd::start().await;
    for endpoint in ["", "redis://h:1", "http://", "http://u:hunter2@h:notaport"] {
        let error = try_backend(&[endpoint.to_owned()], &["/locks/"], |_| {})
            .err()
            .unwrap();
        assert!(matches!(error, BackendError::Misconfigured { .. }), "{error:?}");
        assert!(!format!("{error:?}").contains("hunter2"));
    }
    assert!(try_backend(&[], &["/locks/"], |_| {}).is_err());
    assert!(try_backend(&[watched.etcd.endpoint()], &[], |_| {}).is_err());
    let plain = watched.etcd.endpoint();
    assert!(
        try_backend(
            &[plain.clone(), plain.replace("http", "https")],
            &["/locks/"],
            |_| {}
        )
        .is_err()
    );
    let tls = backend(&[plain.replace("http://", "https://")], &["/locks/"], |_| {});
    let error = seen(&tls).await.unwrap_err();
    assert!(matches!(error, BackendError::Unreachable { .. }), "{error:?}");
    let redis = Throwaway::redis(RedisOptions::default()).await.unwrap();
    let other = format!("http://leasehold:hunter2@127.0.0.1:{}", redis.port());
    let other = backend(&[other], &["/locks/"], |config| {
        config.timeout = Duration::from_secs(1)
    });
    let error = seen(&other).await.unwrap_err();
    assert!(!format!("{error:?} {}", error.remedy()).contains("hunter2"));
    assert!(
        !other.address().contains("hunter2") && !other.address().contains("leasehold@"),
        "{}",
        other.address()
    );
}

#[tokio::test]
async fn the_probe_reports_version_member_and_role() {
    // The version that Debian's etcd reports.
    let watched = WatchedEtcd::start().await;
    let probe = watched.backend.probe().await.unwrap();
    let Reported::Value(version) = probe.version else {
        panic!("{probe:?}")
    };
    assert!(
        version.starts_with("3.") && version.contains("leader, term"),
        "{version}"
    );
    let names: Vec<String> = watched
        .backend
        .capabilities()
        .into_iter()
        .map(|capability| capability.name)
        .collect();
    assert_eq!(names, ["watch", "waiters", "fencing", "ttl", "release", "clock"]);
}
