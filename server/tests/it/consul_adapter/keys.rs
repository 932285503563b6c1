//! Keys and sessions as the adapter reports them.

use ::backends::Backend;
use domain::observation::{Lifetime, ObservedCondition};
use domain::reported::Reported;

use super::watched_consul::{WatchedConsul, backend, kv};
use crate::support::watching::{owner, refresh, scan, token};

#[tokio::test]
async fn only_keys_that_a_session_holds_are_locks() {
    // A held key, a released one, one never held, one outside the prefix; names with characters that a URL escapes.
    let watched = WatchedConsul::start().await;
    let client = &watched.client;
    let session = client.session("billing", "30s", "15s", "release").await;
    assert!(client.acquire("locks/job", &session, r#"{"step":1}"#).await);
    assert!(client.acquire("locks/a%20b/%C3%A9%3F", &session, "").await);
    assert!(client.acquire("locks/released", &session, "").await);
    assert!(client.release("locks/released", &session).await);
    client.put("kv/locks/plain", "value").await;
    assert!(client.acquire("elsewhere/job", &session, "").await);
    let seen = scan(&watched.backend).await.unwrap();
    assert!(seen.is_whole(), "{:?}", seen.pass);
    assert_eq!(seen.names(), ["locks/a b/é?", "locks/job"]);
    let lock = seen.lock("locks/job");
    assert_eq!(owner(lock), "billing@throwaway");
    assert_eq!(token(lock), 1);
    assert_eq!(lock.lease_id, Reported::Value(session.clone().into_boxed_str()));
    assert!(lock.waiter_count.is_unknown());
    let Lifetime::SessionTtl { ttl_ms, why } = &lock.lifetime else {
        panic!("{:?}", lock.lifetime)
    };
    assert_eq!(*ttl_ms, Reported::Value(30_000));
    assert!(why.contains("twice its TTL"), "{why}");
    let (source, resource) = kv("locks/a b/é?");
    assert!(
        watched
            .backend
            .inspect(&source, &resource)
            .await
            .unwrap()
            .lock
            .is_some()
    );
    let seen = refresh(
        &watched.backend,
        "kv",
        &["locks/job", "locks/released", "elsewhere/job"],
    )
    .await;
    let seen = seen.unwrap();
    assert_eq!((seen.names(), seen.gone.len()), (vec!["locks/job"], 2));
}

#[tokio::test]
async fn the_detail_has_the_session_and_its_other_keys() {
    // A session with a check and no TTL; two keys on it.
    let watched = WatchedConsul::start().await;
    let client = &watched.client;
    let mut session = String::new();
    // The check of a node fails until its agent has joined.
    testkit::eventually("the node is healthy", async || {
        let body = r#"{"Name":"indexer","LockDelay":"1s"}"#;
        let (status, made) = client.request(reqwest::Method::PUT, "session/create", body).await;
        session = made.split('"').nth(3).unwrap_or_default().to_owned();
        status == 200
    })
    .await;
    assert!(client.acquire("locks/a", &session, "step 3").await);
    assert!(client.acquire("locks/b", &session, "").await);
    scan(&watched.backend).await.unwrap();
    let (source, resource) = kv("locks/a");
    let detail = watched.backend.inspect(&source, &resource).await.unwrap();
    let raw = |name: &str| {
        let field = detail.raw.iter().find(|field| field.name == name);
        field
            .unwrap_or_else(|| panic!("{name} in {:?}", detail.raw))
            .value
            .as_str()
    };
    assert_eq!(raw("value"), "step 3");
    assert_eq!(raw("session's node"), "throwaway");
    assert_eq!(raw("session's checks"), "serfHealth");
    assert_eq!(raw("session's behaviour"), "release");
    assert_eq!(raw("session's lock-delay"), "1000 ms");
    assert!(
        detail.related_locks[0].contains("locks/b"),
        "{:?}",
        detail.related_locks
    );
    let lock = detail.lock.unwrap();
    assert!(matches!(&lock.lifetime, Lifetime::Session { why } if why.contains("checks")));
    let radius = detail.blast_radius.known().unwrap();
    assert!(
        radius.warnings.iter().any(|one| one.contains("1 other key")),
        "{radius:?}"
    );
}

#[tokio::test]
async fn a_lock_taken_again_has_a_new_generation_and_token() {
    // Taken again by another session; the key deleted and taken again by the same one. New values change nothing.
    let watched = WatchedConsul::start().await;
    let client = &watched.client;
    let (one, two) = (client.long_session("one").await, client.long_session("two").await);
    let seen = async || {
        let seen = scan(&watched.backend).await.unwrap();
        let lock = seen.lock("locks/job");
        (lock.generation.known().unwrap().clone(), token(lock))
    };
    assert!(client.acquire("locks/job", &one, "a").await);
    let first = seen().await;
    assert!(client.acquire("locks/job", &one, "b").await);
    assert_eq!(seen().await, first);
    assert!(client.release("locks/job", &one).await);
    assert!(client.acquire("locks/job", &two, "").await);
    let second = seen().await;
    assert!(second.0 != first.0 && second.1 > first.1);
    client.request(reqwest::Method::DELETE, "kv/locks/job", "").await;
    assert!(client.acquire("locks/job", &two, "").await);
    assert_ne!(seen().await.0, second.0);
}

#[tokio::test]
async fn contenders_of_a_semaphore_are_not_shown_as_holders() {
    // A contender key, with the flags of Consul's own clients.
    let watched = WatchedConsul::start().await;
    let session = watched.client.long_session("worker").await;
    let path = format!("kv/locks/pool/{session}?acquire={session}&flags=16210313421097356768");
    assert_eq!(watched.client.put(&path, "").await, "true");
    let seen = scan(&watched.backend).await.unwrap();
    let lock = seen.lock(&format!("locks/pool/{session}"));
    assert!(
        matches!(&lock.condition, Some(ObservedCondition::Unrecognised { why }) if why.contains("semaphore"))
    );
    assert!(lock.generation.is_unknown());
}

#[tokio::test]
async fn a_datacenter_or_namespace_that_does_not_exist_is_named() {
    // The free version has no namespaces.
    let watched = WatchedConsul::start().await;
    let nowhere = backend(&watched.consul.url(), |_, consul| {
        consul.datacenter = Some("nowhere".to_owned())
    });
    let error = scan(&nowhere).await.unwrap_err();
    assert!(
        error.to_string().contains("datacenter") && error.remedy().contains("`datacenter`"),
        "{error}"
    );
    let spaced = backend(&watched.consul.url(), |_, consul| {
        consul.namespace = Some("team-1".to_owned())
    });
    let error = scan(&spaced).await.unwrap_err();
    assert!(
        error.to_string().contains("namespaces") && error.remedy().contains("`namespace`"),
        "{error}"
    );
    let here = backend(&watched.consul.url(), |_, consul| {
        consul.datacenter = Some("dc1".to_owned())
    });
    assert!(scan(&here).await.unwrap().is_whole());
}
