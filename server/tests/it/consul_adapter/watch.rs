//! Change notifications by blocking queries.

use std::sync::Arc;

use ::backends::Backend;
use domain::backend::WatchState;

use super::watched_consul::{ConsulClient, backend, consul};
use crate::support::watching::{Watching, owner, scan};

#[tokio::test]
async fn each_change_below_a_prefix_starts_a_scan() {
    // A prefix without a key at first; deeper keys; a session that ends.
    let consul = consul(false).await;
    let client = ConsulClient::new(&consul.url(), None);
    let mut watching = Watching::start(Arc::new(backend(&consul.url(), |_, consul| {
        consul.prefixes.push("more/".to_owned());
    })));
    watching.live().await;
    let session = client.session("w", "1h", "0s", "release").await;
    assert!(client.acquire("locks/team/job", &session, "").await);
    watching.relist("a key was acquired").await;
    assert!(client.acquire("more/job", &session, "").await);
    watching.relist("a key of the other prefix was acquired").await;
    client.destroy(&session).await;
    watching.relist("the session has ended").await;
}

#[tokio::test]
async fn ten_restarts_lose_no_watch() {
    // The server is killed and started ten times; after each the watch resyncs, and the scan finds the lock that was
    // made since.
    let consul = consul(false).await;
    let watched: Arc<dyn Backend> = Arc::new(backend(&consul.url(), |_, _| {}));
    let client = ConsulClient::new(&consul.url(), None);
    let mut watching = Watching::start(watched.clone());
    watching.live().await;
    for round in 0..10 {
        consul.kill().await.unwrap();
        watching.reconnecting().await;
        consul.restart().await.unwrap();
        watching.relist("a resync after the restart").await;
        let key = format!("locks/round-{round}");
        testkit::eventually("a session acquires the key", async || {
            let (status, made) = client
                .request(
                    reqwest::Method::PUT,
                    "session/create",
                    r#"{"Name":"w","NodeChecks":[]}"#,
                )
                .await;
            status == 200 && client.acquire(&key, made.split('"').nth(3).unwrap(), "").await
        })
        .await;
        testkit::eventually("the scan finds it", async || {
            let seen = scan(&*watched).await;
            seen.is_ok_and(|seen| seen.locks.contains_key(&key) && owner(seen.lock(&key)) == "w@throwaway")
        })
        .await;
    }
}

#[tokio::test]
async fn a_prefix_that_fails_is_not_hidden_by_another() {
    // Consul refuses the name of one prefix; the watch of the other recovers with the server.
    let consul = consul(false).await;
    consul.kill().await.unwrap();
    let mut watching = Watching::start(Arc::new(backend(&consul.url(), |_, consul| {
        consul.prefixes.push("bad\u{1}/".to_owned());
    })));
    watching.reconnecting().await;
    consul.restart().await.unwrap();
    watching.relist("a resync after the restart").await;
    let is_refused = |state: &WatchState| match state {
        WatchState::Reconnecting { why, .. } => why.contains("bad") && why.contains("400"),
        WatchState::Live | WatchState::Off { .. } => false,
    };
    watching
        .until("the prefix is refused", |pending| {
            pending.state.as_ref().is_some_and(is_refused)
        })
        .await;
    let states = &watching.states;
    assert!(!states.contains(&WatchState::Live), "{states:?}");
}
