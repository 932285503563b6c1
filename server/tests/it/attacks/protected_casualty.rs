//! A protected lock is ended through an unprotected one: both belong to one Postgres session, and ending the session
//! releases both. The strictest protection counts at every step.

use domain::access::{Grant, Role};
use domain::unlock::Tier;
use leasehold::identity::Who;
use serde_json::json;
use sqlx::Executor as _;

use crate::unlock::pages::{address, see};
use crate::unlock::radius::{is_alive, session, world};
use crate::unlock::stage::{Caller, Stage, code, on, state};

const OPEN: &str = "advisory:postgres:1";
const PROTECTED: &str = "advisory:postgres:2";
const BOTH: &str = "SELECT pg_advisory_lock(1), pg_advisory_lock(2)";

async fn protect(stage: &Stage, prefix: &str) {
    let system = Who::system("test");
    let unlocks = &stage.serving.unlocks;
    unlocks
        .set_tier(&system, None, prefix, Tier::Protected)
        .await
        .unwrap();
}

async fn approver(stage: &Stage, name: &str, prefix: Option<&str>) -> Caller {
    let grants = [
        vec![Grant::everywhere(Role::Viewer)],
        on(Role::Approver, None, prefix),
    ];
    stage.person(name, grants.concat()).await
}

#[tokio::test]
async fn protected_lock_dies_with_its_session_only_when_approved() {
    let (postgres, stage) = world().await;
    protect(&stage, PROTECTED).await;
    let token = stage.operator().await;
    let ada = stage.person("ada", on(Role::Operator, None, None)).await;
    let mut holder = session(&postgres, "billing", BOTH).await;
    let held = stage.seen(&token, "orders-db", OPEN).await;

    let shown = see(&stage, &ada, &address(&held)).await;
    shown.has(&format!("It would also release {PROTECTED}, which is protected."));
    let id = stage.begun(&token, &held).await;
    let unlock = stage.state(&token, &id).await;
    assert_eq!(unlock["tier"], "protected", "{unlock}");
    assert_eq!(unlock["tierReason"]["because"], "casualty", "{unlock}");
    assert_eq!(unlock["tierReason"]["resource"], PROTECTED, "{unlock}");
    let refused = stage.confirm(&token, &id, OPEN).await;
    assert_eq!(code(&refused), (403, "needs_reauthentication"), "{}", refused.1);

    let id = stage.begun(&ada, &held).await;
    let refused = stage.confirm(&ada, &id, OPEN).await;
    assert_eq!(code(&refused), (403, "needs_approval"), "{}", refused.1);
    assert!(is_alive(&mut holder).await);
    // An approver of the named lock alone may not give away the other one.
    let narrow = approver(&stage, "narrow", Some(OPEN)).await;
    let refused = stage.act(&narrow, &id, "approve").await;
    assert_eq!(code(&refused), (403, "forbidden"), "{}", refused.1);
    let bob = approver(&stage, "bob", None).await;
    let approved = stage.act(&bob, &id, "approve").await;
    assert_eq!(approved.0, 200, "{}", approved.1);
    let done = stage.confirm(&ada, &id, OPEN).await;
    assert_eq!(state(&done), (200, "released"), "{}", done.1);
    assert!(!is_alive(&mut holder).await);
}

#[tokio::test]
async fn protection_of_a_casualty_set_after_the_intent_counts() {
    let (postgres, stage) = world().await;
    let token = stage.operator().await;
    let mut holder = session(&postgres, "billing", BOTH).await;
    let held = stage.seen(&token, "orders-db", OPEN).await;
    let id = stage.begun(&token, &held).await;
    let unlock = stage.state(&token, &id).await;
    assert_eq!(
        (&unlock["tier"], &unlock["tierReason"]),
        (&json!("standard"), &json!(null)),
        "{unlock}"
    );
    let bob = approver(&stage, "bob", None).await;
    let unneeded = stage.act(&bob, &id, "approve").await;
    assert_eq!(code(&unneeded), (409, "no_approval_needed"), "{}", unneeded.1);
    protect(&stage, PROTECTED).await;
    let refused = stage.confirm(&token, &id, OPEN).await;
    assert_eq!(code(&refused), (403, "needs_reauthentication"), "{}", refused.1);
    let detail = refused.1["detail"].as_str().unwrap();
    assert!(detail.contains(PROTECTED), "{detail}");
    assert!(is_alive(&mut holder).await);
}

#[tokio::test]
async fn rows_without_a_name_take_the_strictest_rule_of_the_backend() {
    // A session that blocks a table may hold any row: whatever is protected on this backend may be released with it.
    let (postgres, stage) = world().await;
    protect(&stage, "billing").await;
    let token = stage.operator().await;
    let mut holder = session(&postgres, "blocker", "BEGIN; LOCK TABLE counted").await;
    let mut waiter = session(&postgres, "waiter", "SELECT 1").await;
    let attack = async {
        let name = "relation:postgres:public.counted";
        let held = stage.seen(&token, "orders-db", name).await;
        let id = stage.begun(&token, &held).await;
        let unlock = stage.state(&token, &id).await;
        assert_eq!(unlock["tierReason"]["because"], "unnamed_casualty", "{unlock}");
        let refused = stage.confirm(&token, &id, name).await;
        assert_eq!(code(&refused), (403, "needs_reauthentication"), "{}", refused.1);
        assert!(is_alive(&mut holder).await);
        holder.execute("COMMIT").await.unwrap();
    };
    let (waited, ()) = tokio::join!(waiter.execute("SELECT * FROM counted"), attack);
    waited.unwrap();
}
