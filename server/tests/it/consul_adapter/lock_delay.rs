//! The lock-delay after a session was invalidated.

use ::backends::Backend;
use domain::force_release::Release;
use domain::generation::Generation;
use domain::observation::{Lifetime, ObservedCondition, ObservedLock};

use super::watched_consul::{WatchedConsul, kv};
use crate::support::unlocking::act;
use crate::support::watching::{owner, refresh, scan};

fn remaining_ms(lock: &ObservedLock) -> i64 {
    match &lock.lifetime {
        Lifetime::Leased { remaining_ms, .. } => *remaining_ms,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_lost_session_leaves_a_lock_delay_that_counts_down() {
    // Keys that are released and deleted with their sessions; a key that a living session released has none.
    let watched = WatchedConsul::start().await;
    let client = &watched.client;
    for (key, behavior) in [("locks/released", "release"), ("locks/deleted", "delete")] {
        let session = client.session("lost", "1h", "40s", behavior).await;
        assert!(client.acquire(key, &session, "").await);
    }
    let living = client.session("living", "1h", "40s", "release").await;
    assert!(client.acquire("locks/free", &living, "").await);
    assert_eq!(scan(&watched.backend).await.unwrap().locks.len(), 3);
    for key in ["locks/released", "locks/deleted"] {
        client.destroy(&client.holder(key).await.unwrap()).await;
    }
    assert!(client.release("locks/free", &living).await);
    let seen = scan(&watched.backend).await.unwrap();
    assert_eq!(seen.names(), ["locks/deleted", "locks/released"]);
    let lock = seen.lock("locks/deleted");
    assert_eq!(owner(lock), "lost@throwaway");
    assert!(
        matches!(&lock.condition, Some(ObservedCondition::Orphaned { why }) if why.contains("lock-delay of 40"))
    );
    let first = remaining_ms(lock);
    assert!((1..=40_000).contains(&first), "{first}");
    // Consul itself refuses the key meanwhile.
    assert!(!client.acquire("locks/deleted", &living, "").await);
    let again = refresh(&watched.backend, "kv", &["locks/deleted"]).await.unwrap();
    assert!(remaining_ms(again.lock("locks/deleted")) <= first);
    // There is no holder to unlock.
    let (source, resource) = kv("locks/released");
    let answer = watched
        .backend
        .release(&source, &resource, &Generation::new("session:x@1.1"), &act())
        .await;
    assert!(!matches!(answer.unwrap(), Release::Released));
}

#[tokio::test]
async fn a_lock_delay_ends_when_the_key_is_held_again() {
    // A short one; its end is Consul's, and the row is the next holder's then.
    let watched = WatchedConsul::start().await;
    let client = &watched.client;
    let session = client.session("lost", "1h", "1s", "release").await;
    assert!(client.acquire("locks/job", &session, "").await);
    scan(&watched.backend).await.unwrap();
    client.destroy(&session).await;
    let next = client.long_session("next").await;
    testkit::eventually("the next session acquires the key", async || {
        client.acquire("locks/job", &next, "").await
    })
    .await;
    let seen = scan(&watched.backend).await.unwrap();
    assert_eq!(owner(seen.lock("locks/job")), "next@throwaway");
}
