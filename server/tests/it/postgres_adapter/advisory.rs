//! Advisory locks.

use domain::observation::{Condition, Lifetime};
use domain::safety::SafetyClass;
use leasehold::backends::Backend;
use leasehold::config::postgres::AdvisoryNameConfig;

use super::rig::*;
use crate::support::eventually::eventually;

#[tokio::test]
async fn keys_of_both_forms_decode_at_every_edge_and_in_every_database() {
    // Each key is taken with the SQL that users write; the resource must carry the same numbers.
    let server = server().await;
    let mut user_a = user(&server.superuser_url()).await;
    run(&mut user_a, "CREATE DATABASE \"other db\"").await;
    let one = [0, 1, -1, i64::MAX, i64::MIN, 1 << 32, -(1 << 32), 72_707_369];
    let two = [(0, 0), (1, -1), (i32::MIN, i32::MAX), (i32::MIN, i32::MIN), (-7, 9)];
    for key in one {
        sqlx::query("SELECT pg_advisory_lock($1)").bind(key).execute(&mut user_a).await.unwrap();
    }
    for (first, second) in two {
        sqlx::query("SELECT pg_advisory_lock($1, $2)").bind(first).bind(second).execute(&mut user_a).await.unwrap();
    }
    let mut user_b = user(&server.superuser_url_to("other db")).await;
    run(&mut user_b, "SELECT pg_advisory_lock(-5)").await;
    let backend = backend(&server.superuser_url(), Vec::new());
    let seen = observe(&backend).await;
    let mut expected: Vec<String> = one.iter().map(|key| format!("advisory:postgres:{key}")).collect();
    expected.extend(two.iter().map(|(first, second)| format!("advisory:postgres:{first}:{second}")));
    expected.push("advisory:other db:-5".to_owned());
    expected.sort();
    assert_eq!(seen.of("advisory"), expected);
    let lock = seen.lock("advisory", "advisory:other db:-5");
    assert!(matches!(lock.lifetime, Lifetime::Session { .. }) && lock.fencing_token.is_absent(), "{lock:?}");
    let (source, prisma) = id("advisory", "advisory:postgres:72707369");
    assert_eq!(backend.safety(&source).class, SafetyClass::Efficiency);
    let detail = backend.inspect(&source, &prisma).await.unwrap();
    assert!(detail.raw.iter().any(|field| field.name == "known as" && field.value == "Prisma Migrate"), "{detail:?}");
    assert_eq!(detail.shares_fate_with.len(), one.len() + two.len() - 1, "{:?}", detail.shares_fate_with);
}

#[tokio::test]
async fn holders_waiters_and_levels_of_one_key_are_one_row() {
    // Two sharers and an exclusive waiter behind them; then the detail with its order, tree and session.
    let server = server().await;
    let url = server.superuser_url();
    let mut first = named_user(&url, "billing").await;
    let mut second = user(&url).await;
    let (first_pid, second_pid) = (pid(&mut first).await, pid(&mut second).await);
    run(&mut first, "SELECT pg_advisory_lock_shared(42)").await;
    run(&mut second, "BEGIN; SELECT pg_advisory_xact_lock_shared(42)").await;
    let mut waiter = named_user(&url, "report").await;
    let waiter_pid = pid(&mut waiter).await;
    let waiting = tokio::spawn(async move { run(&mut waiter, "SELECT pg_advisory_lock(42)").await });
    let backend = backend(&url, Vec::new());
    eventually("the waiter is seen", || async {
        observe(&backend).await.lock("advisory", "advisory:postgres:42").waiter_count.known() == Some(&1)
    })
    .await;
    let seen = observe(&backend).await;
    assert_eq!(seen.locks.len(), 1, "{:?}", seen.locks.keys());
    let lock = seen.lock("advisory", "advisory:postgres:42");
    assert_eq!(lock.owner_count, 2);
    assert_eq!(lock.owner.known().unwrap().as_str(), format!("billing#{first_pid}"));
    let generation = lock.generation.known().unwrap().as_str();
    assert!(generation.starts_with(&format!("pid:{first_pid}@2")), "{generation}");
    assert!(generation.contains(&format!("+pid:{second_pid}@")), "{generation}");
    assert!(lock.oldest_waiter_ms.is_some());
    assert!(lock.acquired_at.why().unwrap().contains("session-level"), "{lock:?}");

    let (source, resource) = id("advisory", "advisory:postgres:42");
    let detail = backend.inspect(&source, &resource).await.unwrap();
    assert_eq!(detail.waiters.len(), 1);
    assert_eq!(detail.waiters[0].owner_id.as_str(), format!("report#{waiter_pid}"));
    assert_eq!((detail.waiters[0].position, detail.waiters[0].waited_ms.is_known()), (1, true));
    let owners: Vec<&str> = detail.owners.iter().map(|owner| owner.as_str()).collect();
    assert_eq!(owners, [format!("billing#{first_pid}"), format!("session#{second_pid}")]);
    let session = detail.session.unwrap();
    assert_eq!((session.pid, session.state.as_str()), (first_pid, "idle"));
    assert_eq!(session.client_address.as_deref(), Some("127.0.0.1"));
    assert!(session.query.contains("pg_advisory_lock_shared"), "{session:?}");
    let blocked: usize = detail.blockers.iter().map(|root| root.blocks.len()).sum();
    assert_eq!((detail.blockers.len(), blocked), (2, 1), "{:?}", detail.blockers);
    assert!(detail.blockers.iter().all(|root| root.holds == "ShareLock on advisory key 42"), "{:?}", detail.blockers);
    let level = detail.raw.iter().find(|field| field.name == "level").unwrap();
    assert!(level.value.starts_with("session level"), "{level:?}");

    run(&mut first, "SELECT pg_advisory_unlock_all()").await;
    let detail = backend.inspect(&source, &resource).await.unwrap();
    let level = detail.raw.iter().find(|field| field.name == "level").unwrap();
    assert!(level.value.starts_with("unknown: its session is in a transaction"), "{level:?}");
    assert!(detail.lock.unwrap().acquired_at.why().unwrap().contains("transaction began at 2"));
    run(&mut second, "COMMIT").await;
    waiting.await.unwrap();
}

