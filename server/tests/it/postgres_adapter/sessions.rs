//! An account that may not see other sessions: its observations, and the reported limitation.

use ::backends::Backend;
use ::config::postgres::LeaseTableConfig;
use domain::backend::AccountPermission;

use super::watched_postgres::*;

#[track_caller]
fn right<'a>(rights: &'a [AccountPermission], what: &str) -> &'a AccountPermission {
    rights
        .iter()
        .find(|right| right.what.contains(what))
        .unwrap_or_else(|| panic!("no {what} in {rights:?}"))
}

#[tokio::test]
async fn without_pg_monitor_sessions_are_unknown_with_the_reason() {
    // The lock, its key and its owner's name stay visible; state, query and the session's start do not.
    let server = server().await;
    let mut holder = named_user(&server.superuser_url(), "billing").await;
    run(&mut holder, "CREATE ROLE blind LOGIN; SELECT pg_advisory_lock(9)").await;
    let backend = backend(&server.url("blind", "postgres"), Vec::new());
    let (source, resource) = id("advisory", "advisory:postgres:9");
    let detail = backend.inspect(&source, &resource).await.unwrap();
    let lock = detail.lock.unwrap();
    assert_eq!(
        lock.owner.known().unwrap().as_str(),
        format!("billing#{}", pid(&mut holder).await)
    );
    assert!(
        lock.generation.why().unwrap().contains("pg_read_all_stats"),
        "{lock:?}"
    );
    assert!(
        lock.acquired_at.why().unwrap().contains("pg_read_all_stats"),
        "{lock:?}"
    );
    let session = detail.session.unwrap();
    assert!(
        session.state.starts_with("unknown:") && session.query.starts_with("unknown:"),
        "{session:?}"
    );
    let level = detail.raw.iter().find(|field| field.name == "level").unwrap();
    assert!(level.value.contains("pg_monitor"), "{level:?}");

    let rights = backend.probe().await.unwrap().rights;
    let sees = right(&rights, "see the sessions");
    assert!(sees.allowed.known() == Some(&false) && sees.wanted, "{sees:?}");
    run(&mut holder, &sees.remedy).await;
    let lock = backend.inspect(&source, &resource).await.unwrap().lock.unwrap();
    assert!(lock.generation.is_known(), "{lock:?}");
    assert_eq!(
        right(&backend.probe().await.unwrap().rights, "see the sessions")
            .allowed
            .known(),
        Some(&true)
    );
}

#[tokio::test]
async fn a_query_in_another_encoding_hides_no_session() {
    // The bytes of a query in a database of LATIN1 are not valid in ours of UTF-8.
    let server = server().await;
    let mut root = user(&server.superuser_url()).await;
    run(
        &mut root,
        "CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C'",
    )
    .await;
    let mut holder = named_user(&server.superuser_url_to("latin"), "billing").await;
    let holder_pid = pid(&mut holder).await;
    run(&mut holder, "SELECT pg_advisory_lock(9) /* h\u{e9} */").await;
    let backend = backend(&server.superuser_url(), Vec::new());
    let (source, resource) = id("advisory", "advisory:latin:9");
    let detail = backend.inspect(&source, &resource).await.unwrap();
    let lock = detail.lock.unwrap();
    assert_eq!(
        lock.owner.known().map(|owner| owner.as_str()),
        Some(format!("billing#{holder_pid}").as_str()),
        "{lock:?}"
    );
    assert!(lock.generation.is_known(), "{lock:?}");
    assert!(
        detail
            .session
            .unwrap()
            .query
            .starts_with("SELECT pg_advisory_lock")
    );
}

#[tokio::test]
async fn excess_rights_are_reported_with_the_statement_to_revoke() {
    // A watcher that may write, signal and do anything; each remedy, run as it is written, fixes it.
    let server = server().await;
    let mut root = user(&server.superuser_url()).await;
    run(&mut root, COMMON).await;
    run(&mut root, r#"CREATE ROLE "mighty watcher" LOGIN SUPERUSER"#).await;
    let backend = backend(
        &server.url("mighty watcher", "postgres"),
        vec![common("distributed_locks"), common("nope")],
    );
    let rights = backend.probe().await.unwrap().rights;
    for what in [
        "superuser",
        "pg_signal_backend",
        "INSERT, UPDATE or DELETE on public.distributed_locks",
    ] {
        let right = right(&rights, what);
        assert!(!right.wanted && right.allowed.known() == Some(&true), "{right:?}");
    }
    let missing = right(&rights, "SELECT on public.nope");
    assert!(
        missing.wanted && missing.allowed.is_unknown() && missing.remedy.contains("does not exist"),
        "{missing:?}"
    );

    run(
        &mut root,
        r#"ALTER ROLE "mighty watcher" NOSUPERUSER; GRANT pg_signal_backend TO "mighty watcher";
        GRANT ALL ON distributed_locks TO "mighty watcher""#,
    )
    .await;
    for what in ["pg_signal_backend", "INSERT, UPDATE or DELETE"] {
        let rights = backend.probe().await.unwrap().rights;
        let found = right(&rights, what);
        assert_eq!(found.allowed.known(), Some(&true), "{found:?}");
        run(&mut root, &found.remedy).await;
        let rights = backend.probe().await.unwrap().rights;
        assert_eq!(
            right(&rights, what).allowed.known(),
            Some(&false),
            "{}",
            found.remedy
        );
    }
    let rights = backend.probe().await.unwrap().rights;
    assert_eq!(right(&rights, "superuser").allowed.known(), Some(&false));
    assert_eq!(
        right(&rights, "SELECT on public.distributed_locks")
            .allowed
            .known(),
        Some(&true)
    );
}

#[tokio::test]
async fn reads_of_single_locks_leave_a_session_to_scans() {
    // With a listening session and without one: as many reads as there are sessions have begun and are blocked.
    let server = server().await;
    run(&mut user(&server.superuser_url()).await, COMMON).await;
    for notify in [None, Some("locks".to_owned())] {
        let table = LeaseTableConfig {
            notify,
            ..common("distributed_locks")
        };
        let backend = backend(&server.superuser_url(), vec![table]);
        let (source, resource) = id("advisory", "advisory:postgres:9");
        let mut reads: Vec<_> = (0..3).map(|_| backend.inspect(&source, &resource)).collect();
        for read in &mut reads {
            assert!(futures::poll!(read).is_pending());
        }
        observe(&backend).await;
    }
}
