//! The protection of a casualty is removed after the intent: the recorded protection counts,
//! also if the confirming or approving user may not read the name of the casualty.

use crate::support::{code, on};
use crate::unlock::requests::state;
use domain::access::{Grant, Role};
use domain::unlock::ProtectionLevel;
use leasehold::identity::Principal;
use serde_json::json;

use crate::unlock::blast_radius::{is_alive, postgres_and_server, session};

const OPEN: &str = "advisory:postgres:1";
const PROTECTED: &str = "advisory:postgres:2";

#[tokio::test]
async fn approval_is_measured_by_the_recorded_protection() {
    let (postgres, server) = postgres_and_server().await;
    let system = Principal::system("test");
    let unlocks = &server.serving.unlocks;
    let set = unlocks.set_protected_prefix(&system, None, PROTECTED, ProtectionLevel::Protected);
    set.await.unwrap();
    let ada = server.user("ada", on(Role::Operator, None, None)).await;
    let both = "SELECT pg_advisory_lock(1), pg_advisory_lock(2)";
    let mut holder = session(&postgres, "billing", both).await;
    let held = server.inventory_lock(&ada, "orders-db", OPEN).await;
    let id = server.begun(&ada, &held).await;
    for rule in unlocks.protected_prefixes().await.unwrap() {
        unlocks.remove_protected_prefix(&system, &rule.id).await.unwrap();
    }
    // Sees and approves the named lock alone.
    let narrow = [
        on(Role::Viewer, None, Some(OPEN)),
        on(Role::Approver, None, Some(OPEN)),
    ];
    let narrow = server.user("narrow", narrow.concat()).await;
    let shown = server.unlock_state(&narrow, &id).await;
    let reason = &shown["protectionReason"];
    assert_eq!(reason["because"], "casualty", "{shown}");
    assert!(
        reason["resource"].is_null() && !shown.to_string().contains(PROTECTED),
        "{shown}"
    );
    let refused = server.unlock_step(&narrow, &id, "approve").await;
    assert_eq!(code(&refused), (403, "forbidden"), "{}", refused.1);
    assert!(
        !refused.1["detail"].to_string().contains(PROTECTED),
        "{}",
        refused.1
    );
    let refused = server.confirm(&ada, &id, OPEN).await;
    assert_eq!(code(&refused), (403, "needs_approval"), "{}", refused.1);
    assert!(is_alive(&mut holder).await);
    let grants = [
        vec![Grant::everywhere(Role::Viewer)],
        on(Role::Approver, None, None),
    ];
    let bob = server.user("bob", grants.concat()).await;
    let approved = server.unlock_step(&bob, &id, "approve").await;
    assert_eq!(approved.0, 200, "{}", approved.1);
    let done = server.confirm(&ada, &id, OPEN).await;
    assert_eq!(state(&done), (200, "released"), "{}", done.1);
    // As recorded, not as a user with fewer permissions would read it.
    assert_eq!(done.1["protectionReason"]["resource"], PROTECTED, "{}", done.1);
}

#[tokio::test]
async fn break_glass_is_reviewed_by_an_approver_of_all_it_ended() {
    // Reviewed after the protection was removed: an approver of the named lock alone may not, and is not offered it.
    let (postgres, server) = postgres_and_server().await;
    let system = Principal::system("test");
    let unlocks = &server.serving.unlocks;
    server.protect(PROTECTED).await;
    let ada = server.user("ada", on(Role::Operator, None, None)).await;
    let both = "SELECT pg_advisory_lock(1), pg_advisory_lock(2)";
    let mut holder = session(&postgres, "billing", both).await;
    let held = server.inventory_lock(&ada, "orders-db", OPEN).await;
    let id = server.begun(&ada, &held).await;
    let body = json!({"resource": OPEN, "breakGlassReason": "no approver answers the pager"});
    let path = format!("/v1/unlocks/{id}/confirm");
    let done = server.as_user(&ada).post(&path, &body).await;
    assert_eq!(state(&done), (200, "released"), "{}", done.1);
    assert!(!is_alive(&mut holder).await);
    for rule in unlocks.protected_prefixes().await.unwrap() {
        unlocks.remove_protected_prefix(&system, &rule.id).await.unwrap();
    }
    let grants = |prefix: Option<&str>| {
        let roles = [Role::Viewer, Role::Approver, Role::Auditor];
        roles.map(|role| on(role, None, prefix)).concat()
    };
    let narrow = server.user("narrow", grants(Some(OPEN))).await;
    let (_, page) = server.as_user(&narrow).text("/audit").await;
    assert!(
        page.contains("Only an approver of this lock may review it") && !page.contains("Mark as reviewed"),
        "{page}"
    );
    let refused = server.unlock_step(&narrow, &id, "review").await;
    assert_eq!(code(&refused), (403, "forbidden"), "{}", refused.1);
    assert!(
        !refused.1["detail"].to_string().contains(PROTECTED),
        "{}",
        refused.1
    );
    let bob = server.user("bob", grants(None)).await;
    let (_, page) = server.as_user(&bob).text("/audit").await;
    assert!(page.contains("Mark as reviewed"), "{page}");
    let reviewed = server.unlock_step(&bob, &id, "review").await;
    assert_eq!(reviewed.0, 200, "{}", reviewed.1);
    assert_eq!(
        reviewed.1["breakGlass"]["reviewed"]["by"], "bob",
        "{}",
        reviewed.1
    );
}
