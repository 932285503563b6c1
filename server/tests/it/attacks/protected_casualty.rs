//! A protected lock is ended through an unprotected one: both belong to one Postgres session, and ending the session
//! releases both. The strictest protection counts at every step.

use crate::support::{TestCaller, TestServer, code, on};
use crate::unlock::requests::state;
use domain::access::{Grant, Role};
use serde_json::json;
use sqlx::Executor as _;

use crate::unlock::blast_radius::{is_alive, postgres_and_server, session};
use crate::unlock::pages::{address, see};

const OPEN: &str = "advisory:postgres:1";
const PROTECTED: &str = "advisory:postgres:2";
const BOTH: &str = "SELECT pg_advisory_lock(1), pg_advisory_lock(2)";

async fn approver(server: &TestServer, name: &str, prefix: Option<&str>) -> TestCaller {
    let grants = [
        vec![Grant::everywhere(Role::Viewer)],
        on(Role::Approver, None, prefix),
    ];
    server.user(name, grants.concat()).await
}

#[tokio::test]
async fn protected_lock_dies_with_its_session_only_when_approved() {
    let (postgres, server) = postgres_and_server().await;
    server.protect(PROTECTED).await;
    let token = server.operator().await;
    let ada = server.user("ada", on(Role::Operator, None, None)).await;
    let mut holder = session(&postgres, "billing", BOTH).await;
    let held = server.inventory_lock(&token, "orders-db", OPEN).await;

    let shown = see(&server, &ada, &address(&held)).await;
    shown.has(&format!("It would also release {PROTECTED}, which is protected."));
    let id = server.begun(&token, &held).await;
    let unlock = server.unlock_state(&token, &id).await;
    assert_eq!(unlock["protection"], "protected", "{unlock}");
    assert_eq!(unlock["protectionReason"]["because"], "casualty", "{unlock}");
    assert_eq!(unlock["protectionReason"]["resource"], PROTECTED, "{unlock}");
    let refused = server.confirm(&token, &id, OPEN).await;
    assert_eq!(code(&refused), (403, "needs_reauthentication"), "{}", refused.1);

    let id = server.begun(&ada, &held).await;
    let refused = server.confirm(&ada, &id, OPEN).await;
    assert_eq!(code(&refused), (403, "needs_approval"), "{}", refused.1);
    assert!(is_alive(&mut holder).await);
    // An approver of the named lock alone may not give away the other one.
    let narrow = approver(&server, "narrow", Some(OPEN)).await;
    let refused = server.unlock_step(&narrow, &id, "approve").await;
    assert_eq!(code(&refused), (403, "forbidden"), "{}", refused.1);
    let bob = approver(&server, "bob", None).await;
    let approved = server.unlock_step(&bob, &id, "approve").await;
    assert_eq!(approved.0, 200, "{}", approved.1);
    let done = server.confirm(&ada, &id, OPEN).await;
    assert_eq!(state(&done), (200, "released"), "{}", done.1);
    assert!(!is_alive(&mut holder).await);
}

#[tokio::test]
async fn protection_of_a_casualty_set_after_the_intent_counts() {
    let (postgres, server) = postgres_and_server().await;
    let token = server.operator().await;
    let mut holder = session(&postgres, "billing", BOTH).await;
    let held = server.inventory_lock(&token, "orders-db", OPEN).await;
    let id = server.begun(&token, &held).await;
    let unlock = server.unlock_state(&token, &id).await;
    assert_eq!(
        (&unlock["protection"], &unlock["protectionReason"]),
        (&json!("standard"), &json!(null)),
        "{unlock}"
    );
    let bob = approver(&server, "bob", None).await;
    let unneeded = server.unlock_step(&bob, &id, "approve").await;
    assert_eq!(code(&unneeded), (409, "no_approval_needed"), "{}", unneeded.1);
    server.protect(PROTECTED).await;
    let refused = server.confirm(&token, &id, OPEN).await;
    assert_eq!(code(&refused), (403, "needs_reauthentication"), "{}", refused.1);
    let detail = refused.1["detail"].as_str().unwrap();
    assert!(detail.contains(PROTECTED), "{detail}");
    assert!(is_alive(&mut holder).await);
}

#[tokio::test]
async fn rows_without_a_name_take_the_strictest_rule_of_the_backend() {
    // A session that blocks a table may hold any row: whatever is protected on this backend may be released with it.
    let (postgres, server) = postgres_and_server().await;
    server.protect("billing").await;
    let token = server.operator().await;
    let mut holder = session(&postgres, "blocker", "BEGIN; LOCK TABLE counted").await;
    let mut waiter = session(&postgres, "waiter", "SELECT 1").await;
    let attack = async {
        let name = "relation:postgres:public.counted";
        let held = server.inventory_lock(&token, "orders-db", name).await;
        let id = server.begun(&token, &held).await;
        let unlock = server.unlock_state(&token, &id).await;
        assert_eq!(
            unlock["protectionReason"]["because"], "unnamed_casualty",
            "{unlock}"
        );
        let refused = server.confirm(&token, &id, name).await;
        assert_eq!(code(&refused), (403, "needs_reauthentication"), "{}", refused.1);
        assert!(is_alive(&mut holder).await);
        holder.execute("COMMIT").await.unwrap();
    };
    let (waited, ()) = tokio::join!(waiter.execute("SELECT * FROM counted"), attack);
    waited.unwrap();
}
