//! Rights end between the checks and the act. The store knows at once, the directory in memory only within a second: the
//! claim asks the store, in its own transaction.

use domain::access::Role;
use domain::unlock::Tier;
use leasehold::identity::Who;

use crate::unlock::stage::{Caller, Held, Stage, code, on, state};

struct Scene {
    stage: Stage,
    client: Caller,
    ada: Caller,
    held: Held,
    id: String,
}

/// An approved unlock of a protected lock, one step before its act.
async fn approved() -> Scene {
    let stage = Stage::start().await;
    let unlocks = &stage.serving.unlocks;
    unlocks
        .set_tier(&Who::system("test"), None, "jobs", Tier::Protected)
        .await
        .unwrap();
    let client = stage.token("client", on(Role::Client, None, None)).await;
    let ada = stage.person("ada", on(Role::Operator, None, None)).await;
    let bob = stage.person("bob", on(Role::Approver, None, None)).await;
    let held = stage.hold(&client, "jobs/close").await;
    let id = stage.begun(&ada, &held).await;
    let approved = stage.act(&bob, &id, "approve").await;
    assert_eq!(approved.0, 200, "{}", approved.1);
    Scene {
        stage,
        client,
        ada,
        held,
        id,
    }
}

/// Changes the store past the server, whose memory still has the old state, and confirms.
async fn refused_after(statement: &str, expected: (u16, &str)) {
    let scene = approved().await;
    let (stage, held) = (&scene.stage, &scene.held);
    stage.home.sql(statement).await;
    let reply = stage.confirm(&scene.ada, &scene.id, &held.resource).await;
    assert_eq!(code(&reply), expected, "{statement}: {}", reply.1);
    assert!(stage.is_held(&scene.client, held).await, "{statement}");
}

#[tokio::test]
async fn grants_and_disabling_are_read_in_the_claim() {
    let of = |name: &str| format!("(SELECT id FROM people WHERE name = '{name}')");
    let gone = |name: &str| format!("DELETE FROM grants WHERE person_id = {}", of(name));
    let disabled = |name: &str| format!("UPDATE people SET disabled_at = 1 WHERE name = '{name}'");
    for (name, expected) in [("ada", (403, "forbidden")), ("bob", (403, "needs_approval"))] {
        refused_after(&gone(name), expected).await;
        refused_after(&disabled(name), expected).await;
    }
}

#[tokio::test]
async fn the_read_only_switch_is_read_in_the_claim() {
    let switch = "UPDATE settings SET value = 'yes' WHERE key = 'read_only'";
    refused_after(switch, (403, "forbidden")).await;
}

#[tokio::test]
async fn nothing_lost_is_released() {
    let scene = approved().await;
    let reply = scene
        .stage
        .confirm(&scene.ada, &scene.id, &scene.held.resource)
        .await;
    assert_eq!(state(&reply), (200, "released"), "{}", reply.1);
}
