//! Several at once: explicit, bounded, each with an answer of its own.

use crate::support::{TestServer, code};
use crate::unlock::requests::{HeldLock, REASON};
use ::inventory::Cancellation;
use leasehold::identity::Principal;
use leasehold::unlock::CandidateFilter;
use serde_json::{Value, json};

fn item(held: &HeldLock) -> Value {
    json!({"backend": held.backend, "resource": held.resource, "generation": held.generation})
}

#[tokio::test]
async fn each_item_is_released_or_refused_separately() {
    // Three held, one whose holder changed, one that never existed; then a wrong name among right ones.
    let server = TestServer::start().await;
    let operator = server.operator().await;
    let mut held = Vec::new();
    for name in ["a", "b", "c"] {
        held.push(server.hold(&operator, name).await);
    }
    let mut changed = held[0].clone();
    changed.generation = held[1].generation.clone();
    let mut never = held[0].clone();
    never.resource = "never".to_owned();
    let items: Vec<Value> = held.iter().chain([&changed, &never]).map(item).collect();
    let body = json!({"items": items, "reason": REASON});
    let (status, begun) = server.as_user(&operator).post("/v1/unlocks/bulk", &body).await;
    assert_eq!(status, 200, "{begun}");
    let results = begun["results"].as_array().unwrap();
    let statuses: Vec<u64> = results
        .iter()
        .map(|one| one["status"].as_u64().unwrap())
        .collect();
    assert_eq!(statuses, [201, 201, 201, 409, 404], "{begun}");
    let ids: Vec<&str> = results[..3]
        .iter()
        .map(|one| one["unlock"]["unlockId"].as_str().unwrap())
        .collect();
    let typed = json!({"items": [
        {"unlockId": ids[0], "resource": "a"},
        {"unlockId": ids[1], "resource": "a"},
        {"unlockId": ids[2], "resource": "c"},
    ]});
    let (_, confirmed) = server
        .as_user(&operator)
        .post("/v1/unlocks/bulk/confirm", &typed)
        .await;
    let results = &confirmed["results"];
    assert_eq!(results[0]["unlock"]["state"], "released", "{confirmed}");
    assert_eq!(results[1]["problem"]["code"], "name_mismatch");
    assert_eq!(results[2]["unlock"]["state"], "released");
    assert!(server.is_held(&operator, &held[1]).await && !server.is_held(&operator, &held[2]).await);
}

#[tokio::test]
async fn a_cancelled_search_for_locks_to_unlock_ends() {
    // By owner, which reads every lock.
    let server = TestServer::start().await;
    let operator = server.operator().await;
    server.hold(&operator, "a").await;
    let find = |abandon: &Cancellation| {
        let filter = CandidateFilter {
            owner: "worker-7".to_owned(),
            ..CandidateFilter::default()
        };
        let unlocks = &server.serving.unlocks;
        unlocks.find_candidates(&Principal::system("test"), filter, abandon)
    };
    let abandon = Cancellation::default();
    assert_eq!(find(&abandon).locks.len(), 1);
    drop(abandon.on_drop());
    assert!(find(&abandon).locks.is_empty());
}

#[tokio::test]
async fn a_bulk_unlock_has_at_most_fifty_items_and_no_query() {
    // 51 items, no item, a prefix, a filter in place of an item: 400 by field, and no intent.
    let server = TestServer::start().await;
    let operator = server.operator().await;
    let held = server.hold(&operator, "a").await;
    let many: Vec<Value> = (0..51).map(|_| item(&held)).collect();
    let bad = [
        ("items", json!({"items": many, "reason": REASON})),
        ("items", json!({"items": [], "reason": REASON})),
        ("items", json!({"reason": REASON})),
        ("items[0]", json!({"items": ["a"], "reason": REASON})),
        (
            "prefix",
            json!({"items": [item(&held)], "reason": REASON, "prefix": "a"}),
        ),
        ("reason", json!({"items": [item(&held)]})),
    ];
    for (field, body) in bad {
        let reply = server.as_user(&operator).post("/v1/unlocks/bulk", &body).await;
        assert_eq!(
            (code(&reply), &reply.1["field"]),
            ((400, "invalid"), &json!(field)),
            "{}",
            reply.1
        );
    }
    assert!(server.unlock_entries().await.is_empty());
}
