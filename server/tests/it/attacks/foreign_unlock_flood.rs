//! A tenant forces more unlocks than one query reads: those of another tenant stay on the overview of the other.

use crate::support::{Store, TestServer, on};
use crate::unlock::requests::state;
use domain::access::Role;

/// One more than the overview counts.
const FOREIGN: usize = 1_001;

async fn flooded(home: Store) {
    let server = TestServer::builder().start_on(home).await;
    let operator = server.operator().await;
    let held = server.hold(&operator, "tenant_1:jobs").await;
    let id = server.begun(&operator, &held).await;
    let done = server.confirm(&operator, &id, "tenant_1:jobs").await;
    assert_eq!(state(&done), (200, "released"), "{}", done.1);
    let numbers = if server.store.is_postgres() {
        "i::text"
    } else {
        "i"
    };
    // All at one moment, later than that of the tenant.
    server.store.sql(&format!(
            "WITH RECURSIVE numbers(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM numbers WHERE i < {FOREIGN})
             INSERT INTO unlocks (id, state, protection, by_id, by_name, backend, source, resource, reason, observed, created_at,
                 expires_at, intent_entry, acted_at, act_entry, act_deadline, ended_at, ending)
             SELECT 'u_foreign_' || {numbers}, state, protection, by_id, by_name, backend, source,
                 replace(resource, 'tenant_1', 'tenant_2'), reason, observed, created_at, expires_at, intent_entry,
                 acted_at + 1, act_entry, act_deadline, ended_at, ending FROM unlocks, numbers WHERE id = '{id}'"
        ))
        .await;
    let tenant = server
        .token("tenant", on(Role::Viewer, None, Some("tenant_1:")))
        .await;
    let page = server
        .as_user(&tenant)
        .request(reqwest::Method::GET, "/")
        .send()
        .await
        .unwrap();
    let page = page.text().await.unwrap();
    assert!(page.contains(&format!("/unlocks/{id}")), "{page}");
    assert!(
        !page.contains("u_foreign_") && !page.contains("tenant_2"),
        "{page}"
    );
    let page = server
        .as_user(&operator)
        .request(reqwest::Method::GET, "/")
        .send()
        .await
        .unwrap();
    assert!(page.text().await.unwrap().contains("u_foreign_"));
}

#[tokio::test]
async fn foreign_unlocks_do_not_hide_own_ones_on_sqlite() {
    flooded(Store::sqlite()).await;
}

#[tokio::test]
async fn foreign_unlocks_do_not_hide_own_ones_on_postgres() {
    flooded(Store::postgres().await).await;
}
