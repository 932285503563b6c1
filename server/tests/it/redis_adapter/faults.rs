//! Servers that refuse, hang, restart, load or copy, and links that break in the middle.

use std::time::Duration;

use ::backends::{Backend, BackendError};
use ::config::redis::RedisWake;
use domain::force_release::Release;
use domain::observation::Coverage;

use super::{Setup, driver, key, observe, run, start, start_with, try_observe};
use crate::support::proxy::{Link, Proxy};
use crate::support::unlocking::unlock;
use testkit::{eventually, free_port};

#[tokio::test]
async fn adapter_recovers_when_an_unreachable_server_returns() {
    // Connecting is lazy: the adapter exists before the server answers.
    let redis = start().await;
    redis.stop().await.unwrap();
    let backend = Setup::new(&redis.url()).backend();
    let error = try_observe(&backend).await.map(drop).unwrap_err();
    assert!(matches!(error, BackendError::Unreachable { .. }), "{error:?}");
    assert!(matches!(
        backend.probe().await,
        Err(BackendError::Unreachable { .. })
    ));
    redis.restart().await.unwrap();
    assert_eq!(observe(&backend).await.1.locks.len(), 0);
}

#[tokio::test]
async fn adapter_answers_the_first_request_after_each_of_ten_restarts() {
    // The trap of clients that never reconnect, and of those that fail once after each restart.
    let redis = start_with(|options| options.append_only = true).await;
    run(&mut driver(&redis).await, &["SET", "lock:a", "x"]).await;
    let backend = Setup::new(&redis.url()).backend();
    for round in 0..10 {
        let (_, observed) = observe(&backend).await;
        assert!(observed.has("lock:a"), "round {round}");
        assert!(
            backend
                .inspect(&key(), &"lock:a".into())
                .await
                .unwrap()
                .lock
                .is_some()
        );
        if round % 2 == 0 {
            redis.kill().await.unwrap()
        } else {
            redis.stop().await.unwrap()
        }
        assert!(matches!(
            try_observe(&backend).await.map(drop),
            Err(BackendError::Unreachable { .. })
        ));
        redis.restart().await.unwrap();
        assert!(try_observe(&backend).await.is_ok(), "round {round}");
        // Restarted between scans: the pooled connection is dead, unnoticed.
        redis.restart().await.unwrap();
        assert!(backend.probe().await.is_ok(), "round {round}");
    }
}

#[tokio::test]
async fn a_hanging_server_times_out_and_is_found_again() {
    // Paused: the kernel still accepts, nothing answers. Every call is bounded.
    let redis = start().await;
    run(&mut driver(&redis).await, &["SET", "lock:a", "x"]).await;
    let backend = Setup::new(&redis.url())
        .timeout(Duration::from_millis(300))
        .backend();
    observe(&backend).await;
    redis.pause().await.unwrap();
    let bounded = Duration::from_secs(5);
    for _ in 0..2 {
        let pass = tokio::time::timeout(bounded, try_observe(&backend))
            .await
            .expect("hung");
        assert_eq!(
            pass.map(drop).unwrap_err(),
            BackendError::NoAnswer { after_ms: 300 }
        );
        let probe = tokio::time::timeout(bounded, backend.probe())
            .await
            .expect("hung");
        assert!(matches!(probe, Err(BackendError::NoAnswer { .. })), "{probe:?}");
        let resource = "lock:a".into();
        let source = key();
        let look = tokio::time::timeout(bounded, backend.inspect(&source, &resource))
            .await
            .expect("hung");
        assert!(matches!(look, Err(BackendError::NoAnswer { .. })), "{look:?}");
    }
    redis.resume().await.unwrap();
    eventually("the adapter answers again", async || {
        try_observe(&backend).await.is_ok()
    })
    .await;
}

#[tokio::test]
async fn a_link_that_breaks_during_a_scan_fails_it_and_recovers() {
    // Through the fault proxy: a half-open link looks alive from here.
    let redis = start().await;
    run(&mut driver(&redis).await, &["SET", "lock:a", "x"]).await;
    let proxy = Proxy::start(redis.port()).await;
    let url = format!("redis://127.0.0.1:{}/", proxy.port());
    let backend = Setup::new(&url).timeout(Duration::from_millis(300)).backend();
    observe(&backend).await;
    proxy.set(Link::OnlyToServer).await;
    assert_eq!(
        try_observe(&backend).await.map(drop).unwrap_err(),
        BackendError::NoAnswer { after_ms: 300 }
    );
    proxy.set(Link::Cut).await;
    assert!(matches!(
        try_observe(&backend).await.map(drop),
        Err(BackendError::Unreachable { .. })
    ));
    proxy.set(Link::Pass).await;
    assert!(observe(&backend).await.1.has("lock:a"));
}

