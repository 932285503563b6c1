//! A server that is down, restarts, hangs, or does not let us in.

use std::time::Duration;

use ::backends::postgres::connect;
use ::backends::{Backend, BackendError};
use ::testkit::{PostgresOptions, Throwaway, free_port};
use runtime::clock::Clock;

use super::watched_postgres::*;
use crate::support::proxy::{Link, Proxy};

#[tokio::test]
async fn server_that_is_down_is_an_error_until_it_returns() {
    // Never an empty list; ten restarts in good order and by kill, with sessions of ours open each time.
    let server = server().await;
    let backend = backend(&server.superuser_url(), Vec::new());
    let mut holder = user(&server.superuser_url()).await;
    run(&mut holder, "SELECT pg_advisory_lock(1)").await;
    assert_eq!(observe(&backend).await.locks.len(), 1);
    for round in 0..10 {
        if round % 2 == 0 {
            server.stop().await.unwrap()
        } else {
            server.kill().await.unwrap()
        }
        let clock = Clock::start();
        let error = try_observe(&backend).await.err().unwrap();
        assert!(matches!(error, BackendError::Unreachable { .. }), "{error:?}");
        assert!(clock.tick().0 < 2_000, "{:?}", clock.tick());
        server.restart().await.unwrap();
        assert!(observe(&backend).await.locks.is_empty());
    }
    server.restart().await.unwrap();
    // The pooled session died unnoticed: the next scan must not fail for it.
    assert!(try_observe(&backend).await.is_ok());
}

#[tokio::test]
async fn a_standby_shows_no_advisory_lock_as_free() {
    // The former primary is back as a standby: the sessions are on another server now.
    let server = server().await;
    let backend = backend(&server.superuser_url(), Vec::new());
    let mut holder = user(&server.superuser_url()).await;
    run(&mut holder, "SELECT pg_advisory_lock(1)").await;
    assert_eq!(observe(&backend).await.locks.len(), 1);
    server.stop().await.unwrap();
    std::fs::write(server.folder().join("data/standby.signal"), "").unwrap();
    server.restart().await.unwrap();
    let seen = observe(&backend).await;
    for source in ["advisory", "relation"] {
        assert!(seen.fault(source).contains("standby"), "{}", seen.fault(source));
    }
    let (source, resource) = id("advisory", "advisory:postgres:1");
    let error = backend.inspect(&source, &resource).await.unwrap_err();
    assert!(
        matches!(&error, BackendError::Misconfigured { remedy, .. } if remedy.contains("primary")),
        "{error:?}"
    );
}

#[tokio::test]
async fn each_login_failure_has_its_own_error_without_password() {
    // Wrong password, unknown role, unknown database, closed port, another service.
    let password = Some("right".to_owned());
    let server = Throwaway::postgres(PostgresOptions {
        fast: true,
        password,
        ..Default::default()
    })
    .await
    .unwrap();
    let error = async |url: String| {
        let backend = backend(&url, Vec::new());
        let error = try_observe(&backend).await.err().unwrap();
        let probed = backend.probe().await.unwrap_err();
        assert_eq!(std::mem::discriminant(&error), std::mem::discriminant(&probed));
        let shown = format!("{error:?} {error} {}", error.remedy());
        assert!(
            !shown.contains("hunter2") && !shown.contains("postgres://"),
            "{shown}"
        );
        error
    };
    let wrong = error(server.url_with_password("postgres", "hunter2", "postgres")).await;
    assert!(matches!(wrong, BackendError::Denied { .. }), "{wrong:?}");
    let nobody = error(server.url_with_password("nobody", "hunter2", "postgres")).await;
    assert!(matches!(nobody, BackendError::Denied { .. }), "{nobody:?}");
    let nowhere = error(server.superuser_url_to("nowhere")).await;
    assert!(
        matches!(&nowhere, BackendError::Misconfigured { detail, .. } if detail.contains("nowhere")),
        "{nowhere:?}"
    );
    let port = free_port().unwrap();
    let refused = error(format!("postgres://u:hunter2@127.0.0.1:{port}/db")).await;
    assert_eq!(
        refused,
        BackendError::Unreachable {
            detail: "connection refused".to_owned()
        }
    );

    let config = postgres_config(&server.url("unknown_role", "postgres"), Vec::new());
    let mut overridden = backend_config(&config);
    overridden.user = Some("postgres".to_owned());
    overridden.password = Some("right".into());
    let backend = connect(&overridden, &config, Clock::start()).unwrap();
    assert!(
        backend
            .probe()
            .await
            .unwrap()
            .version
            .known()
            .unwrap()
            .starts_with("PostgreSQL ")
    );
}

