//! What dies with it: shown before, never wider at the act, never somebody else's, and not done when it cannot be told.

use domain::access::Role;
use leasehold::throwaway::{Postgres, PostgresOptions, Throwaway};
use serde_json::Value;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};

use super::stage::{Home, Stage, code, on, state};

/// A row whose token would be lost with it: no expiry to set, no sequence behind the token.
const COUNTED: &str =
    "CREATE TABLE counted (resource text PRIMARY KEY, owner_id text, lease_id text, fencing_token bigint);
    INSERT INTO counted VALUES ('jobs/a', 'w', 'l-1', 7)";

pub(crate) async fn world() -> (Postgres, Stage) {
    let options = PostgresOptions {
        fast: true,
        ..Default::default()
    };
    let postgres = Throwaway::postgres(options).await.unwrap();
    session(&postgres, "set-up", COUNTED).await;
    let url = postgres.superuser_url();
    let toml = format!(
        "[[backend]]\nname = \"orders-db\"\nkind = \"postgres\"\nurl = \"{url}\"\nunlock_url = \"{url}\"\npoll = \"1s\"\n\
         advisory_locks = true\n[[backend.lease_table]]\ntable = \"public.counted\"\n\
         columns = {{ expires_at = \"\", created_at = \"\", updated_at = \"\" }}\n"
    );
    let stage = Stage::on(Home::sqlite(), &toml).await;
    (postgres, stage)
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
async fn a_sessions_whole_loss_is_shown_and_a_neighbour_is_not_taken_along() {
    // One session with two keys: who may end only one of them is refused, without the other's name; who may all is told.
    let (postgres, stage) = world().await;
    let operator = stage.operator().await;
    let key = "advisory:postgres:42";
    let narrow = stage.token("narrow", on(Role::Operator, None, Some(key))).await;
    let mut holder = session(
        &postgres,
        "billing",
        "SELECT pg_advisory_lock(42); SELECT pg_advisory_lock(43)",
    )
    .await;
    let held = stage.seen(&operator, "orders-db", key).await;
    let refused = stage.begin(&narrow, &held).await;
    assert_eq!(code(&refused), (403, "forbidden"), "{}", refused.1);
    // Not of the whole: the request's id is by chance.
    assert!(!refused.1["detail"].to_string().contains("43"), "{}", refused.1);
    let id = stage.begun(&operator, &held).await;
    let unlock = stage.state(&operator, &id).await;
    assert_eq!(
        (dies(&unlock, "session"), dies(&unlock, "lock")),
        (1, 1),
        "{unlock}"
    );
    assert!(is_alive(&mut holder).await);
    let reply = stage.confirm(&operator, &id, key).await;
    assert_eq!(state(&reply), (200, "released"), "{}", reply.1);
    assert!(!is_alive(&mut holder).await);
}

#[tokio::test]
async fn what_came_to_hang_on_it_since_is_not_broken() {
    // Between look and act the same session takes one key more: refused, with the reason; looked at anew, it is done.
    let (postgres, stage) = world().await;
    let operator = stage.operator().await;
    let key = "advisory:postgres:42";
    let mut holder = session(&postgres, "billing", "SELECT pg_advisory_lock(42)").await;
    let held = stage.seen(&operator, "orders-db", key).await;
    let id = stage.begun(&operator, &held).await;
    holder.execute("SELECT pg_advisory_lock(77)").await.unwrap();
    let reply = stage.confirm(&operator, &id, key).await;
    assert_eq!(state(&reply), (200, "refused"), "{}", reply.1);
    assert!(reply.1["outcome"]["why"].as_str().unwrap().contains("77"));
    assert!(is_alive(&mut holder).await);
    assert_eq!(stage.told(&id).await, ["intent pending", "outcome refused"]);
    let again = stage.begun(&operator, &held).await;
    assert_eq!(dies(&stage.state(&operator, &again).await, "lock"), 1);
    assert_eq!(
        state(&stage.confirm(&operator, &again, key).await),
        (200, "released")
    );
    assert!(!is_alive(&mut holder).await);
}

#[tokio::test]
async fn what_cannot_be_told_is_not_done() {
    // A row whose token would go with it: 503 with the reason, a row in the record, and the lock is there.
    let (postgres, stage) = world().await;
    let operator = stage.operator().await;
    let held = stage.seen(&operator, "orders-db", "jobs/a").await;
    let refused = stage.begin(&operator, &held).await;
    assert_eq!(code(&refused), (503, "blast_radius_unknown"), "{}", refused.1);
    assert_eq!(
        stage.record().await.last().unwrap().outcome,
        "blast_radius_unknown"
    );
    let mut user = session(&postgres, "look", "SELECT 1").await;
    let left: i64 = sqlx::query_scalar("SELECT count(*) FROM counted")
        .fetch_one(&mut user)
        .await
        .unwrap();
    assert_eq!(left, 1);
}
