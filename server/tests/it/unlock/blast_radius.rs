//! Blast radius: shown in the review, never wider at the release, never other tenants' locks, and no release when it
//! is unknown.

use crate::support::{Store, TestServer, code, on};
use crate::unlock::requests::state;
use ::testkit::{Postgres, PostgresOptions, Throwaway};
use domain::access::Role;
use serde_json::Value;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};

/// A row that holds its own token: no expiry to set, no sequence behind the token.
const COUNTED: &str =
    "CREATE TABLE counted (resource text PRIMARY KEY, owner_id text, lease_id text, fencing_token bigint);
    INSERT INTO counted VALUES ('jobs/a', 'w', 'l-1', 7)";

pub(crate) async fn postgres_and_server() -> (Postgres, TestServer) {
    postgres_and_server_on(Store::sqlite()).await
}

/// The server's own data is in this store, not in the Postgres that it watches.
pub(crate) async fn postgres_and_server_on(store: Store) -> (Postgres, TestServer) {
    let options = PostgresOptions {
        fast: true,
        ..Default::default()
    };
    let postgres = Throwaway::postgres(options).await.unwrap();
    session(&postgres, "set-up", COUNTED).await;
    let url = postgres.superuser_url();
    let toml = format!(
        "[[backend]]\nname = \"orders-db\"\nkind = \"postgres\"\nurl = \"{url}\"\nunlock_url = \"{url}\"\npoll_interval = \"1s\"\n\
         advisory_locks = true\n[[backend.lease_table]]\ntable = \"public.counted\"\n\
         columns = {{ expires_at = \"\", created_at = \"\", updated_at = \"\" }}\n"
    );
    let server = TestServer::builder().config(&toml).start_on(store).await;
    (postgres, server)
}

/// A session with a name, after these statements.
pub(crate) async fn session(postgres: &Postgres, name: &str, sql: &str) -> PgConnection {
    let mut session = PgConnection::connect(&postgres.superuser_url()).await.unwrap();
    let named = format!("SET application_name = '{name}'; {sql}");
    sqlx::raw_sql(AssertSqlSafe(named))
        .execute(&mut session)
        .await
        .unwrap();
    session
}

pub(crate) async fn is_alive(session: &mut PgConnection) -> bool {
    session.execute("SELECT 1").await.is_ok()
}

fn dies(unlock: &Value, kind: &str) -> usize {
    let radius = unlock["blastRadius"].as_array().unwrap();
    radius.iter().filter(|one| one["kind"] == kind).count()
}

#[tokio::test]
async fn the_blast_radius_of_a_session_is_complete_and_exact() {
    // One session with two keys: a user who may release only one of them is refused, without the other's name; a user
    // who may release both sees it.
    let (postgres, server) = postgres_and_server().await;
    let operator = server.operator().await;
    let key = "advisory:postgres:42";
    let narrow = server.token("narrow", on(Role::Operator, None, Some(key))).await;
    let mut holder = session(
        &postgres,
        "billing",
        "SELECT pg_advisory_lock(42); SELECT pg_advisory_lock(43)",
    )
    .await;
    let held = server.inventory_lock(&operator, "orders-db", key).await;
    let refused = server.begin(&narrow, &held).await;
    assert_eq!(code(&refused), (403, "forbidden"), "{}", refused.1);
    // Only the detail: the random request id may contain these digits.
    assert!(!refused.1["detail"].to_string().contains("43"), "{}", refused.1);
    let id = server.begun(&operator, &held).await;
    let unlock = server.unlock_state(&operator, &id).await;
    assert_eq!(
        (dies(&unlock, "session"), dies(&unlock, "lock")),
        (1, 1),
        "{unlock}"
    );
    assert!(is_alive(&mut holder).await);
    let reply = server.confirm(&operator, &id, key).await;
    assert_eq!(state(&reply), (200, "released"), "{}", reply.1);
    assert!(!is_alive(&mut holder).await);
}

#[tokio::test]
async fn a_grown_blast_radius_prevents_the_unlock() {
    // Between review and confirm the same session acquires one more key: refused, with the reason; after a new review
    // it is released.
    let (postgres, server) = postgres_and_server().await;
    let operator = server.operator().await;
    let key = "advisory:postgres:42";
    let mut holder = session(&postgres, "billing", "SELECT pg_advisory_lock(42)").await;
    let held = server.inventory_lock(&operator, "orders-db", key).await;
    let id = server.begun(&operator, &held).await;
    holder.execute("SELECT pg_advisory_lock(77)").await.unwrap();
    let reply = server.confirm(&operator, &id, key).await;
    assert_eq!(state(&reply), (200, "refused"), "{}", reply.1);
    assert!(reply.1["outcome"]["why"].as_str().unwrap().contains("77"));
    assert!(is_alive(&mut holder).await);
    assert_eq!(
        server.unlock_phases(&id).await,
        ["intent pending", "outcome refused"]
    );
    let again = server.begun(&operator, &held).await;
    assert_eq!(dies(&server.unlock_state(&operator, &again).await, "lock"), 1);
    assert_eq!(
        state(&server.confirm(&operator, &again, key).await),
        (200, "released")
    );
    assert!(!is_alive(&mut holder).await);
}

#[tokio::test]
async fn an_unknown_blast_radius_prevents_the_unlock() {
    // A row that holds its own token: 503 with the reason, an audit entry, and the lock stays.
    let (postgres, server) = postgres_and_server().await;
    let operator = server.operator().await;
    let held = server.inventory_lock(&operator, "orders-db", "jobs/a").await;
    let refused = server.begin(&operator, &held).await;
    assert_eq!(code(&refused), (503, "blast_radius_unknown"), "{}", refused.1);
    assert_eq!(
        server.unlock_entries().await.last().unwrap().outcome,
        "blast_radius_unknown"
    );
    let mut user = session(&postgres, "look", "SELECT 1").await;
    let left: i64 = sqlx::query_scalar("SELECT count(*) FROM counted")
        .fetch_one(&mut user)
        .await
        .unwrap();
    assert_eq!(left, 1);
}

#[tokio::test]
async fn a_lock_beyond_the_listed_ones_prevents_the_unlock() {
    // A session with more than a thousand locks acquires one that the list does not reach.
    let (postgres, server) = postgres_and_server().await;
    let operator = server.operator().await;
    let key = "advisory:postgres:42";
    let many =
        "SELECT pg_advisory_lock(42); SELECT count(pg_advisory_lock(n)) FROM generate_series(1001, 2100) n";
    let mut holder = session(&postgres, "billing", many).await;
    let held = server.inventory_lock(&operator, "orders-db", key).await;
    let id = server.begun(&operator, &held).await;
    holder.execute("SELECT pg_advisory_lock(9999)").await.unwrap();
    let reply = server.confirm(&operator, &id, key).await;
    assert_eq!(state(&reply), (200, "refused"), "{}", reply.1);
    let why = reply.1["outcome"]["why"].as_str().unwrap();
    assert!(
        why.contains("102 locks that are not listed, instead of 101"),
        "{why}"
    );
    assert!(is_alive(&mut holder).await);
}
