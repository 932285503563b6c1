//! Acting alone, and outcomes that nobody knows: flagged on the page until somebody has looked, or until it is known.

use domain::access::{Grant, Role};
use domain::unlock::Tier;
use leasehold::identity::Who;
use reqwest::Method;
use serde_json::json;

use super::console::{Caller, Console, on};
use super::stage::Home;
use crate::support::eventually::eventually;

const ALONE: &str = "alone, not reviewed";

/// A lease under a protected prefix, broken by eve alone; the id of the unlock.
async fn broken_alone(console: &Console, eve: &Caller) -> String {
    let who = Who::system("test");
    let unlocks = &console.serving.unlocks;
    unlocks
        .set_tier(&who, None, "billing", Tier::Protected)
        .await
        .unwrap();
    let body = json!({"resource": "billing:close", "ownerId": "w", "ttlSeconds": 600});
    assert_eq!(console.post(eve, "/v1/locks/acquire", &body).await.0, 200);
    let path = "/v1/inventory/builtin/billing:close";
    eventually("the inventory shows it", || async {
        console.get(eve, path).await.0 == 200
    })
    .await;
    let (_, lock) = console.get(eve, path).await;
    let body = json!({
        "backend": "builtin", "resource": "billing:close", "generation": lock["generation"],
        "reason": "stuck since 03:00, month end"
    });
    let id = std::cell::RefCell::new(String::new());
    eventually("an intent", || async {
        let (status, unlock) = console.post(eve, "/v1/unlocks", &body).await;
        *id.borrow_mut() = unlock["unlockId"].as_str().unwrap_or_default().to_owned();
        status == 201
    })
    .await;
    let id = id.into_inner();
    let body = json!({"resource": "billing:close", "breakGlassReason": "nobody answers the pager"});
    let (status, unlock) = console
        .post(eve, &format!("/v1/unlocks/{id}/confirm"), &body)
        .await;
    assert_eq!((status, &unlock["state"]), (200, &json!("released")), "{unlock}");
    id
}

#[tokio::test]
async fn what_was_done_alone_stands_out_until_somebody_else_has_looked() {
    // Its owner may not review it, an auditor without the right is told who may; after the review the flag is gone.
    let console = Console::on(Home::sqlite()).await;
    let eve_grants = vec![
        Grant::everywhere(Role::Operator),
        Grant::everywhere(Role::Approver),
        Grant::everywhere(Role::Auditor),
    ];
    let eve = console.person("eve", eve_grants.clone()).await;
    let reviewer = console.person("rita", eve_grants).await;
    let auditor = console.auditor().await;
    let id = broken_alone(&console, &eve).await;

    let (_, page) = console.text(&auditor, "/audit").await;
    assert!(
        page.contains("1 forced unlock was done alone and not reviewed"),
        "{page}"
    );
    assert!(page.contains(ALONE) && page.contains("nobody answers the pager"));
    assert!(page.contains("Whoever may approve here reviews it") && !page.contains("I have looked"));
    let (_, own) = console.text(&eve, "/audit").await;
    assert!(
        own.contains("Somebody else must review what you did alone"),
        "{own}"
    );
    let path = format!("/audit/unlocks/{id}/review");
    let refused = console.send(&eve, Method::POST, &path).await;
    assert_eq!(refused.status(), 403);
    let refused = refused.text().await.unwrap();
    assert!(
        refused.contains("It was not reviewed: nobody reviews what they did themselves"),
        "{refused}"
    );

    let (_, page) = console.text(&reviewer, "/audit").await;
    assert!(page.contains("I have looked") && page.contains(&path), "{page}");
    let reviewed = console.send(&reviewer, Method::POST, &path).await;
    assert_eq!(reviewed.status(), 303);
    assert_eq!(reviewed.headers()["location"], format!("/audit?unlockId={id}"));
    let (_, steps) = console.text(&reviewer, &format!("/audit?unlockId={id}")).await;
    assert!(steps.contains("reviewed") && !steps.contains(ALONE), "{steps}");
    assert!(!steps.contains("was done alone and not reviewed"));
    // Intent, act, outcome, the refused review and the good one are tied by one rail.
    assert_eq!(steps.matches("class=\"joined").count(), 5, "{steps}");
}

#[tokio::test]
async fn an_intent_names_the_row_of_its_outcome_and_the_other_way_round() {
    // Filtered so that only one of them is on the page; and on the page of the intent's row every step is there.
    let console = Console::on(Home::sqlite()).await;
    let eve = console.person("eve", on(Role::Admin, None, None)).await;
    let id = broken_alone(&console, &eve).await;
    let (_, unlock) = console.get(&eve, &format!("/v1/audit?unlockId={id}")).await;
    let row = |phase: &str| {
        let rows = unlock["rows"].as_array().unwrap();
        let found = rows.iter().find(|row| row["phase"] == phase).unwrap();
        found["id"].as_str().unwrap().to_owned()
    };
    let (intent, outcome) = (row("intent"), row("outcome"));
    let (_, page) = console
        .text(&eve, &format!("/audit?unlockId={id}&outcome=pending"))
        .await;
    assert!(page.contains(&format!("released, row {outcome}")), "{page}");
    let (_, page) = console
        .text(&eve, &format!("/audit?unlockId={id}&outcome=released"))
        .await;
    assert!(page.contains(&format!("intent, row {intent}")), "{page}");
    let (_, page) = console.text(&eve, &format!("/audit/{intent}")).await;
    assert!(page.contains("Every step of this unlock"), "{page}");
    for step in [&intent, &row("act"), &outcome] {
        assert!(page.contains(&format!("href=\"/audit/{step}\"")), "{step}");
    }
}

#[tokio::test]
async fn an_act_without_an_answer_stands_out() {
    // As a server that stopped in the middle of its act leaves it.
    let console = Console::on(Home::sqlite()).await;
    let eve = console.person("eve", on(Role::Admin, None, None)).await;
    let id = broken_alone(&console, &eve).await;
    console
        .home
        .tamper(&format!(
            "UPDATE unlocks SET state = 'outcome_unknown', ended_at = NULL, outcome_row = NULL,
             act_deadline = 99999999999999, break_glass_reason = NULL WHERE id = '{id}'"
        ))
        .await;
    let (_, page) = console.text(&eve, "/audit").await;
    assert!(page.contains("1 has an unknown outcome"), "{page}");
    assert!(page.contains("is-open"), "{page}");
}
