//! The protection of a casualty is removed after the intent: the recorded protection counts,
//! also if the confirming or approving user may not read the name of the casualty.

use crate::support::{code, on};
use crate::unlock::requests::state;
use domain::access::{Grant, Role};
use domain::unlock::ProtectionLevel;
use leasehold::identity::Principal;

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
