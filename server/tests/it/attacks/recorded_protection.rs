//! The protection of a casualty is removed after the intent: what the intent recorded counts, also where who confirms or
//! approves may not read the name of the casualty.

use domain::access::{Grant, Role};
use domain::unlock::Tier;
use leasehold::identity::Who;

use crate::unlock::radius::{is_alive, session, world};
use crate::unlock::stage::{code, on, state};

const OPEN: &str = "advisory:postgres:1";
const PROTECTED: &str = "advisory:postgres:2";

#[tokio::test]
async fn approval_is_measured_by_the_recorded_protection() {
    let (postgres, stage) = world().await;
    let system = Who::system("test");
    let unlocks = &stage.serving.unlocks;
    let set = unlocks.set_tier(&system, None, PROTECTED, Tier::Protected);
    set.await.unwrap();
    let ada = stage.person("ada", on(Role::Operator, None, None)).await;
    let both = "SELECT pg_advisory_lock(1), pg_advisory_lock(2)";
    let mut holder = session(&postgres, "billing", both).await;
    let held = stage.seen(&ada, "orders-db", OPEN).await;
    let id = stage.begun(&ada, &held).await;
    for rule in unlocks.tiers().await.unwrap() {
        unlocks.remove_tier(&system, &rule.id).await.unwrap();
    }
    // Sees and approves the named lock alone.
    let narrow = [
        on(Role::Viewer, None, Some(OPEN)),
        on(Role::Approver, None, Some(OPEN)),
    ];
    let narrow = stage.person("narrow", narrow.concat()).await;
    let shown = stage.state(&narrow, &id).await;
    let reason = &shown["tierReason"];
    assert_eq!(reason["because"], "casualty", "{shown}");
    assert!(
        reason["resource"].is_null() && !shown.to_string().contains(PROTECTED),
        "{shown}"
    );
    let refused = stage.act(&narrow, &id, "approve").await;
    assert_eq!(code(&refused), (403, "forbidden"), "{}", refused.1);
    assert!(
        !refused.1["detail"].to_string().contains(PROTECTED),
        "{}",
        refused.1
    );
    let refused = stage.confirm(&ada, &id, OPEN).await;
    assert_eq!(code(&refused), (403, "needs_approval"), "{}", refused.1);
    assert!(is_alive(&mut holder).await);
    let grants = [
        vec![Grant::everywhere(Role::Viewer)],
        on(Role::Approver, None, None),
    ];
    let bob = stage.person("bob", grants.concat()).await;
    let approved = stage.act(&bob, &id, "approve").await;
    assert_eq!(approved.0, 200, "{}", approved.1);
    let done = stage.confirm(&ada, &id, OPEN).await;
    assert_eq!(state(&done), (200, "released"), "{}", done.1);
    // As it was recorded, and not as somebody with less permission would read it.
    assert_eq!(done.1["tierReason"]["resource"], PROTECTED, "{}", done.1);
}
