//! SIGTERM with streams, waiters and leases open: first not ready, then a clean end within ten seconds, and no loss.

use crate::support::aside;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::json;

use super::running_server::Running;
use testkit::eventually;

const STREAMS: usize = 50;
const WAITERS: usize = 10;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shutdown_ends_streams_and_waiters_and_keeps_leases() {
    // Detects a stream that delays the end or is torn, a waiter without an answer, a lost lease, a server that is
    // ready until it is gone, and an exit code of a failure.
    let mut running = Running::start("").await;
    let waiting = json!({"resource": "jobs:x", "ownerId": "w", "ttlSeconds": 600});
    let (status, held) = running.post("/v1/locks/acquire", &waiting).await;
    assert!(status < 300, "{status} {held}");
    let lease = held["leaseId"].as_str().unwrap().to_owned();
    let mut streams = Vec::new();
    for number in 0..STREAMS {
        let own = format!("/v1/locks/{lease}/events");
        let path = if number % 10 == 0 {
            own.as_str()
        } else {
            "/v1/events"
        };
        streams.push(running.stream(path).await);
    }
    let waiters: Vec<_> = (0..WAITERS)
        .map(|number| {
            let (http, url) = (running.http.clone(), running.url("/v1/locks/acquire"));
            let body =
                json!({"resource": "jobs:x", "ownerId": format!("w{number}"), "ttlSeconds": 30, "waitSeconds": 30});
            aside(async move {
                let answer = http.post(url).json(&body).send().await.unwrap();
                let status = answer.status().as_u16();
                (status, answer.text().await.unwrap())
            })
        })
        .collect();
    eventually("all of them wait", async || {
        let resource = running.json("/v1/resources/jobs:x").await;
        resource["waiters"]
            .as_array()
            .is_some_and(|line| line.len() == WAITERS)
    })
    .await;
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let (http, url, readiness) = (running.http.clone(), running.url("/readyz"), seen.clone());
    let asking = aside(async move {
        while let Ok(answer) = http.get(&url).send().await {
            let status = answer.status().as_u16();
            let text = answer.text().await.unwrap_or_default();
            readiness.lock().unwrap().push(format!("{status} {text}"));
        }
    });

    running.signal(Signal::TERM);
    let ended = tokio::time::timeout(Duration::from_secs(10), running.exit()).await;
    assert_eq!(ended.unwrap().code(), Some(0), "{}", running.log());
    asking.await.unwrap();
    let seen = seen.lock().unwrap().clone();
    assert!(
        seen.iter()
            .any(|status| status.starts_with("503") && status.contains("stopping")),
        "{seen:?}"
    );
    for stream in streams {
        stream.ended().await;
    }
    for waiter in waiters {
        let (status, text) = waiter.await.unwrap();
        assert!(status == 503 && text.contains("shutting_down"), "{status} {text}");
        assert!(text.contains("\"remedy\":\"Retry after the seconds"), "{text}");
    }
    running.again().await;
    let still = running.json(&format!("/v1/locks/{lease}")).await;
    assert_eq!(
        (&still["leaseId"], &still["fencingToken"]),
        (&held["leaseId"], &held["fencingToken"]),
        "{still}"
    );
}