#[tokio::test]
async fn a_loading_server_is_not_empty() {
    // A replica that takes its first copy, slowed down to seconds (key-load-delay, in microseconds per key).
    let master = start().await;
    run(
        &mut driver(&master).await,
        &[
            "EVAL",
            "for i=1,3000 do redis.call('SET','lock:'..i,'x') end",
            "0",
        ],
    )
    .await;
    let copying = start().await;
    let mut driver = driver(&copying).await;
    for setting in [
        ["key-load-delay", "1000"],
        ["loading-process-events-interval-bytes", "1024"],
    ] {
        run(&mut driver, &["CONFIG", "SET", setting[0], setting[1]]).await;
    }
    let backend = Setup::new(&copying.url()).backend();
    observe(&backend).await;
    run(
        &mut driver,
        &["REPLICAOF", "127.0.0.1", &master.port().to_string()],
    )
    .await;
    eventually("observed loading", async || {
        matches!(try_observe(&backend).await, Err(BackendError::Unavailable { detail, remedy })
            if detail.contains("LOADING") && remedy.contains("Wait"))
    })
    .await;
    let version = backend.probe().await.unwrap().version;
    assert!(version.known().unwrap().contains("loading"), "{version:?}");
    eventually("loaded", async || {
        try_observe(&backend)
            .await
            .is_ok_and(|(_, observed)| observed.locks.len() == 3_000)
    })
    .await;
}

#[tokio::test]
async fn a_replica_is_reported_and_shows_no_expired_key() {
    // The master hangs, so the replica gets no DEL for the key that expires meanwhile: it still stores it.
    let master = start_with(|options| options.config = vec!["repl-diskless-sync-delay 0".to_owned()]).await;
    let replica =
        start_with(|options| options.config = vec![format!("replicaof 127.0.0.1 {}", master.port())]).await;
    let mut driver_of_master = driver(&master).await;
    run(&mut driver_of_master, &["SET", "lock:stays", "x"]).await;
    let backend = Setup::new(&replica.url()).backend();
    eventually("copied", async || observe(&backend).await.1.has("lock:stays")).await;
    run(&mut driver_of_master, &["SET", "lock:brief", "x", "PX", "4000"]).await;
    eventually("copied too", async || observe(&backend).await.1.has("lock:brief")).await;
    master.pause().await.unwrap();
    eventually("expired", async || !observe(&backend).await.1.has("lock:brief")).await;
    let left: i64 = redis::cmd("DBSIZE")
        .query_async(&mut driver(&replica).await)
        .await
        .unwrap();
    assert_eq!(left, 2, "the expired key is still on the replica");
    let (pass, observed) = observe(&backend).await;
    assert!(observed.has("lock:stays"));
    for source in &pass.sources {
        assert_eq!(source.coverage, Coverage::Complete);
        assert!(
            source
                .fault
                .as_deref()
                .is_some_and(|fault| fault.contains("replica of 127.0.0.1")),
            "{source:?}"
        );
    }
    assert!(
        backend
            .probe()
            .await
            .unwrap()
            .version
            .known()
            .unwrap()
            .contains("replica of")
    );
}

#[tokio::test]
async fn a_node_of_a_cluster_is_refused_with_the_reason() {
    // It would show its own share of the locks as if they were all.
    let redis = start_with(|options| options.config = vec!["cluster-enabled yes".to_owned()]).await;
    let backend = Setup::new(&redis.url()).backend();
    let error = try_observe(&backend).await.map(drop).unwrap_err();
    assert!(
        matches!(&error, BackendError::Misconfigured { detail, remedy }
            if detail.contains("cluster") && remedy.contains("mode = \"cluster\"")),
        "{error:?}"
    );
}

#[tokio::test]
async fn an_unlock_that_the_server_cannot_serve_names_the_cause() {
    // At its memory limit, where the signal for walrus' waiters needs memory; then as a replica.
    let redis = start().await;
    let mut driver = driver(&redis).await;
    run(&mut driver, &["SET", "lock:orders", "x"]).await;
    let mut setup = Setup::new(&redis.url()).unlocking(&redis.url());
    setup.redis.wake = RedisWake::Walrus;
    let backend = setup.backend();
    run(&mut driver, &["CONFIG", "SET", "maxmemory", "1"]).await;
    let answer = unlock(&backend, &key(), &"lock:orders".into()).await;
    assert!(
        matches!(&answer, Release::Refused { why, remedy } if why.starts_with("OOM ") && remedy.contains("maxmemory")),
        "{answer:?}"
    );
    run(&mut driver, &["CONFIG", "SET", "maxmemory", "0"]).await;
    let master = free_port().unwrap().to_string();
    run(&mut driver, &["REPLICAOF", "127.0.0.1", &master]).await;
    let answer = unlock(&backend, &key(), &"lock:orders".into()).await;
    assert!(
        matches!(&answer, Release::Refused { why, remedy } if why.starts_with("READONLY ") && remedy.contains("master")),
        "{answer:?}"
    );
}
