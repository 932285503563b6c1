//! Servers that refuse, hang, restart, load or copy, and links that break in the middle.

use std::time::Duration;

use domain::observation::Coverage;
use leasehold::backends::{Backend, BackendError};

use super::{Setup, driver, key, observe, run, start, start_with, try_observe};
use crate::support::proxy::{Link, Proxy};
use crate::support::eventually::eventually;

#[tokio::test]
async fn a_server_that_is_down_is_unreachable_until_it_comes_up_and_the_adapter_needs_no_rebuilding() {
    // Connecting is lazy: the adapter exists before the server answers.
    let redis = start().await;
    redis.stop().await.unwrap();
    let backend = Setup::of(&redis.url()).backend();
    let error = try_observe(&backend).await.map(drop).unwrap_err();
    assert!(matches!(error, BackendError::Unreachable { .. }), "{error:?}");
    assert!(matches!(backend.probe().await, Err(BackendError::Unreachable { .. })));
    redis.restart().await.unwrap();
    assert_eq!(observe(&backend).await.1.locks.len(), 0);
}

#[tokio::test]
async fn ten_restarts_are_survived_by_one_adapter_and_the_first_question_after_each_is_answered() {
    // The trap of clients that never reconnect, and of those that fail once after each restart.
    let redis = start_with(|options| options.append_only = true).await;
    run(&mut driver(&redis).await, &["SET", "lock:a", "x"]).await;
    let backend = Setup::of(&redis.url()).backend();
    for round in 0..10 {
        let (_, seen) = observe(&backend).await;
        assert!(seen.has("lock:a"), "round {round}");
        assert!(backend.inspect(&key(), &"lock:a".into()).await.unwrap().lock.is_some());
        if round % 2 == 0 { redis.kill().await.unwrap() } else { redis.stop().await.unwrap() }
        assert!(matches!(try_observe(&backend).await.map(drop), Err(BackendError::Unreachable { .. })));
        redis.restart().await.unwrap();
        assert!(try_observe(&backend).await.is_ok(), "round {round}");
        // Restarted while nobody asked: the kept connection is dead, and nobody notices.
        redis.restart().await.unwrap();
        assert!(backend.probe().await.is_ok(), "round {round}");
    }
}

#[tokio::test]
async fn a_server_that_hangs_is_given_up_after_the_timeout_and_found_again() {
    // Paused: the kernel still accepts, nothing answers. Every question of the port is bounded.
    let redis = start().await;
    run(&mut driver(&redis).await, &["SET", "lock:a", "x"]).await;
    let backend = Setup::of(&redis.url()).timeout(Duration::from_millis(300)).backend();
    observe(&backend).await;
    redis.pause().await.unwrap();
    let bounded = Duration::from_secs(5);
    for _ in 0..2 {
        let pass = tokio::time::timeout(bounded, try_observe(&backend)).await.expect("hung");
        assert_eq!(pass.map(drop).unwrap_err(), BackendError::NoAnswer { after_ms: 300 });
        let probe = tokio::time::timeout(bounded, backend.probe()).await.expect("hung");
        assert!(matches!(probe, Err(BackendError::NoAnswer { .. })), "{probe:?}");
        let resource = "lock:a".into();
        let source = key();
        let look = tokio::time::timeout(bounded, backend.inspect(&source, &resource)).await.expect("hung");
        assert!(matches!(look, Err(BackendError::NoAnswer { .. })), "{look:?}");
    }
    redis.resume().await.unwrap();
    eventually("the adapter answers again", async || try_observe(&backend).await.is_ok()).await;
}

