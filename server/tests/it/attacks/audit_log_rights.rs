//! Someone with the password of the server's database role, or of any other role, tries to change the audit log or to stop it.

use domain::access::{Grant, Role};
use leasehold::clock::Clock;
use leasehold::db::Db;
use leasehold::doctor::{self, Level};
use leasehold::identity::{NewToken, Who};
use leasehold::serve::Serving;
use leasehold::throwaway::{Postgres, PostgresOptions, Throwaway};
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};
use tokio_util::sync::CancellationToken;

use crate::support::serving::serve_on;

/// As it stands.
const ROLES: &str = include_str!("../../../../docs/deploy/postgres-roles.sql");
const DATABASE: &str = "leasehold";

/// Durable: the doctor has nothing to say about a store that may lose what it committed.
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

/// An act that is an entry of the audit log.
async fn create_token(serving: &Serving, name: &str) -> leasehold::identity::Secret {
    let new = NewToken {
        name: name.to_owned(),
        grants: vec![Grant::everywhere(Role::Client)],
        expires_in: None,
    };
    let created = serving.identity.create_token(&Who::system("test"), new).await;
    created.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_servers_role_adds_to_the_audit_log_and_changes_nothing() {
    // The set-up of the documentation from nothing: roles, migration by the owner, roles again, a server without rights to
    // change tables, and what its role tries beside it.
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
    leasehold::lease::migrate(&owner).await.unwrap();
    run_as_admin(&postgres, ROLES).await;

    let stop = CancellationToken::new();
    let serving = serve_on(&server, &stop).await;
    let token = create_token(&serving, "billing").await;
    let acquire = reqwest::Client::new()
        .post(format!("http://{}/v1/locks/acquire", serving.address))
        .bearer_auth(token.expose())
        .json(&serde_json::json!({"resource": "jobs/1", "ownerId": "w", "ttlSeconds": 30}));
    let acquired = acquire.send().await.unwrap();
    assert_eq!(acquired.status(), 200, "{}", acquired.text().await.unwrap());

    let mut session = PgConnection::connect(&server).await.unwrap();
    for attack in [
        "UPDATE audit_rows SET reason = 'another'",
        "DELETE FROM audit_rows",
        "TRUNCATE audit_rows",
        "ALTER TABLE audit_rows DISABLE TRIGGER ALL",
        "DROP TABLE audit_rows",
        "CREATE OR REPLACE FUNCTION audit_rows_stand() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'",
        "DELETE FROM _sqlx_migrations",
        "CREATE TABLE audit_rows_2 (seq bigint)",
    ] {
        let refused = session.execute(attack).await.unwrap_err().to_string();
        let is_refused = refused.contains("permission denied") || refused.contains("must be owner");
        assert!(is_refused, "{attack}: {refused}");
    }
    stop.cancel();
    assert_eq!(serving.ended().await, None);
    // A second start, and what the doctor says.
    let stop = CancellationToken::new();
    let serving = serve_on(&server, &stop).await;
    let said = findings(&server).await;
    assert!(
        said.iter()
            .any(|(level, text)| *level == Level::Ok && text.contains("two roles")),
        "{said:?}"
    );
    assert!(said.iter().all(|(level, _)| *level != Level::Fault), "{said:?}");
    let said = findings(&owner).await;
    assert!(
        said.iter()
            .any(|(_, text)| text.contains("one role owns the tables")),
        "{said:?}"
    );
    run_as_admin(&postgres, "GRANT UPDATE ON audit_rows TO leasehold").await;
    let said = findings(&server).await;
    assert!(
        said.iter()
            .any(|(level, text)| *level == Level::Warning && text.contains("may change")),
        "{said:?}"
    );
    stop.cancel();
    assert_eq!(serving.ended().await, None);
}

/// Of the store.
async fn findings(store: &str) -> Vec<(Level, String)> {
    let config = leasehold::config::Config::load(&leasehold::config::Sources {
        file: Some(leasehold::config::FileSource {
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
    // A role that may connect takes the advisory lock of earlier versions, and tries the row that counts.
    let postgres = start_postgres().await;
    let stop = CancellationToken::new();
    let serving = serve_on(&postgres.superuser_url_to(DATABASE), &stop).await;
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
    create_token(&serving, "while-held").await;
    let appended = AssertSqlSafe("SELECT count(*) FROM audit_rows WHERE action = 'TOKEN_CREATE'");
    let mut admin = PgConnection::connect(&postgres.superuser_url_to(DATABASE))
        .await
        .unwrap();
    let appended: i64 = sqlx::query_scalar(appended).fetch_one(&mut admin).await.unwrap();
    assert_eq!(appended, 1);
    stop.cancel();
    assert_eq!(serving.ended().await, None);
}

#[tokio::test]
async fn a_row_of_the_audit_log_cannot_be_replaced_on_sqlite() {
    // `INSERT OR REPLACE` deletes the row before it: by the connections of the server, triggers see that.
    let folder = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}", folder.path().join("leasehold.db").display());
    let Db::Sqlite(pool) = Db::open(&store).await.unwrap() else {
        panic!("the store is a file")
    };
    let row = "(seq, created_at, action, phase, outcome, actor_id, actor_name, prev_hash, hash)
        VALUES (1, 1, 'LOGIN', 'outcome', 'ok', 'a', 'ann', 'p', 'h')";
    let insert = |verb: &str| AssertSqlSafe(format!("{verb} INTO audit_rows {row}"));
    sqlx::query(insert("INSERT")).execute(&pool).await.unwrap();
    for verb in ["INSERT OR REPLACE", "REPLACE"] {
        let refused = sqlx::query(insert(verb)).execute(&pool).await.unwrap_err();
        assert!(refused.to_string().contains("never deleted"), "{verb}: {refused}");
    }
}
