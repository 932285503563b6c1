//! Back up and restore by the commands of docs/operations.md, on both stores, while clients acquire locks.

mod installation;
mod load;

use ::testkit::{Postgres, PostgresOptions, Throwaway};
use reqwest::Method;
use serde_json::{Value, json};
use sqlx::{Connection as _, PgConnection, SqliteConnection};

use self::installation::{Installation, block};
use self::load::Load;
use crate::process::running_server::make_token;
use testkit::eventually;

const ROLES: &str = include_str!("../../../../docs/deploy/postgres-roles.sql");
const LIFTED: u64 = 1 << 32;
/// Of the lock that is held. A name is bytes there.
const EVENTS: &str = "SELECT count(*) FROM lock_events WHERE resource = $1";

/// A held lock, a user, a rule and an event of history: the restore must bring them back.
async fn furnish(on: &Installation, events: impl AsyncFn() -> i64) -> Value {
    let held = json!({"resource": "jobs:held", "ownerId": "w", "ttlSeconds": 900});
    let held = on.send(Method::POST, "/v1/locks/acquire", held).await;
    let ada = json!({"name": "ada", "grants": [{"role": "viewer"}], "password": "correct horse battery"});
    on.send(Method::POST, "/v1/users", ada).await;
    rule(on, "before").await;
    eventually("the lock is in the history", async || events().await > 0).await;
    held
}

async fn rule(on: &Installation, id: &str) {
    let rule = json!({"condition": "contention", "id": id, "prefix": "nothing/", "anyPrefix": true});
    on.send(Method::PUT, "/v1/rules", rule).await;
}