#[tokio::test]
async fn a_prepared_transaction_that_holds_a_key_is_a_holder_that_is_gone() {
    // PREPARE TRANSACTION, then the session ends: the lock stays, and another session waits for it in vain.
    let server = server().await;
    let url = server.superuser_url();
    let mut holder = user(&url).await;
    run(&mut holder, "BEGIN; SELECT pg_advisory_xact_lock(7, -7); PREPARE TRANSACTION 'payment 17'").await;
    drop(holder);
    let mut waiter = user(&url).await;
    let waiting = tokio::spawn(async move { run(&mut waiter, "SELECT pg_advisory_lock(7, -7)").await });
    let backend = backend(&url, Vec::new());
    let (source, resource) = id("advisory", "advisory:postgres:7:-7");
    eventually("the waiter is seen", || async { !backend.inspect(&source, &resource).await.unwrap().waiters.is_empty() })
        .await;
    let detail = backend.inspect(&source, &resource).await.unwrap();
    let lock = detail.lock.unwrap();
    assert_eq!(lock.owner.known().unwrap().as_str(), "prepared#payment 17");
    let Some(Condition::HolderGone { why }) = &lock.condition else { panic!("{lock:?}") };
    assert!(why.contains("\"payment 17\" of postgres since 2"), "{why}");
    assert!(lock.generation.known().unwrap().as_str().starts_with("prepared:payment 17@2"));
    assert_eq!((detail.blockers.len(), detail.blockers[0].blocks.len()), (1, 1), "{:?}", detail.blockers);
    assert_eq!(detail.blockers[0].pid, None);
    assert_eq!(detail.session, None);
    run(&mut user(&url).await, "ROLLBACK PREPARED 'payment 17'").await;
    waiting.await.unwrap();
}

#[tokio::test]
async fn a_poolers_idle_session_that_holds_a_key_may_be_leaked() {
    // By the name the pooler gives itself, and by the role it logs in as; an ordinary idle holder is not accused.
    let server = server().await;
    let url = server.superuser_url();
    let mut pooled = named_user(&url, "PgBouncer").await;
    run(&mut pooled, "SELECT pg_advisory_lock(1); CREATE ROLE pgbouncer_app LOGIN").await;
    let mut role = user(&server.url("pgbouncer_app", "postgres")).await;
    run(&mut role, "SELECT pg_advisory_lock(2)").await;
    let mut plain = named_user(&url, "worker").await;
    run(&mut plain, "SELECT pg_advisory_lock(3)").await;
    let seen = observe(&backend(&url, Vec::new())).await;
    for key in ["advisory:postgres:1", "advisory:postgres:2"] {
        let lock = seen.lock("advisory", key);
        let Some(Condition::Note { why }) = &lock.condition else { panic!("{lock:?}") };
        assert!(why.starts_with("May be leaked through the pooler"), "{why}");
    }
    assert_eq!(seen.lock("advisory", "advisory:postgres:3").condition, None);
}

#[tokio::test]
async fn configured_names_and_hashes_name_opaque_keys() {
    // hashtext and hashtextextended are computed by the server itself; the gem's key pair is computed here.
    let server = server().await;
    let mut session = user(&server.superuser_url()).await;
    run(&mut session, "SELECT pg_advisory_lock(hashtext('nightly')), pg_advisory_lock(hashtextextended('nightly', 0)),
        pg_advisory_lock(3, hashtext('nightly')), pg_advisory_lock(99)").await;
    // crc32('nightly') & 0x7fffffff, as the Ruby gem takes it.
    run(&mut session, "SELECT pg_advisory_lock(-3, 1)").await;
    let mut config = postgres_config(&server.superuser_url(), Vec::new());
    let none = AdvisoryNameConfig { key: None, key1: None, key2: None, hash_of: None, name: None };
    config.advisory_names = vec![
        AdvisoryNameConfig { hash_of: Some("nightly".to_owned()), ..none.clone() },
        AdvisoryNameConfig { key1: Some(-3), name: Some("shard lock".to_owned()), ..none },
    ];
    let backend = backend_of(&config);
    let mut names = Vec::new();
    for resource in observe(&backend).await.of("advisory") {
        let (source, resource) = id("advisory", resource);
        let raw = backend.inspect(&source, &resource).await.unwrap().raw;
        names.extend(raw.into_iter().filter(|field| field.name == "known as").map(|field| field.value));
    }
    names.sort();
    assert_eq!(
        names,
        ["hashtext of \"nightly\"", "hashtext of \"nightly\"", "hashtextextended of \"nightly\"", "shard lock"]
    );
}
