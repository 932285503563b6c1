//! Lost, paused and wrong nodes.

use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;

use super::*;
use ::backends::{Budget, Hints};
use std::time::Duration;

fn fault(pass: &::backends::Pass) -> &str {
    pass.sources[0].fault.as_deref().unwrap_or_default()
}

#[tokio::test]
async fn silent_minority_hides_no_lock_and_silent_quorum_keeps_all() {
    // One node is killed, then a second one is stopped where it is.
    let nodes = Nodes::start(3).await;
    let backend = nodes.backend();
    nodes.plant("lock:stays", "vvv").await;
    nodes.plant("lock:ends", "www").await;
    assert_eq!(observe(&backend).await.1.locks.len(), 2);
    nodes.0[0].kill().await.unwrap();
    nodes.plant("lock:ends", "...").await;
    let (pass, seen) = observe(&backend).await;
    assert!(
        matches!(&pass.sources[0].coverage, Coverage::Partial { .. }),
        "{pass:?}"
    );
    let name = format!("127.0.0.1:{}", nodes.0[0].port());
    assert!(fault(&pass).contains("1 of 3 nodes do not answer") && fault(&pass).contains(&name));
    assert_eq!(
        seen.named("lock:stays").condition,
        None,
        "two of three are a quorum"
    );
    assert!(!seen.has("lock:ends") && seen.has_read("lock:ends"), "it is gone");
    assert!(seen.undecided.is_empty());
    let shown = quorum(&backend, "lock:stays").await;
    assert_eq!(shown.state, QuorumState::Held);
    assert!(!shown.nodes[0].reachable && shown.nodes[0].fault.is_some());
    assert!(shown.nodes[0].age_ms.is_some(), "it answered once");
    nodes.0[1].pause().await.unwrap();
    let (pass, seen) = observe(&backend).await;
    assert!(
        fault(&pass).contains("2 of 3 nodes do not answer"),
        "{}",
        fault(&pass)
    );
    let row = seen.named("lock:stays");
    assert!(
        matches!(row.condition, Some(ObservedCondition::Undecided { .. })),
        "{row:?}"
    );
    assert!(!seen.has_read("lock:ends"), "nothing is known to be gone");
    assert_eq!(seen.undecided, [redlock()]);
    assert_eq!(quorum(&backend, "lock:stays").await.state, QuorumState::Unknown);
    nodes.0[1].resume().await.unwrap();
    nodes.0[0].restart().await.unwrap();
    testkit::eventually("all nodes answer again", async || {
        let (pass, seen) = observe(&backend).await;
        pass.sources[0].coverage.is_complete() && seen.named("lock:stays").condition.is_none()
    })
    .await;
    for node in &nodes.0 {
        node.kill().await.unwrap();
    }
    let error = try_observe(&backend).await.map(drop).unwrap_err();
    assert!(matches!(error, BackendError::Unreachable { .. }), "{error:?}");
}

#[tokio::test]
async fn one_server_under_two_names_is_refused() {
    // Its copy would count twice.
    let nodes = Nodes::start(2).await;
    let urls = [
        nodes.0[0].url(),
        nodes.0[1].url(),
        format!("redis://localhost:{}", nodes.0[0].port()),
    ];
    let backend = Setup::mode(RedisMode::Redlock, urls).backend();
    let error = try_observe(&backend).await.map(drop).unwrap_err();
    assert!(
        matches!(&error, BackendError::Misconfigured { detail, remedy }
            if detail.contains("are the same server") && remedy.contains("once")),
        "{error:?}"
    );
}

#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "a server of the test")]
async fn a_server_of_another_kind_is_a_silent_node_with_the_reason() {
    // A web server on the port of a node.
    let nodes = Nodes::start(2).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        }
    });
    nodes.plant("lock:a", "vv").await;
    let urls = [
        nodes.0[0].url(),
        nodes.0[1].url(),
        format!("redis://127.0.0.1:{port}"),
    ];
    let backend = Setup::mode(RedisMode::Redlock, urls).backend();
    let (pass, seen) = observe(&backend).await;
    assert!(
        fault(&pass).contains(&format!("127.0.0.1:{port}")),
        "{}",
        fault(&pass)
    );
    assert_eq!(seen.named("lock:a").condition, None);
}

#[tokio::test]
async fn notifications_of_every_node_name_the_lock() {
    // A change on one node alone is a hint too.
    let options = RedisOptions {
        notify_keyspace_events: Some("Kg$hxe".to_owned()),
        ..RedisOptions::default()
    };
    let nodes = Nodes::start_with(3, options).await;
    let backend = nodes.backend();
    let hints = Hints::default();
    let changes = async {
        while hints.take().await.state != Some(domain::backend::WatchState::Live) {}
        for (at, node) in nodes.0.iter().enumerate() {
            let key = format!("lock:{at}");
            run(&mut driver(node).await, &["SET", &key, "v"]).await;
            let wanted = (redlock(), Resource::from(key.as_str()));
            while !hints.take().await.names.contains(&wanted) {}
        }
    };
    tokio::select! {
        () = backend.watch(hints.clone()) => panic!("the watch ended"),
        done = tokio::time::timeout(Duration::from_secs(60), changes) => done.unwrap(),
    }
}

#[tokio::test]
async fn a_scan_out_of_time_is_partial() {
    let nodes = Nodes::start(3).await;
    nodes.plant("lock:a", "vvv").await;
    let budget = Budget {
        time_max: Duration::ZERO,
    };
    let mut seen = super::super::Seen::default();
    let pass = nodes.backend().observe(budget, &mut seen).await.unwrap();
    assert!(!pass.sources[0].coverage.is_complete());
    assert!(!seen.has_read("lock:a"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn attempts_hide_no_lock_while_a_node_is_silent() {
    // One node of the quorum is killed; the attempts of another client change the third node all the time.
    let nodes = Nodes::start(3).await;
    let backend = nodes.backend();
    nodes.plant("lock:held", "vv.").await;
    assert!(observe(&backend).await.1.has("lock:held"));
    nodes.0[0].kill().await.unwrap();
    let mut contended = driver(&nodes.0[2]).await;
    let attempts = async {
        for attempt in 0.. {
            let value = format!("w-{attempt}");
            run(&mut contended, &["SET", "lock:held", &value, "PX", "600000"]).await;
        }
    };
    tokio::select! {
        () = attempts => panic!("the attempts ended"),
        (_, seen) = observe(&backend) => {
            assert!(seen.has("lock:held") || !seen.has_read("lock:held"), "it may be held");
        }
    }
}
