//! A tenant forces more unlocks than one query reads: those of another tenant stay on the overview of the other.

use domain::access::Role;

use crate::unlock::stage::{Home, Stage, on, state};

/// One more than the overview counts.
const FOREIGN: usize = 1_001;

async fn flooded(home: Home) {
    let stage = Stage::on(home, "").await;
    let operator = stage.operator().await;
    let held = stage.hold(&operator, "tenant_1:jobs").await;
    let id = stage.begun(&operator, &held).await;
    let done = stage.confirm(&operator, &id, "tenant_1:jobs").await;
    assert_eq!(state(&done), (200, "released"), "{}", done.1);
    let numbers = if stage.home.is_postgres() { "i::text" } else { "i" };
    // All at one moment, later than that of the tenant.
    stage
        .home
        .sql(&format!(
            "WITH RECURSIVE numbers(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM numbers WHERE i < {FOREIGN})
             INSERT INTO unlocks (id, state, tier, by_id, by_name, backend, source, resource, reason, observed, created_at,
                 expires_at, intent_row, acted_at, act_row, act_deadline, ended_at, ending)
             SELECT 'u_foreign_' || {numbers}, state, tier, by_id, by_name, backend, source,
                 replace(resource, 'tenant_1', 'tenant_2'), reason, observed, created_at, expires_at, intent_row,
                 acted_at + 1, act_row, act_deadline, ended_at, ending FROM unlocks, numbers WHERE id = '{id}'"
        ))
        .await;
    let tenant = stage
        .token("tenant", on(Role::Viewer, None, Some("tenant_1:")))
        .await;
    let page = stage
        .request(&tenant, reqwest::Method::GET, "/")
        .send()
        .await
        .unwrap();
    let page = page.text().await.unwrap();
    assert!(page.contains(&format!("/unlocks/{id}")), "{page}");
    assert!(
        !page.contains("u_foreign_") && !page.contains("tenant_2"),
        "{page}"
    );
    let page = stage
        .request(&operator, reqwest::Method::GET, "/")
        .send()
        .await
        .unwrap();
    assert!(page.text().await.unwrap().contains("u_foreign_"));
}

#[tokio::test]
async fn foreign_unlocks_do_not_hide_ones_own_on_sqlite() {
    flooded(Home::sqlite()).await;
}

#[tokio::test]
async fn foreign_unlocks_do_not_hide_ones_own_on_postgres() {
    flooded(Home::postgres().await).await;
}
