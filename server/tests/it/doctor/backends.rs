//! A backend that is down, one with too few permissions, and one with a wrong clock.

use ::testkit::{PostgresOptions, RedisOptions, Throwaway};
use sqlx::{Connection as _, PgConnection};

use super::command::{ConfigFolder, report};

#[tokio::test]
async fn an_unreachable_backend_is_named_with_address_and_remedy() {
    // A Redis that just stopped, and one that runs.
    let gone = Throwaway::redis(RedisOptions::default()).await.unwrap();
    let there = Throwaway::redis(RedisOptions::default()).await.unwrap();
    let config = ConfigFolder::new(&format!(
        "[[backend]]\nname = \"gone\"\nkind = \"redis\"\nurls = [\"{}\"]\ntimeout = \"2s\"\n\
         [[backend]]\nname = \"there\"\nkind = \"redis\"\nurls = [\"{}\"]\n",
        gone.url(),
        there.url()
    ));
    drop(gone);
    let report = config.doctor().await;
    report.has_one_fault(&["backend gone: ", "cannot connect", "→ Check that the server runs"]);
    assert!(
        report
            .level("ok")
            .iter()
            .any(|line| line.starts_with("backend there: reached"))
    );
}

#[tokio::test]
async fn wrong_permissions_come_with_the_correcting_grant() {
    // It may not read the table and may write another: the first is a fault, the second a warning.
    let postgres = Throwaway::postgres(PostgresOptions {
        fast: true,
        ..PostgresOptions::default()
    })
    .await
    .unwrap();
    let mut admin = PgConnection::connect(&postgres.superuser_url()).await.unwrap();
    let columns = "resource text PRIMARY KEY, owner_id text, lease_id text, fencing_token bigint,
        expires_at timestamptz, created_at timestamptz, updated_at timestamptz";
    let tables = format!(
        "CREATE ROLE watch LOGIN; GRANT pg_read_all_stats TO watch;
         CREATE TABLE hidden ({columns}); CREATE TABLE written ({columns}); GRANT SELECT, DELETE ON written TO watch;"
    );
    sqlx::raw_sql(sqlx::AssertSqlSafe(tables))
        .execute(&mut admin)
        .await
        .unwrap();
    let config = ConfigFolder::new(&format!(
        "[[backend]]\nname = \"orders\"\nkind = \"postgres\"\nurl = \"{}\"\n\
         [[backend.lease_table]]\ntable = \"public.hidden\"\n[[backend.lease_table]]\ntable = \"public.written\"\n",
        postgres.url("watch", "postgres")
    ));
    let report = config.doctor().await;
    assert_eq!(report.code, 1, "{report:#?}");
    let faults = report.level("fault").join("\n");
    assert!(
        faults.contains("hidden") && faults.contains("GRANT SELECT ON"),
        "{report:#?}"
    );
    let warnings = report.level("warning").join("\n");
    assert!(warnings.contains("REVOKE INSERT, UPDATE, DELETE"), "{report:#?}");
}

#[tokio::test]
async fn clock_offsets_are_reported_per_backend() {
    // Our clock is an hour ahead: every backend's is an hour behind it.
    let redis = Throwaway::redis(RedisOptions::default()).await.unwrap();
    let config = ConfigFolder::new(&format!(
        "[[backend]]\nname = \"cache\"\nkind = \"redis\"\nurls = [\"{}\"]\n",
        redis.url()
    ));
    let found = std::process::Command::new("faketime").arg("--version").output();
    found.expect("faketime is not installed; install it with: apt-get install -y faketime");
    let mut command = config.command("faketime");
    command
        .args([
            "-f",
            "+3600s",
            env!("CARGO_BIN_EXE_leasehold"),
            "doctor",
            "--json",
        ])
        .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
        .env("DONT_FAKE_MONOTONIC", "1");
    let report = report(command).await;
    report.has_one_fault(&[
        "backend cache: its clock is 3",
        "behind this server's",
        "→ timedatectl set-ntp true",
    ]);
}
