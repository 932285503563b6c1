//! A tenant reports so many refused writes that those of another are not among the newest rows any more.

use domain::access::Role;
use leasehold::db::Db;
use reqwest::{Client, StatusCode};
use serde_json::json;

use crate::people::stage::{Stage, call, on};

#[tokio::test]
async fn a_flood_of_others_does_not_push_own_rows_out_of_the_page() {
    // One row of tenant_1, then more rows of tenant_2 than the page reads.
    let stage = Stage::start().await;
    let tenant = stage
        .token("tenant", on(Role::Client, None, Some("tenant_1")))
        .await;
    let report = json!({"resource": "tenant_1:ledger", "fencingToken": 3, "highestToken": 5, "source": "db"});
    let request = Client::new()
        .post(stage.url("/v1/fencing/rejections"))
        .json(&report);
    let (status, _) = call(request, &tenant).await;
    assert!(status.is_success(), "{status}");
    let flood = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 21000)
        INSERT INTO fencing_rejections (resource, fencing_token, highest_token, source, reason, at, recorded_at)
        SELECT 'tenant_2:flood', 1, 2, 'db', 'stale_token', at, recorded_at
        FROM n, (SELECT at, recorded_at FROM fencing_rejections LIMIT 1)";
    let Db::Sqlite(pool) = Db::open(&stage.store).await.unwrap() else {
        panic!("the store is a file")
    };
    sqlx::query(flood).execute(&pool).await.unwrap();
    let page = Client::new()
        .get(stage.url("/fencing"))
        .bearer_auth(tenant.expose());
    let page = page.send().await.unwrap();
    assert_eq!(page.status(), StatusCode::OK);
    let page = page.text().await.unwrap();
    assert!(page.contains("tenant_1:ledger"), "{page}");
    assert!(!page.contains("tenant_2"), "{page}");
}