#[tokio::test]
async fn a_link_that_swallows_or_cuts_in_the_middle_fails_the_pass_and_heals() {
    // Through the fault proxy: a half-open link looks alive from here.
    let redis = start().await;
    run(&mut driver(&redis).await, &["SET", "lock:a", "x"]).await;
    let proxy = Proxy::start(redis.port()).await;
    let url = format!("redis://127.0.0.1:{}/", proxy.port());
    let backend = Setup::of(&url).timeout(Duration::from_millis(300)).backend();
    observe(&backend).await;
    proxy.set(Link::OnlyToServer).await;
    assert_eq!(try_observe(&backend).await.map(drop).unwrap_err(), BackendError::NoAnswer { after_ms: 300 });
    proxy.set(Link::Cut).await;
    assert!(matches!(try_observe(&backend).await.map(drop), Err(BackendError::Unreachable { .. })));
    proxy.set(Link::Pass).await;
    assert!(observe(&backend).await.1.has("lock:a"));
}

#[tokio::test]
async fn a_server_that_is_loading_is_not_an_empty_one() {
    // Its data set takes seconds to load (key-load-delay, in microseconds); the throwaway waits for it, we do not.
    let redis = start_with(|options| {
        options.append_only = true;
        options.config = vec!["aof-use-rdb-preamble yes".to_owned(), "loading-process-events-interval-bytes 1024".to_owned()];
    })
    .await;
    let mut connection = driver(&redis).await;
    run(&mut connection, &["EVAL", "for i=1,3000 do redis.call('SET','lock:'..i,'x') end", "0"]).await;
    run(&mut connection, &["CONFIG", "SET", "key-load-delay", "1000"]).await;
    let backend = Setup::of(&redis.url()).backend();
    observe(&backend).await;
    let mut other = driver(&redis).await;
    let reload = async {
        // DEBUG is off by default from a socket; LOADING comes the same way from a replica's full copy.
        let _: redis::RedisResult<()> = redis::cmd("DEBUG").arg("RELOAD").query_async(&mut other).await;
    };
    let mut loading = None;
    let asking = async {
        for _ in 0..2_000 {
            match try_observe(&backend).await {
                Err(BackendError::Unreachable { detail }) if detail.contains("LOADING") => {
                    loading = Some(backend.probe().await.unwrap().version);
                    break;
                }
                _ => tokio::task::yield_now().await,
            }
        }
    };
    tokio::join!(reload, asking);
    let version = loading.expect("never seen loading");
    assert!(version.known().unwrap().contains("loading"), "{version:?}");
}

#[tokio::test]
async fn a_replica_says_that_it_is_one_and_shows_no_expired_key_as_held() {
    // The master hangs, so nobody tells the replica to delete the key that expires meanwhile: it still lies there.
    let master = start().await;
    let replica =
        start_with(|options| options.config = vec![format!("replicaof 127.0.0.1 {}", master.port())]).await;
    run(&mut driver(&master).await, &["SET", "lock:stays", "x"]).await;
    run(&mut driver(&master).await, &["SET", "lock:brief", "x", "PX", "1500"]).await;
    let backend = Setup::of(&replica.url()).backend();
    eventually("copied", async || observe(&backend).await.1.has("lock:brief")).await;
    master.pause().await.unwrap();
    eventually("expired", async || !observe(&backend).await.1.has("lock:brief")).await;
    let left: i64 = redis::cmd("DBSIZE").query_async(&mut driver(&replica).await).await.unwrap();
    assert_eq!(left, 2, "the expired key is still on the replica");
    let (pass, seen) = observe(&backend).await;
    assert!(seen.has("lock:stays"));
    for source in &pass.sources {
        assert_eq!(source.coverage, Coverage::Complete);
        assert!(source.fault.as_deref().is_some_and(|fault| fault.contains("replica of 127.0.0.1")), "{source:?}");
    }
    assert!(backend.probe().await.unwrap().version.known().unwrap().contains("replica of"));
}

#[tokio::test]
async fn a_node_of_a_cluster_is_refused_with_the_reason() {
    // It would show its own share of the locks as if they were all.
    let redis = start_with(|options| options.config = vec!["cluster-enabled yes".to_owned()]).await;
    let backend = Setup::of(&redis.url()).backend();
    let error = try_observe(&backend).await.map(drop).unwrap_err();
    assert!(matches!(&error, BackendError::Misconfigured { detail, .. } if detail.contains("cluster")), "{error:?}");
}
