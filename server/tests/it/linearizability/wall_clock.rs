//! The wall clock an hour off (trap 33), each answer checked separately. Under load the histories do the same.

use std::path::Path;

use ::testkit::{PostgresOptions, Throwaway};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::clock;
use super::history::now;
use super::servers::{Server, ServerWrapper};
use testkit::eventually;

const HOUR_S: i64 = 3_600;

async fn acquire(server: &Server, resource: &str, ttl: i64) -> Value {
    let body = json!({"resource": resource, "ownerId": "o", "ttlSeconds": ttl});
    let request = server.http().post(server.url("/v1/locks/acquire")).json(&body);
    request.send().await.unwrap().json().await.unwrap()
}

async fn renew(server: &Server, lease: &Value) -> u16 {
    let path = format!("/v1/locks/{}/renew", lease["leaseId"].as_str().unwrap());
    server
        .http()
        .post(server.url(&path))
        .send()
        .await
        .unwrap()
        .status()
        .as_u16()
}

async fn holder(server: &Server, resource: &str) -> Value {
    let url = server.url(&format!("/v1/resources/{resource}"));
    let seen = server.http().get(url).send().await.unwrap();
    seen.json::<Value>().await.unwrap()["holder"].clone()
}

fn fast() -> PostgresOptions {
    PostgresOptions {
        fast: true,
        ..Default::default()
    }
}

/// A lease of 2 s is free after 2 s, and not before.
async fn ends_in_time(server: &Server, resource: &str) {
    let began = now();
    let lease = acquire(server, resource, 2).await;
    assert_eq!(lease["acquired"], true, "{lease}");
    eventually("it ran out", || async {
        holder(server, resource).await.is_null()
    })
    .await;
    let took_ms = (now() - began) / 1_000;
    // TTL and a second, plus tolerance for a slow machine.
    assert!((1_990..6_000).contains(&took_ms), "{took_ms} ms");
}

fn set(file: &Path, seconds: i64) {
    let next = file.with_extension("next");
    std::fs::write(&next, format!("{seconds:+}")).unwrap();
    std::fs::rename(next, file).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wall_clock_step_of_an_hour_changes_no_lease_on_sqlite() {
    // Forward and back while the server runs, and back over a kill -9: the file's clock continues from its last value.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let folder = tempfile::tempdir().unwrap();
    let offset = folder.path().join("offset");
    set(&offset, 0);
    let store = format!("sqlite:{}", folder.path().join("leases.db").display());
    let mut server = Server::start(
        &store,
        folder.path(),
        ServerWrapper::Faketime(offset.clone()),
        &[],
    )
    .await;
    let kept = acquire(&server, "kept", 600).await;
    for seconds in [HOUR_S, -HOUR_S] {
        set(&offset, seconds);
        assert_eq!(renew(&server, &kept).await, 200);
        let left = holder(&server, "kept").await["remainingMs"].as_i64().unwrap();
        assert!((1..=600_000).contains(&left), "{left}");
        ends_in_time(&server, "short").await;
    }
    server.end(Signal::KILL).await;
    server.restart().await;
    assert_eq!(
        renew(&server, &kept).await,
        200,
        "back in time is not the end of a lease"
    );
    ends_in_time(&server, "other").await;
    server.end(Signal::KILL).await;
    set(&offset, HOUR_S);
    server.restart().await;
    assert_eq!(
        renew(&server, &kept).await,
        410,
        "for all that the file can know it is an hour later"
    );
    assert_eq!(acquire(&server, "kept", 600).await["fencingToken"], 2);
    assert_eq!(acquire(&server, "short", 600).await["fencingToken"], 3);
    server.end(Signal::TERM).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wall_clock_set_ahead_ends_no_lease_at_the_next_start() {
    // Set ahead while the server runs, and not set back: the server records that its time is behind.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let folder = tempfile::tempdir().unwrap();
    let offset = folder.path().join("offset");
    set(&offset, 0);
    let store = format!("sqlite:{}", folder.path().join("leases.db").display());
    let mut server = Server::start(
        &store,
        folder.path(),
        ServerWrapper::Faketime(offset.clone()),
        &[],
    )
    .await;
    let before = acquire(&server, "before", 600).await;
    set(&offset, HOUR_S);
    let after = acquire(&server, "after", 600).await;
    eventually("the difference is recorded", || async {
        clock::is_behind_recorded(&store).await
    })
    .await;
    server.end(Signal::KILL).await;
    server.restart().await;
    for lease in [&before, &after] {
        assert_eq!(renew(&server, lease).await, 200, "{lease}");
    }
    server.end(Signal::TERM).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_hour_on_the_clock_of_postgres_grants_nothing_twice() {
    // Set ahead, it ends leases early, and ended leases stay ended; tokens rise, one holder at a time. Set back by as
    // much, or corrected, it changes nothing, neither for live nor for dead holders. Two servers.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let postgres = Throwaway::postgres(fast()).await.unwrap();
    let url = postgres.superuser_url();
    clock::install(&url).await;
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start(&url, folder.path(), ServerWrapper::Nothing, &[]).await;
    let mut other = Server::start(&url, folder.path(), ServerWrapper::Nothing, &[]).await;
    let first = acquire(&server, "r", 600).await;
    clock::set(&url, HOUR_S).await;
    let second = acquire(&server, "r", 600).await;
    assert_eq!(
        (&first["fencingToken"], &second["fencingToken"]),
        (&json!(1), &json!(2))
    );
    assert_eq!(renew(&server, &first).await, 410);
    for seconds in [0, -HOUR_S, 0, HOUR_S] {
        clock::set(&url, seconds).await;
        for server in [&server, &other] {
            let refused = acquire(server, "r", 600).await;
            assert_eq!(refused["acquired"], false, "{refused}");
            let left = refused["heldBy"]["remainingMs"].as_i64().unwrap();
            assert!((480_000..=600_000).contains(&left), "{refused}");
            assert_eq!(renew(server, &first).await, 410);
            ends_in_time(server, "short").await;
        }
        assert_eq!(renew(&other, &second).await, 200);
    }
    clock::set(&url, 2 * HOUR_S).await;
    let third = acquire(&other, "r", 600).await;
    assert_eq!(third["fencingToken"], 3, "{third}");
    assert_eq!(renew(&server, &second).await, 410);
    for server in [&mut server, &mut other] {
        let status = server.end(Signal::TERM).await;
        assert!(status.success(), "{status}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_clock_set_back_while_stopped_is_found_at_start() {
    // The store has saved its clock's last value: it continues from there, and so do the leases.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let postgres = Throwaway::postgres(fast()).await.unwrap();
    let url = postgres.superuser_url();
    clock::install(&url).await;
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start(&url, folder.path(), ServerWrapper::Nothing, &[]).await;
    let kept = acquire(&server, "kept", 600).await;
    let dead = acquire(&server, "dead", 2).await;
    assert_eq!(dead["acquired"], true);
    eventually("the time was written down", || async {
        clock::written_down(&url).await
    })
    .await;
    server.end(Signal::KILL).await;
    clock::set(&url, -HOUR_S).await;
    server.restart().await;
    assert_eq!(renew(&server, &kept).await, 200);
    eventually("the dead client's lock is free", || async {
        holder(&server, "dead").await.is_null()
    })
    .await;
    let status = server.end(Signal::TERM).await;
    assert!(status.success(), "{status}");
}
