//! Break-glass unlocks and unknown outcomes: flagged on the page until a review, or until the
//! outcome is known.

use super::audit_server::AuditServer;
use crate::support::{Store, TestCaller, on};
use domain::access::{Grant, Role};
use domain::unlock::ProtectionLevel;
use leasehold::identity::Principal;
use reqwest::Method;
use serde_json::json;

use testkit::eventually;

const ALONE: &str = "not reviewed";

/// A lease under a protected prefix, broken by eve alone; the id of the unlock.
async fn broken_alone(server: &AuditServer, eve: &TestCaller) -> String {
    let who = Principal::system("test");
    let unlocks = &server.serving.unlocks;
    unlocks
        .set_protected_prefix(&who, None, "billing", ProtectionLevel::Protected)
        .await
        .unwrap();
    let body = json!({"resource": "billing:close", "ownerId": "w", "ttlSeconds": 600});
    assert_eq!(server.as_user(eve).post("/v1/locks/acquire", &body).await.0, 200);
    let path = "/v1/inventory/builtin/billing:close";
    eventually("the inventory shows it", || async {
        server.as_user(eve).get(path).await.0 == 200
    })
    .await;
    let (_, lock) = server.as_user(eve).get(path).await;
    let body = json!({
        "backend": "builtin", "resource": "billing:close", "generation": lock["generation"],
        "reason": "stuck since 03:00, month end"
    });
    let id = std::cell::RefCell::new(String::new());
    eventually("an intent", || async {
        let (status, unlock) = server.as_user(eve).post("/v1/unlocks", &body).await;
        *id.borrow_mut() = unlock["unlockId"].as_str().unwrap_or_default().to_owned();
        status == 201
    })
    .await;
    let id = id.into_inner();
    let body = json!({"resource": "billing:close", "breakGlassReason": "no approver answers the pager"});
    let (status, unlock) = server
        .as_user(eve)
        .post(&format!("/v1/unlocks/{id}/confirm"), &body)
        .await;
    assert_eq!((status, &unlock["state"]), (200, &json!("released")), "{unlock}");
    id
}

#[tokio::test]
async fn break_glass_stays_flagged_until_another_user_reviews() {
    // The owner may not review it, an auditor without permission is referred to users who may;
    // after the review the flag is gone.
    let server = AuditServer::on(Store::sqlite()).await;
    let eve_grants = vec![
        Grant::everywhere(Role::Operator),
        Grant::everywhere(Role::Approver),
        Grant::everywhere(Role::Auditor),
    ];
    let eve = server.user("eve", eve_grants.clone()).await;
    let reviewer = server.user("rita", eve_grants).await;
    let auditor = server.auditor().await;
    let id = broken_alone(&server, &eve).await;

    let (_, page) = server.as_user(&auditor).text("/audit").await;
    assert!(page.contains("1\u{a0}break-glass unlock awaits review"), "{page}");
    assert!(page.contains(ALONE) && page.contains("no approver answers the pager"));
    assert!(
        page.contains("Only an approver of this lock may review it") && !page.contains("Mark as reviewed")
    );
    let (_, own) = server.as_user(&eve).text("/audit").await;
    assert!(own.contains("Another user must review your unlock"), "{own}");
    let path = format!("/audit/unlocks/{id}/review");
    let refused = server.as_user(&eve).send(Method::POST, &path).await;
    assert_eq!(refused.status(), 403);
    let refused = refused.text().await.unwrap();
    assert!(
        refused.contains("It was not reviewed: a break-glass unlock must be reviewed by another user"),
        "{refused}"
    );

    let (_, page) = server.as_user(&reviewer).text("/audit").await;
    assert!(
        page.contains("Mark as reviewed") && page.contains(&path),
        "{page}"
    );
    let reviewed = server.as_user(&reviewer).send(Method::POST, &path).await;
    assert_eq!(reviewed.status(), 303);
    assert_eq!(
        reviewed.headers()["location"],
        format!("/audit?unlockId={id}&reviewed")
    );
    let (_, steps) = server
        .as_user(&reviewer)
        .text(&format!("/audit?unlockId={id}"))
        .await;
    assert!(steps.contains("reviewed") && !steps.contains(ALONE), "{steps}");
    assert!(!steps.contains("awaits review"));
    // Intent, act, outcome, the refused review and the good one are tied by one rail.
    assert_eq!(steps.matches("class=\"joined").count(), 5, "{steps}");
}

#[tokio::test]
async fn intent_and_outcome_refer_to_each_other() {
    // Filtered so that only one of them is on the page; and on the page of the intent's row every step is there.
    let server = AuditServer::on(Store::sqlite()).await;
    let eve = server.user("eve", on(Role::Admin, None, None)).await;
    let id = broken_alone(&server, &eve).await;
    let (_, unlock) = server
        .as_user(&eve)
        .get(&format!("/v1/audit?unlockId={id}"))
        .await;
    let row = |phase: &str| {
        let rows = unlock["entries"].as_array().unwrap();
        let found = rows.iter().find(|row| row["phase"] == phase).unwrap();
        found["id"].as_str().unwrap().to_owned()
    };
    let (intent, outcome) = (row("intent"), row("outcome"));
    let (_, page) = server
        .as_user(&eve)
        .text(&format!("/audit?unlockId={id}&outcome=pending"))
        .await;
    assert!(page.contains(&format!("released, entry {outcome}")), "{page}");
    let (_, page) = server
        .as_user(&eve)
        .text(&format!("/audit?unlockId={id}&outcome=released"))
        .await;
    assert!(page.contains(&format!("intent, entry {intent}")), "{page}");
    let (_, page) = server.as_user(&eve).text(&format!("/audit/{intent}")).await;
    assert!(page.contains("Steps of this unlock"), "{page}");
    for step in [&intent, &row("act"), &outcome] {
        assert!(page.contains(&format!("href=\"/audit/{step}\"")), "{step}");
    }
}

#[tokio::test]
async fn an_unlock_without_an_outcome_is_flagged() {
    // As a server that stopped in the middle of its act leaves it.
    let server = AuditServer::on(Store::sqlite()).await;
    let eve = server.user("eve", on(Role::Admin, None, None)).await;
    let id = broken_alone(&server, &eve).await;
    server
        .store
        .tamper(&format!(
            "UPDATE unlocks SET state = 'outcome_unknown', ended_at = NULL, outcome_entry = NULL,
             act_deadline = 99999999999999, break_glass_reason = NULL WHERE id = '{id}'"
        ))
        .await;
    let (_, page) = server.as_user(&eve).text("/audit").await;
    assert!(page.contains("1\u{a0}has an unknown outcome"), "{page}");
    assert!(page.contains("is-open"), "{page}");
}
