//! The throwaway Postgres.

use std::time::Duration;

use leasehold_testkit::{Postgres, PostgresOptions, StartError, Throwaway};
use sqlx::{Connection, Executor, PgConnection};

use leasehold_testkit::{Certs, eventually, hangs};

async fn fast() -> Postgres {
    Throwaway::postgres(PostgresOptions {
        fast: true,
        ..Default::default()
    })
    .await
    .unwrap()
}

async fn connect(postgres: &Postgres) -> PgConnection {
    PgConnection::connect(&postgres.superuser_url()).await.unwrap()
}

#[tokio::test]
async fn two_clusters_have_different_identifiers() {
    // The first may save the template of the others.
    let mut identifiers = Vec::new();
    for _ in 0..3 {
        let postgres = fast().await;
        let mut connection = connect(&postgres).await;
        let found = sqlx::query_scalar("SELECT system_identifier FROM pg_control_system()")
            .fetch_one(&mut connection)
            .await;
        let found: i64 = found.unwrap();
        assert!(!identifiers.contains(&found), "{found} twice");
        identifiers.push(found);
        drop(connection);
        // The log of a copy carries its identifier too.
        postgres.kill().await.unwrap();
        postgres.restart().await.unwrap();
    }
}

#[tokio::test]
async fn a_role_made_by_the_caller_connects_by_its_url() {
    // No password anywhere: the superuser makes a role and a database, whose names need escaping.
    let postgres = fast().await;
    let mut root = connect(&postgres).await;
    root.execute(r#"CREATE ROLE "watch er" LOGIN"#).await.unwrap();
    root.execute(r#"CREATE DATABASE "or/ders" OWNER "watch er""#)
        .await
        .unwrap();
    let mut watcher = PgConnection::connect(&postgres.url("watch er", "or/ders"))
        .await
        .unwrap();
    let who: (String, String) = sqlx::query_as("SELECT current_user::text, current_database()::text")
        .fetch_one(&mut watcher)
        .await
        .unwrap();
    assert_eq!(who, ("watch er".to_owned(), "or/ders".to_owned()));
}

#[tokio::test]
async fn fsync_is_on_unless_the_fast_option_is_set() {
    // Measurements of durable grants depend on it. With a password, every connection needs it.
    let password = Some("p@ss word".to_owned());
    let postgres = Throwaway::postgres(PostgresOptions {
        password,
        ..Default::default()
    })
    .await
    .unwrap();
    let mut root = connect(&postgres).await;
    let fsync: String = sqlx::query_scalar("SHOW fsync")
        .fetch_one(&mut root)
        .await
        .unwrap();
    assert_eq!(fsync, "on");
    let stranger = PgConnection::connect(&postgres.url("postgres", "postgres")).await;
    assert!(stranger.is_err(), "without the password: {stranger:?}");
}

#[tokio::test]
async fn a_commit_survives_a_kill_and_the_address_stays() {
    // kill -9 right after a commit, with a session open; then the same port answers with the same row.
    let postgres = fast().await;
    let (port, pid) = (postgres.port(), postgres.pid());
    let mut before = connect(&postgres).await;
    before.execute("CREATE TABLE t AS SELECT 7 AS n").await.unwrap();
    postgres.kill().await.unwrap();
    assert_eq!(postgres.pid(), None);
    assert!(before.ping().await.is_err());
    assert!(PgConnection::connect(&postgres.superuser_url()).await.is_err());
    postgres.restart().await.unwrap();
    assert_eq!(postgres.port(), port);
    assert_ne!(postgres.pid(), pid);
    let n: i32 = sqlx::query_scalar("SELECT n FROM t")
        .fetch_one(&mut connect(&postgres).await)
        .await
        .unwrap();
    assert_eq!(n, 7);
}

#[tokio::test]
async fn a_clean_restart_ends_open_sessions() {
    // A fast shutdown does not wait for the session that is idle in a transaction.
    let postgres = fast().await;
    let mut idle = connect(&postgres).await;
    idle.execute("BEGIN").await.unwrap();
    postgres.restart().await.unwrap();
    assert!(idle.ping().await.is_err());
    connect(&postgres).await.ping().await.unwrap();
}

#[tokio::test]
async fn a_paused_server_answers_nothing_until_it_is_resumed() {
    // SIGSTOP must reach the session's own process, which is in a process group of its own.
    let postgres = fast().await;
    let mut session = connect(&postgres).await;
    postgres.pause().await.unwrap();
    {
        let answer = session.ping();
        tokio::pin!(answer);
        assert!(hangs(Duration::from_millis(200), &mut answer).await);
        postgres.resume().await.unwrap();
        answer.await.unwrap();
    }
    postgres.pause().await.unwrap();
    assert!(hangs(Duration::from_millis(200), connect(&postgres)).await);
    postgres.stop().await.unwrap();
}

#[tokio::test]
async fn faults_on_a_stopped_server_report_that_it_is_stopped() {
    // Stop and kill are satisfied already; pause and resume are not.
    let postgres = fast().await;
    postgres.stop().await.unwrap();
    postgres.stop().await.unwrap();
    postgres.kill().await.unwrap();
    let error = postgres.pause().await.unwrap_err();
    assert_eq!(error.to_string(), "the throwaway Postgres is not running");
    assert!(postgres.resume().await.is_err());
}

#[tokio::test]
async fn tls_is_verified_against_the_authority() {
    // verify-full with our authority connects encrypted; with the system's authorities it must not.
    let certs = Certs::make();
    let options = PostgresOptions {
        fast: true,
        tls: Some(certs.server()),
        ..Default::default()
    };
    let postgres = Throwaway::postgres(options).await.unwrap();
    let strict = format!("{}?sslmode=verify-full", postgres.superuser_url());
    let ours = format!("{strict}&sslrootcert={}", certs.ca().display());
    let mut session = PgConnection::connect(&ours).await.unwrap();
    let encrypted: bool = sqlx::query_scalar("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()")
        .fetch_one(&mut session)
        .await
        .unwrap();
    assert!(encrypted);
    assert!(PgConnection::connect(&strict).await.is_err());
}

#[tokio::test]
async fn a_server_that_cannot_start_shows_the_end_of_its_log() {
    // A setting that does not exist; and a port that is taken, also after trying again.
    let settings = vec![("no_such_setting".to_owned(), "1".to_owned())];
    let error = Throwaway::postgres(PostgresOptions {
        settings,
        ..Default::default()
    })
    .await
    .unwrap_err();
    assert!(matches!(error, StartError::Exited { .. }), "{error:?}");
    assert!(error.to_string().contains("no_such_setting"), "{error}");

    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let options = PostgresOptions {
        settings: vec![("port".to_owned(), port)],
        ..Default::default()
    };
    let error = Throwaway::postgres(options).await.unwrap_err();
    assert!(matches!(error, StartError::PortTaken { .. }), "{error:?}");
}

#[tokio::test]
async fn a_dropped_server_leaves_no_process_and_no_folder() {
    // Also when it was paused, which no polite signal ends.
    for paused in [false, true] {
        let postgres = fast().await;
        let session = connect(&postgres).await;
        let (folder, pid) = (postgres.folder().to_owned(), postgres.pid().unwrap());
        if paused {
            postgres.pause().await.unwrap();
        }
        drop(postgres);
        assert!(!folder.exists());
        eventually("the postmaster is gone", || async { !super::runs(pid) }).await;
        drop(session);
    }
}

#[tokio::test]
async fn a_killed_server_leaves_no_shared_memory_behind() {
    // kill -9 keeps Postgres from removing its System V segment; the machine has only 4096 of them.
    let postgres = fast().await;
    let pid_file = std::fs::read_to_string(postgres.folder().join("data/postmaster.pid")).unwrap();
    let segment = pid_file
        .lines()
        .nth(6)
        .unwrap()
        .split_whitespace()
        .nth(1)
        .unwrap()
        .to_owned();
    let exists = || {
        std::fs::read_to_string("/proc/sysvipc/shm")
            .unwrap()
            .split_whitespace()
            .any(|word| word == segment)
    };
    postgres.kill().await.unwrap();
    assert!(exists());
    drop(postgres);
    assert!(!exists());
}
