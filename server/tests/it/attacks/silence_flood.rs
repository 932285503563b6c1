//! An operator of a part creates short silences until those of other operators are no longer read.

use crate::support::{TestCaller, TestServer, code, on};
use domain::access::Role;
use domain::alerts::Labels;
use serde_json::{Value, json};

async fn silence(server: &TestServer, caller: &TestCaller, prefix: &str, lasts: &str) -> (u16, Value) {
    let body = json!({
        "matchers": [{"label": "prefix", "value": prefix}], "lasts": lasts, "comment": "maintenance",
    });
    server.as_user(caller).post("/v1/silences", &body).await
}

/// Whether an alert on a lock of the other operator is silenced.
async fn is_silenced(server: &TestServer) -> bool {
    let labels = Labels::from([("resource".to_owned(), "tenant_2/close".to_owned())]);
    let silences = server.serving.alerts.silences().await.unwrap();
    silences.iter().any(|silence| silence.matches(&labels))
}

#[tokio::test]
async fn silences_of_one_author_do_not_displace_others() {
    // A long silence of another operator; the 101st active one is refused, and accepted when one has ended.
    let server = TestServer::builder().start().await;
    let other = server
        .token("other", on(Role::Operator, None, Some("tenant_2")))
        .await;
    let tenant = server
        .token("tenant", on(Role::Operator, None, Some("tenant_1")))
        .await;
    assert_eq!(silence(&server, &other, "tenant_2", "2h").await.0, 201);
    let mut last = Value::Null;
    for _ in 0..100 {
        let (status, created) = silence(&server, &tenant, "tenant_1", "5m").await;
        assert_eq!(status, 201, "{created}");
        last = created;
    }
    let refused = silence(&server, &tenant, "tenant_1", "5m").await;
    assert_eq!(code(&refused), (409, "too_many"), "{}", refused.1);
    let detail = refused.1["detail"].as_str().unwrap();
    assert!(detail.contains("100 active silences of one author"), "{detail}");
    assert!(is_silenced(&server).await);
    assert_eq!(silence(&server, &other, "tenant_2", "2h").await.0, 201);

    let ended = format!("/v1/silences/{}", last["id"].as_str().unwrap());
    assert_eq!(server.as_user(&tenant).delete(&ended).await.0, 204);
    assert_eq!(silence(&server, &tenant, "tenant_1", "5m").await.0, 201);
}

#[tokio::test]
async fn silences_of_many_authors_do_not_displace_others() {
    // The longest silence, and 999 short ones of other authors.
    let server = TestServer::builder().start().await;
    let operator = server.operator().await;
    assert_eq!(silence(&server, &operator, "tenant_2", "90d").await.0, 201);
    let others = "WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < 999)
        INSERT INTO silences (id, matchers, starts_at, ends_at, comment, by_id, by_name)
        SELECT 's_' || n, '[[\"prefix\",\"tenant_1\"]]', starts_at, starts_at + 600000, comment, 'u_' || n, 'u_' || n
        FROM number, silences";
    server.store.sql(others).await;
    let refused = silence(&server, &operator, "tenant_1", "5m").await;
    assert_eq!(code(&refused), (409, "too_many"), "{}", refused.1);
    assert!(is_silenced(&server).await);
    let ended = "UPDATE silences SET ends_at = starts_at WHERE id = 's_1'";
    server.store.sql(ended).await;
    assert_eq!(silence(&server, &operator, "tenant_1", "5m").await.0, 201);
    // Read again after this change: all thousand.
    assert_eq!(server.serving.alerts.silences().await.unwrap().len(), 1_000);
    assert!(is_silenced(&server).await);
}