#[tokio::test]
async fn a_hanging_server_times_out_and_recovers() {
    // The link is held in both directions: with a session open, and before one could be opened.
    let server = server().await;
    let proxy = Proxy::start(server.port()).await;
    let url = format!("postgres://postgres@127.0.0.1:{}/postgres", proxy.port());
    let config = postgres_config(&url, Vec::new());
    let mut impatient = backend_config(&config);
    impatient.timeout = Duration::from_millis(400);
    let backend = connect(&impatient, &config, Clock::start()).unwrap();
    assert!(try_observe(&backend).await.is_ok());
    proxy.set(Link::Blackhole).await;
    for _ in 0..5 {
        let clock = Clock::start();
        let (pass, probe) = tokio::join!(try_observe(&backend), backend.probe());
        assert_eq!(pass.err(), Some(BackendError::NoAnswer { after_ms: 400 }));
        assert_eq!(probe.err(), Some(BackendError::NoAnswer { after_ms: 400 }));
        assert!(clock.tick().0 < 2_000, "{:?}", clock.tick());
    }
    proxy.set(Link::Pass).await;
    assert!(try_observe(&backend).await.is_ok());
    server.pause().await.unwrap();
    assert_eq!(
        try_observe(&backend).await.err(),
        Some(BackendError::NoAnswer { after_ms: 400 })
    );
    server.resume().await.unwrap();
    assert!(try_observe(&backend).await.is_ok());
}

#[tokio::test]
async fn sessions_are_limited_named_and_read_only() {
    // The server's own count of our sessions during many parallel requests.
    let server = server().await;
    let backend = backend(&server.superuser_url(), Vec::new());
    let questions = futures::future::join_all((0..20).map(|_| try_observe(&backend))).await;
    assert!(questions.iter().all(Result::is_ok));
    let mut root = user(&server.superuser_url()).await;
    let ours: i64 =
        sqlx::query_scalar("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'leasehold'")
            .fetch_one(&mut root)
            .await
            .unwrap();
    assert!((1..=3).contains(&ours), "{ours}");
    let config = postgres_config(&server.superuser_url(), vec![common("settings")]);
    run(
        &mut root,
        "CREATE VIEW settings AS SELECT name AS resource, setting AS owner_id, NULL::text AS lease_id,
        NULL::int AS fencing_token, NULL::timestamptz AS expires_at, NULL::timestamptz AS created_at,
        NULL::timestamptz AS updated_at FROM pg_settings",
    )
    .await;
    let observed = observe(&backend_of(&config)).await;
    let setting = |name: &str| {
        observed
            .lock("table:public.settings", name)
            .owner
            .known()
            .unwrap()
            .as_str()
            .to_owned()
    };
    assert_eq!(setting("default_transaction_read_only"), "on");
    assert_eq!(setting("application_name"), "leasehold");
    assert_eq!(
        (setting("statement_timeout"), setting("lock_timeout")),
        ("4000".to_owned(), "200".to_owned())
    );
}

#[tokio::test]
async fn repeated_rows_that_cannot_be_read_make_the_scan_partial() {
    // Two rows of one resource, which are read by name, and a view that refuses that: they must not count as gone.
    let server = server().await;
    let mut user = user(&server.superuser_url()).await;
    run(
        &mut user,
        &COMMON
            .replace(" PRIMARY KEY", "")
            .replace("distributed_locks", "records"),
    )
    .await;
    run(
        &mut user,
        "INSERT INTO records (resource, owner_id, lease_id) VALUES ('a', 'w', 'l'), ('twice', 'v', 'm'), ('twice', 'w', 'n')",
    )
    .await;
    run(
        &mut user,
        "CREATE FUNCTION is_allowed() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN
            IF current_query() LIKE '%= ANY($1)%' THEN RAISE EXCEPTION 'no reads by name'; END IF;
            RETURN true;
        END $$; CREATE VIEW distributed_locks AS SELECT * FROM records WHERE is_allowed()",
    )
    .await;
    let backend = backend(&server.superuser_url(), vec![common("distributed_locks")]);
    let source = "table:public.distributed_locks";
    let observed = observe(&backend).await;
    assert_eq!(observed.names_in(source), ["a"]);
    assert!(
        observed.fault(source).contains("no reads by name"),
        "{:?}",
        observed.fault(source)
    );
    assert!(observed.read_sources.is_empty());
}
