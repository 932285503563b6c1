//! A server that is killed leaves its waiters in the queue of the store: their positions are free within a second, and until
//! then a refusal says that waiters are next and names no holder.

use std::time::Duration;

use ::testkit::{PostgresOptions, Throwaway};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::client::send;
use super::history::now;
use super::servers::{Server, ServerWrapper};
use crate::support::aside;
use testkit::eventually;

const WITHIN_US: i64 = 1_000_000;
/// On a slow machine one measurement may take longer.
const TRIES: usize = 5;

async fn acquire(server: &Server, resource: &str, owner: &str, wait_s: u64) -> Value {
    let body = json!({"resource": resource, "ownerId": owner, "ttlSeconds": 60, "waitSeconds": wait_s});
    let (status, answer) = send(server.http().post(server.url("/v1/locks/acquire")).json(&body)).await;
    assert_eq!(status, 200, "{answer}");
    answer
}

async fn queue(server: &Server, resource: &str) -> usize {
    let (_, found) = send(
        server
            .http()
            .get(server.url(&format!("/v1/resources/{resource}"))),
    )
    .await;
    found["waiters"].as_array().map_or(0, Vec::len)
}

/// Queues an acquire and ignores its answer.
async fn queue_one(server: &Server, resource: &str) {
    let before = queue(server, resource).await;
    let body = json!({"resource": resource, "ownerId": "lost", "ttlSeconds": 60, "waitSeconds": 60});
    let request = server.http().post(server.url("/v1/locks/acquire")).json(&body);
    let _lost = aside(send(request));
    eventually("it waits", || async {
        queue(server, resource).await == before + 1
    })
    .await;
}

/// Microseconds from the death of a server until an acquire at once, and one that waits, were granted.
async fn free_after_us(dying: &mut Server, other: &Server, number: usize) -> i64 {
    let (polled, waited) = (format!("polled:{number}"), format!("waited:{number}"));
    let held = acquire(other, &polled, "first", 0).await;
    let held_too = acquire(other, &waited, "first", 0).await;
    queue_one(dying, &polled).await;
    queue_one(dying, &waited).await;
    let second = {
        let (http, url) = (other.http(), other.url("/v1/locks/acquire"));
        let body = json!({"resource": waited, "ownerId": "second", "ttlSeconds": 60, "waitSeconds": 60});
        aside(async move {
            let answer = send(http.post(url).json(&body)).await;
            (answer, now())
        })
    };
    eventually("the second waits", || async { queue(other, &waited).await == 2 }).await;
    dying.end(Signal::KILL).await;
    let died = now();
    for lease in [&held, &held_too] {
        let url = other.url(&format!("/v1/locks/{}", lease["leaseId"].as_str().unwrap()));
        assert_eq!(send(other.http().delete(url)).await.0, 200);
    }
    loop {
        let answer = acquire(other, &polled, "next", 0).await;
        if answer["acquired"] == true {
            break;
        }
        assert!(answer["heldBy"].is_null(), "{answer}");
        assert_eq!(answer["waiters"], 1, "{answer}");
    }
    let polled_us = now() - died;
    let ((status, granted), at) = second.await.unwrap();
    assert!(status == 200 && granted["acquired"] == true, "{granted}");
    polled_us.max(at - died)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queue_positions_of_a_killed_server_are_free_within_1s() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let options = PostgresOptions {
        fast: true,
        ..Default::default()
    };
    let postgres = Throwaway::postgres(options).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let url = postgres.superuser_url();
    let mut dying = Server::start(&url, folder.path(), ServerWrapper::Nothing, &[]).await;
    let other = Server::start(&url, folder.path(), ServerWrapper::Nothing, &[]).await;
    let mut taken = Vec::new();
    for number in 0..TRIES {
        taken.push(free_after_us(&mut dying, &other, number).await);
        if taken.last().is_some_and(|us| *us <= WITHIN_US) {
            println!("free after {taken:?} us");
            return;
        }
        dying.restart().await;
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    panic!("free after {taken:?} us");
}