/// The state is that of the backup, the audit log is complete, and each new token is above all tokens granted before.
async fn is_restored(on: &Installation, held: &Value, output: &str, seen: load::Tokens) {
    assert!(output.contains("entries verified"), "{output}");
    let renew = format!("/v1/locks/{}/renew", held["leaseId"].as_str().unwrap());
    let renewed = on.send(Method::POST, &renew, json!({})).await;
    assert_eq!(renewed["fencingToken"], held["fencingToken"]);
    let users = on.json("/v1/users").await.to_string();
    assert!(users.contains("\"ada\""), "{users}");
    let rules = on.json("/v1/rules").await.to_string();
    assert!(
        rules.contains("\"before\"") && !rules.contains("\"after\""),
        "{rules}"
    );
    let load = Load::start(on, seen, LIFTED);
    load.goes_on(30).await;
    load.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn documented_sqlite_backup_restores_without_a_repeated_token() {
    // Detects commands that fail, an incomplete or torn copy, a restored store that is served without raised tokens,
    // and a repeated token: on the same machine, and on another that has no witness.
    let (mut here, token) = Installation::on_sqlite().await;
    here.start().await;
    let file = here.path().join("leasehold.history.db").display().to_string();
    let events = async || -> i64 {
        let mut connection = SqliteConnection::connect(&format!("sqlite:{file}"))
            .await
            .unwrap();
        let read = sqlx::query_scalar(EVENTS).bind(&b"jobs:held"[..]);
        read.fetch_one(&mut connection).await.unwrap()
    };
    let load = Load::start(&here, load::Tokens::new(), 0);
    let held = furnish(&here, &events).await;
    load.goes_on(30).await;
    here.types(&block("VACUUM INTO")).await;
    rule(&here, "after").await;
    load.goes_on(100).await;
    let seen = load.stop().await;
    // To another machine, which has only the backup.
    let there = Installation::new("sqlite:leasehold.db", &token);
    copy(&here, &there, "backup/newest", "backup/newest");
    // Once more, without the step that raises the tokens.
    let mut forgot = Installation::new("sqlite:leasehold.db", &token);
    copy(&here, &forgot, "backup/newest", ".");

    let restore = block("backup/newest/$part.db");
    let (before_migration, migration) = restore.split_once("leasehold migrate").unwrap();
    here.types(before_migration).await;
    let refusal = here.is_refused().await;
    assert!(
        refusal.contains("the store was rewound") && refusal.contains("--raise-epoch"),
        "{refusal}"
    );
    let output = here.types(&format!("leasehold migrate{migration}")).await;
    assert!(output.contains("this is epoch 2"), "{output}");
    is_restored(&here, &held, &output, seen.clone()).await;
    assert!(events().await > 0);

    let mut there = there;
    let output = there.types(&restore).await;
    assert!(output.contains("this is epoch 2"), "{output}");
    assert!(!there.log().contains("has no witness"), "lifted twice");
    is_restored(&there, &held, &output, seen.clone()).await;

    forgot.start().await;
    let verified = migration.lines().last().unwrap();
    let verified = forgot.types(verified).await;
    assert!(forgot.log().contains("has no witness file"));
    is_restored(&forgot, &held, &verified, seen).await;
}

/// The parts of a backup, into the folder of another installation.
fn copy(from: &Installation, to: &Installation, folder: &str, into: &str) {
    let into = to.path().join(into);
    std::fs::create_dir_all(&into).unwrap();
    for part in ["leasehold.db", "leasehold.console.db", "leasehold.history.db"] {
        std::fs::copy(from.path().join(folder).join(part), into.join(part)).unwrap();
    }
}

/// With the account and the database that the page names.
async fn postgres() -> Postgres {
    let options = PostgresOptions {
        fast: true,
        ..PostgresOptions::default()
    };
    let postgres = Throwaway::postgres(options).await.unwrap();
    let mut admin = PgConnection::connect(&postgres.superuser_url()).await.unwrap();
    for statement in [
        "CREATE ROLE leasehold LOGIN",
        "CREATE DATABASE leasehold OWNER leasehold",
    ] {
        sqlx::raw_sql(statement).execute(&mut admin).await.unwrap();
    }
    postgres
}

/// An installation on Postgres, dumped under load, which continued after that.
struct Dumped {
    cluster: Postgres,
    here: Installation,
    token: String,
    held: Value,
    seen: load::Tokens,
}

impl Dumped {
    async fn make() -> Self {
        let cluster = postgres().await;
        let store = cluster.url("leasehold", "leasehold");
        let token = make_token(&store).await;
        let mut here = Installation::new(&store, &token).with("POSTGRES_ADMIN", cluster.superuser_url());
        here.start().await;
        let load = Load::start(&here, load::Tokens::new(), 0);
        let held = furnish(&here, async || events_on_postgres(&cluster).await).await;
        load.goes_on(30).await;
        here.types(&block("pg_dump ")).await;
        rule(&here, "after").await;
        load.goes_on(100).await;
        let seen = load.stop().await;
        Self {
            cluster,
            here,
            token,
            held,
            seen,
        }
    }
}

async fn events_on_postgres(cluster: &Postgres) -> i64 {
    let store = cluster.url("leasehold", "leasehold");
    let mut connection = PgConnection::connect(&store).await.unwrap();
    let read = sqlx::query_scalar(EVENTS).bind(&b"jobs:held"[..]);
    let count = read.fetch_one(&mut connection).await.unwrap();
    // A database with open connections cannot be renamed.
    connection.close().await.unwrap();
    count
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn documented_postgres_backup_restores_without_a_repeated_token() {
    // As on SQLite: into a new database of the same cluster, where the page's own line lifts the tokens.
    let mut dumped = Dumped::make().await;
    let output = dumped.here.types(&block("pg_restore ")).await;
    assert!(output.contains("this is epoch 2"), "{output}");
    is_restored(&dumped.here, &dumped.held, &output, dumped.seen).await;
    assert!(events_on_postgres(&dumped.cluster).await > 0);
}

/// As a superuser, in the database of the store.
async fn divide_roles(cluster: &Postgres) {
    let mut admin = PgConnection::connect(&cluster.superuser_url_to("leasehold"))
        .await
        .unwrap();
    sqlx::raw_sql(ROLES).execute(&mut admin).await.unwrap();
    // A database with open connections cannot be renamed.
    admin.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn documented_postgres_restore_keeps_two_roles() {
    // The dump has default privileges of the owner, which the server's role may not set. The file of the roles runs before the
    // start, as the page says.
    let cluster = postgres().await;
    let store = cluster.url("leasehold", "leasehold");
    let token = make_token(&store).await;
    divide_roles(&cluster).await;
    let mut here = Installation::new(&store, &token).with("POSTGRES_ADMIN", cluster.superuser_url());
    here.start().await;
    here.types(&block("pg_dump ")).await;
    let restore = block("pg_restore ");
    let (before_start, start) = restore.split_once("systemctl start").unwrap();
    let output = here.types(before_start).await;
    assert!(output.contains("this is epoch 2"), "{output}");
    divide_roles(&cluster).await;
    let output = here.types(&format!("systemctl start{start}")).await;
    assert!(output.contains("entries verified"), "{output}");
    let mut server = PgConnection::connect(&store).await.unwrap();
    let attack = sqlx::raw_sql("DELETE FROM audit_entries").execute(&mut server);
    let refused = attack.await.unwrap_err().to_string();
    assert!(refused.contains("permission denied"), "{refused}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restore_into_another_postgres_cluster_raises_the_tokens() {
    // The same commands without the line that lifts: the service notices.
    let mut dumped = Dumped::make().await;
    dumped.here.stop().await;
    let other = postgres().await;
    let store = other.url("leasehold", "leasehold");
    let mut there = Installation::new(&store, &dumped.token).with("POSTGRES_ADMIN", other.superuser_url());
    let dump = "leasehold.dump";
    std::fs::copy(dumped.here.path().join(dump), there.path().join(dump)).unwrap();
    let restore = block("pg_restore ");
    let before_migration: Vec<&str> = restore
        .lines()
        .filter(|line| !line.contains("--raise-epoch"))
        .collect();
    let output = there.types(&before_migration.join("\n")).await;
    assert!(
        there
            .log()
            .contains("was restored or promoted: every fencing token is raised")
    );
    is_restored(&there, &dumped.held, &output, dumped.seen).await;
}
