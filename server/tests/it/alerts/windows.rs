//! Windows of rules on prefixes: a rule that is new counts what happened before it.

use domain::alerts::Draft;
use leasehold::identity::Principal;
use runtime::clock::Clock;
use runtime::db::Db;
use sqlx::AssertSqlSafe;

use super::servers::Server;
use crate::support::store::Store;
use testkit::eventually;

/// In the last minutes: 30 holdings of each of two tenants, those of the first with waiters.
async fn fill(home: &Store, backend: &str) {
    let db = Db::open(&home.url).await.unwrap();
    let history = db.history(&home.url).await.unwrap();
    let from = Clock::start().now().wall.timestamp_millis() - 120_000;
    let rows = match &history {
        Db::Sqlite(_) => "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 59)",
        Db::Postgres(_) => "WITH n(i) AS (SELECT generate_series(0, 59))",
    };
    let blob = match &history {
        Db::Sqlite(_) => "CAST('tenant_' || (i % 2) || ':close' AS BLOB)",
        Db::Postgres(_) => "convert_to('tenant_' || (i % 2) || ':close', 'UTF8')",
    };
    let insert = format!(
        "INSERT INTO lock_events (at, kind, backend, source, resource, owner_id, fencing_token, waiters)
         {rows} SELECT {from} + i * 1000, 'acquired', '{backend}', 'lease', {blob}, 'w', '7', 1 - i % 2 FROM n ORDER BY 1"
    );
    match &history {
        Db::Sqlite(pool) => drop(sqlx::raw_sql(AssertSqlSafe(insert)).execute(pool).await.unwrap()),
        Db::Postgres(pool) => drop(sqlx::raw_sql(AssertSqlSafe(insert)).execute(pool).await.unwrap()),
    }
    history.close().await;
    db.close().await;
}

async fn fires(server: &Server, rule: &str) -> bool {
    let open = server.alerts.open(&Default::default()).await.unwrap();
    open.iter()
        .any(|open| open.kept.alert.is_firing() && open.kept.alert.rule.as_str() == rule)
}

/// More than 60 % of the attempts on this prefix.
async fn save(server: &Server, id: &str, prefix: &str) {
    let mut draft = Draft::from(&server.alerts.rule("contention").await.unwrap().rule);
    (draft.id, draft.name, draft.prefix) = (id.to_owned(), id.to_owned(), prefix.to_owned());
    draft.for_ = Some("0s".to_owned());
    draft.with.insert("share".to_owned(), "60%".to_owned());
    draft.with.insert("window".to_owned(), "1h".to_owned());
    let who = Principal::system("test");
    server.alerts.save_rule(&who, draft, None, true).await.unwrap();
}

async fn counts_the_past(home: Store) {
    fill(&home, "builtin").await;
    let server = Server::start(&home).await;
    // The built-in rule counts the attempts of all names: half of them waited, which is not above its share.
    let half = server.alerts.rule("contention").await.unwrap().rule;
    assert_eq!(server.alerts.preview(&half).await.unwrap().count, 0);
    // New rules on one tenant each: all attempts at the first waited, none at the second.
    save(&server, "first", "tenant_0:").await;
    save(&server, "second", "tenant_1:").await;
    save(&server, "both", "tenant_*").await;
    eventually("the past of the new rule counts", || fires(&server, "first")).await;
    super::servers::rounds().await;
    assert!(!fires(&server, "second").await && !fires(&server, "both").await);
    for id in ["first", "second", "both"] {
        let rule = server.alerts.rule(id).await.unwrap().rule;
        let previewed = server.alerts.preview(&rule).await.unwrap();
        assert_eq!(previewed.count, u64::from(id == "first"), "{id}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_rule_counts_its_past_on_sqlite() {
    Box::pin(counts_the_past(Store::sqlite())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_rule_counts_its_past_on_postgres() {
    Box::pin(counts_the_past(Store::postgres().await)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_past_of_a_removed_backend_fires_nothing() {
    // The same happened on a backend that is configured and on one that is no longer.
    let home = Store::sqlite();
    fill(&home, "builtin").await;
    fill(&home, "removed").await;
    let server = Server::start(&home).await;
    save(&server, "first", "tenant_0:").await;
    eventually("the past of the new rule counts", || fires(&server, "first")).await;
    super::servers::rounds().await;
    let open = server.alerts.open(&Default::default()).await.unwrap();
    let firing = open.iter().filter(|open| open.rule.id.as_str() == "first");
    let backends: Vec<&str> = firing
        .map(|open| open.kept.alert.subject.backend().as_str())
        .collect();
    assert_eq!(backends, ["builtin"]);
    server.stop().await;
}
