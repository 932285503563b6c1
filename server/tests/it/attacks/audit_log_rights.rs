//! Someone with the password of the server's database role, or of any other role, tries to change the audit log or to stop it.

use ::testkit::{Postgres, PostgresOptions, Throwaway};
use domain::access::Role;
use leasehold::doctor::{self, Level};
use runtime::clock::Clock;
use runtime::db::Db;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};

use crate::support::{Store, TestServer, on};

/// The documented file, unchanged.
const ROLES: &str = include_str!("../../../../docs/deploy/postgres-roles.sql");
const DATABASE: &str = "leasehold";

/// Durable: the doctor reports no risk of losing commits.
async fn start_postgres() -> Postgres {
    let postgres = Throwaway::postgres(PostgresOptions::default()).await.unwrap();
    let mut admin = PgConnection::connect(&postgres.superuser_url()).await.unwrap();
    admin.execute("CREATE DATABASE leasehold").await.unwrap();
    postgres
}

async fn run_as_admin(postgres: &Postgres, sql: &'static str) {
    let mut admin = PgConnection::connect(&postgres.superuser_url_to(DATABASE))
        .await
        .unwrap();
    sqlx::raw_sql(sql).execute(&mut admin).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_servers_role_adds_to_the_audit_log_and_changes_nothing() {
    // The documented set-up from scratch: roles, migration by the owner, roles again, a server
    // without permission to change tables, and forbidden statements of its role.
    let postgres = start_postgres().await;
    let (owner, server) = (
        postgres.url("leasehold_owner", DATABASE),
        postgres.url("leasehold", DATABASE),
    );
    run_as_admin(&postgres, ROLES).await;
    let too_early = Db::open(&server).await.unwrap_err().to_string();
    assert!(
        too_early.contains("run `leasehold migrate` as the owner"),
        "{too_early}"
    );
    lease::migrate(&owner, &lease::LeaseConfig::default())
        .await
        .unwrap();
    run_as_admin(&postgres, ROLES).await;

    let running = TestServer::builder().start_on(Store::at(&server)).await;
    // An act that is an entry of the audit log.
    let token = running.token("billing", on(Role::Client, None, None)).await;
    let (status, acquired) = running.as_user(&token).acquire("jobs/1").await;
    assert_eq!(status, 200, "{acquired}");

    let mut session = PgConnection::connect(&server).await.unwrap();
    for attack in [
        "UPDATE audit_entries SET reason = 'another'",
        "DELETE FROM audit_entries",
        "TRUNCATE audit_entries",
        "ALTER TABLE audit_entries DISABLE TRIGGER ALL",
        "DROP TABLE audit_entries",
        "CREATE OR REPLACE FUNCTION audit_entries_refuse_change() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'",
        "DELETE FROM _sqlx_migrations",
        "CREATE TABLE audit_entries_2 (seq bigint)",
    ] {
        let refused = session.execute(attack).await.unwrap_err().to_string();
        let is_refused = refused.contains("permission denied") || refused.contains("must be owner");
        assert!(is_refused, "{attack}: {refused}");
    }
    running.stop().await;
    // A second start, and the doctor's report.
    let running = TestServer::builder().start_on(Store::at(&server)).await;
    let listed = findings(&server).await;
    assert!(
        listed
            .iter()
            .any(|(level, text)| *level == Level::Ok && text.contains("two roles")),
        "{listed:?}"
    );
    assert!(
        listed.iter().all(|(level, _)| *level != Level::Fault),
        "{listed:?}"
    );
    let listed = findings(&owner).await;
    assert!(
        listed
            .iter()
            .any(|(_, text)| text.contains("one role owns the tables")),
        "{listed:?}"
    );
    run_as_admin(&postgres, "GRANT UPDATE ON audit_entries TO leasehold").await;
    let listed = findings(&server).await;
    assert!(
        listed
            .iter()
            .any(|(level, text)| *level == Level::Warning && text.contains("may change")),
        "{listed:?}"
    );
    running.stop().await;
}

/// Of the store.
async fn findings(store: &str) -> Vec<(Level, String)> {
    let config = config::Config::load(&config::ConfigSources {
        file: Some(config::FileSource {
            path: "leasehold.toml".into(),
            text: format!("store = \"{store}\"\n"),
        }),
        ..Default::default()
    });
    let findings = doctor::examine(&config.unwrap(), &Clock::start()).await;
    let of_store = findings.into_iter().filter(|one| one.check == "store");
    of_store.map(|one| (one.level, one.found)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn other_roles_cannot_hold_the_lock_of_the_audit_log() {
    // A role that may connect takes the advisory lock of earlier versions, and tries to lock the row that is used now.
    let postgres = start_postgres().await;
    let store = Store::at(&postgres.superuser_url_to(DATABASE));
    let running = TestServer::builder().start_on(store).await;
    run_as_admin(&postgres, "CREATE ROLE bystander LOGIN").await;
    let mut bystander = PgConnection::connect(&postgres.url("bystander", DATABASE))
        .await
        .unwrap();
    bystander
        .execute("SELECT pg_advisory_lock(7811290231445)")
        .await
        .unwrap();
    let refused = bystander
        .execute("SELECT id FROM audit_append_lock FOR UPDATE")
        .await;
    assert!(refused.unwrap_err().to_string().contains("permission denied"));
    running.token("while-held", on(Role::Client, None, None)).await;
    let appended = AssertSqlSafe("SELECT count(*) FROM audit_entries WHERE action = 'TOKEN_CREATE'");
    let mut admin = PgConnection::connect(&postgres.superuser_url_to(DATABASE))
        .await
        .unwrap();
    let appended: i64 = sqlx::query_scalar(appended).fetch_one(&mut admin).await.unwrap();
    assert_eq!(appended, 1);
    running.stop().await;
}

#[tokio::test]
async fn a_row_of_the_audit_log_cannot_be_replaced_on_sqlite() {
    // `INSERT OR REPLACE` first deletes the row: on connections of the server, triggers fire for that too.
    let folder = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}", folder.path().join("leasehold.db").display());
    let Db::Sqlite(pool) = Db::open(&store).await.unwrap() else {
        panic!("the store is a file")
    };
    let row = "(seq, created_at, action, phase, outcome, actor_id, actor_name, prev_hash, hash)
        VALUES (1, 1, 'LOGIN', 'outcome', 'ok', 'a', 'ann', 'p', 'h')";
    let insert = |verb: &str| AssertSqlSafe(format!("{verb} INTO audit_entries {row}"));
    sqlx::query(insert("INSERT")).execute(&pool).await.unwrap();
    for verb in ["INSERT OR REPLACE", "REPLACE"] {
        let refused = sqlx::query(insert(verb)).execute(&pool).await.unwrap_err();
        assert!(refused.to_string().contains("never deleted"), "{verb}: {refused}");
    }
}
