//! Forced unlocks: one key by its session and lock index, and never the next holder's.

use std::cell::Cell;
use std::time::Duration;

use ::backends::{Backend, no_release};
use domain::force_release::Release;
use domain::generation::Generation;

use super::watched_consul::{ConsulClient, ROOT_TOKEN, WatchedConsul, backend, consul, kv, unlocker};
use crate::support::proxy::Proxy;
use crate::support::unlocking::{Users, act, generation, lose_answers, race, unlock};

#[tokio::test]
async fn only_the_key_is_released_and_its_session_stays() {
    // Two keys of one session; value and flags stay; the next session acquires the key at once, in spite of a
    // lock-delay; the old generation is refused then.
    let watched = WatchedConsul::start().await;
    let client = &watched.client;
    let session = client.session("w", "1h", "15s", "release").await;
    assert!(client.acquire("locks/a", &session, "step 3").await);
    assert!(client.acquire("locks/b", &session, "").await);
    let before = client.key("locks/a").await.unwrap();
    let (source, resource) = kv("locks/a");
    let old = generation(&watched.backend, &source, &resource).await;
    let release = async || {
        watched
            .backend
            .release(&source, &resource, &old, &act())
            .await
            .unwrap()
    };
    assert_eq!(release().await, Release::Released);
    let after = client.key("locks/a").await.unwrap();
    assert_eq!(
        (&after["Value"], &after["Flags"]),
        (&before["Value"], &before["Flags"])
    );
    assert!(after["Session"].is_null());
    assert_eq!(client.holder("locks/b").await.as_ref(), Some(&session));
    assert_eq!(release().await, Release::AlreadyFree);
    let next = client.long_session("next").await;
    assert!(client.acquire("locks/a", &next, "").await);
    let Release::HolderChanged { now } = release().await else {
        panic!("the next one holds it")
    };
    assert_eq!(now.owner_id.known().unwrap().as_str(), "next@throwaway");
    assert_eq!(client.holder("locks/a").await, Some(next));
}

#[tokio::test]
async fn the_same_session_on_the_key_again_is_another_holding() {
    // Released and acquired again by the same session: only the lock index differs.
    let watched = WatchedConsul::start().await;
    let client = &watched.client;
    let session = client.long_session("w").await;
    assert!(client.acquire("locks/a", &session, "").await);
    let (source, resource) = kv("locks/a");
    let old = generation(&watched.backend, &source, &resource).await;
    assert!(client.release("locks/a", &session).await && client.acquire("locks/a", &session, "").await);
    let answer = watched
        .backend
        .release(&source, &resource, &old, &act())
        .await
        .unwrap();
    assert!(matches!(answer, Release::HolderChanged { .. }), "{answer:?}");
    assert_eq!(client.holder("locks/a").await, Some(session));
}

#[tokio::test]
async fn without_a_token_for_unlocks_release_is_refused() {
    // No `unlock_token_file`; and a name outside the prefixes.
    let watched = WatchedConsul::start().await;
    let session = watched.client.long_session("w").await;
    assert!(watched.client.acquire("locks/a", &session, "").await);
    let watcher = backend(&watched.consul.url(), |_, _| {});
    assert!(no_release(&watcher).unwrap().contains("unlock_token_file"));
    let (source, resource) = kv("locks/a");
    let answer = unlock(&watcher, &source, &resource).await;
    assert!(
        matches!(&answer, Release::Refused { why, .. } if why.contains("unlock_token_file")),
        "{answer:?}"
    );
    let seen = generation(&watched.backend, &source, &resource).await;
    let (_, stranger) = kv("elsewhere/a");
    let answer = watched
        .backend
        .release(&source, &stranger, &seen, &act())
        .await
        .unwrap();
    assert!(
        matches!(&answer, Release::Refused { why, .. } if why.contains("configured prefix")),
        "{answer:?}"
    );
}

#[tokio::test]
async fn an_unknown_token_for_unlocks_is_named_as_unknown() {
    // It was deleted or has expired: a rule in its policy would not help.
    let consul = consul(true).await;
    let root = ConsulClient::new(&consul.url(), Some(ROOT_TOKEN));
    let session = root.long_session("w").await;
    assert!(root.acquire("locks/a", &session, "").await);
    let watched = backend(&consul.url(), |_, consul| {
        consul.token = Some(ROOT_TOKEN.to_owned().into());
        consul.unlock_token = Some("00000000-0000-0000-0000-0000000000aa".to_owned().into());
    });
    let (source, resource) = kv("locks/a");
    let answer = unlock(&watched, &source, &resource).await;
    assert!(
        matches!(&answer, Release::Refused { why, remedy }
            if why.contains("does not know the token") && remedy.contains("unlock_token_file")),
        "{answer:?}"
    );
    assert_eq!(root.holder("locks/a").await, Some(session));
}

/// Sessions that acquire and release one key; each has a name of its own.
struct Sessions {
    client: ConsulClient,
    count: Cell<usize>,
}

impl Users for Sessions {
    type Held = String;

    async fn take(&self) -> Option<(String, String)> {
        self.count.set(self.count.get() + 1);
        let name = format!("w-{}", self.count.get());
        let session = self.client.long_session(&name).await;
        if self.client.acquire("locks/race", &session, &name).await {
            return Some((format!("{name}@throwaway"), session));
        }
        self.client.destroy(&session).await;
        None
    }

    async fn give_back(&self, held: String) -> bool {
        let was_held = self.client.release("locks/race", &held).await;
        self.client.destroy(&held).await;
        was_held
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn racing_unlocks_never_hit_the_next_holder() {
    // Every holding that was cut short is one that an unlock reports.
    let watched = WatchedConsul::start().await;
    let users = Sessions {
        client: watched.client.clone(),
        count: Cell::new(0),
    };
    let (source, resource) = kv("locks/race");
    race(&watched.backend, &source, &resource, &users).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_response_is_an_unknown_outcome() {
    // The transaction's answer stops in the proxy.
    let watched = WatchedConsul::start().await;
    let proxy = Proxy::start(watched.consul.port()).await;
    let through = backend(&format!("http://127.0.0.1:{}", proxy.port()), |config, consul| {
        config.timeout = Duration::from_millis(600);
        consul.unlock_token = Some("00000000-0000-0000-0000-0000000000aa".to_owned().into());
    });
    let direct = unlocker(&watched.consul.url());
    let session = watched.client.long_session("w").await;
    let (source, resource) = kv("locks/a");
    let take = async || -> Generation {
        assert!(watched.client.acquire("locks/a", &session, "").await);
        generation(&direct, &source, &resource).await
    };
    let is_held = async || watched.client.holder("locks/a").await.is_some();
    lose_answers(&through, &proxy, (&source, &resource), take, is_held).await;
}
