//! A tenant reports enough rejected writes that those of another are no longer among the
//! newest rows.

use crate::support::{TestServer, on, reply};
use domain::access::Role;
use reqwest::Client;
use runtime::db::Db;
use serde_json::json;

#[tokio::test]
async fn foreign_rejections_do_not_displace_own_rows() {
    // One row of tenant_1, then more rows of tenant_2 than the page reads.
    let server = TestServer::builder().redis().start().await;
    let tenant = server
        .token("tenant", on(Role::Client, None, Some("tenant_1")))
        .await;
    let report = json!({"resource": "tenant_1:ledger", "fencingToken": 3, "highestToken": 5, "source": "db"});
    let request = Client::new()
        .post(server.url("/v1/fencing/rejections"))
        .json(&report);
    let (status, _) = reply(tenant.authenticate(request)).await;
    assert!((200..300).contains(&status), "{status}");
    let flood = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 21000)
        INSERT INTO fencing_rejections (resource, fencing_token, highest_token, source, reason, at, recorded_at)
        SELECT 'tenant_2:flood', 1, 2, 'db', 'stale_token', at, recorded_at
        FROM n, (SELECT at, recorded_at FROM fencing_rejections LIMIT 1)";
    let Db::Sqlite(pool) = Db::open(&server.store.url).await.unwrap() else {
        panic!("the store is a file")
    };
    sqlx::query(flood).execute(&pool).await.unwrap();
    let page = Client::new()
        .get(server.url("/fencing"))
        .bearer_auth(tenant.secret());
    let page = page.send().await.unwrap();
    assert_eq!(page.status(), 200);
    let page = page.text().await.unwrap();
    assert!(page.contains("tenant_1:ledger"), "{page}");
    assert!(!page.contains("tenant_2"), "{page}");
}
