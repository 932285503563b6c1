//! Protected prefixes: proved again, a second person who is one, and acting alone.

use std::sync::Arc;

use domain::access::{Grant, Role};
use domain::unlock::Tier;
use leasehold::identity::{Subject, Who};
use serde_json::json;

use super::stage::{Caller, Held, Stage, code, on, state};

/// A protected lock, its operator signed in, and a client's token.
struct Scene {
    stage: Stage,
    client: Caller,
    ada: Caller,
    held: Held,
}

async fn scene() -> Scene {
    let stage = Stage::start().await;
    protect(&stage, "jobs/billing", Tier::Protected).await;
    let client = stage.token("client", on(Role::Client, None, None)).await;
    let ada = stage.person("ada", on(Role::Operator, None, None)).await;
    let held = stage.hold(&client, "jobs/billing/close").await;
    Scene {
        stage,
        client,
        ada,
        held,
    }
}

async fn protect(stage: &Stage, prefix: &str, tier: Tier) {
    let unlocks = &stage.serving.unlocks;
    unlocks
        .set_tier(&Who::system("test"), None, prefix, tier)
        .await
        .unwrap();
}

fn person(stage: &Stage, name: &str) -> Who {
    let directory = stage.identity().directory();
    let person = directory.person_named(name).unwrap();
    Who {
        subject: Subject::Person {
            id: person.id.as_str().into(),
            name: person.name.as_str().into(),
        },
        grants: Arc::clone(&person.grants),
        ..Who::system("test")
    }
}

#[tokio::test]
async fn a_second_person_approves_and_only_then_is_it_done() {
    // Without: 403. Approved by somebody else: released, with the approver in the rows.
    let Scene { stage, ada, held, .. } = scene().await;
    let bob = stage.person("bob", on(Role::Approver, None, Some("jobs"))).await;
    let id = stage.begun(&ada, &held).await;
    assert_eq!(stage.state(&ada, &id).await["tier"], "protected");
    let early = stage.confirm(&ada, &id, &held.resource).await;
    assert_eq!(code(&early), (403, "needs_approval"), "{}", early.1);
    let approved = stage.act(&bob, &id, "approve").await;
    assert_eq!(
        (approved.0, &approved.1["approval"]["by"]),
        (200, &json!("bob")),
        "{}",
        approved.1
    );
    assert_eq!(
        stage.act(&bob, &id, "approve").await.0,
        200,
        "again changes nothing"
    );
    assert_eq!(
        state(&stage.confirm(&ada, &id, &held.resource).await),
        (200, "released")
    );
    assert_eq!(
        stage.told(&id).await,
        [
            "intent pending",
            "intent needs_approval",
            "approval approved",
            "act begun",
            "outcome released"
        ]
    );
    let rows = stage.record().await;
    let bob_id = person(&stage, "bob").id().to_owned();
    for row in rows
        .iter()
        .filter(|row| ["approval", "act"].contains(&&*row.phase) || row.outcome == "released")
    {
        assert_eq!(row.approver_id.as_deref(), Some(&*bob_id), "{row:?}");
    }
    let late = stage.act(&bob, &id, "approve").await;
    assert_eq!(code(&late), (409, "already_used"));
}

#[tokio::test]
async fn nobody_is_their_own_second_person() {
    // With both roles: by the same session, another session, and by a token that they made.
    let Scene {
        stage, client, held, ..
    } = scene().await;
    let both = vec![
        Grant::everywhere(Role::Operator),
        Grant::everywhere(Role::Approver),
    ];
    let eve = stage.person("eve", both.clone()).await;
    let again = stage.sign_in("eve").await;
    let made = stage.token_by(&person(&stage, "eve"), "eves", both.clone()).await;
    let id = stage.begun(&eve, &held).await;
    for caller in [&eve, &again, &made] {
        let refused = stage.act(caller, &id, "approve").await;
        assert_eq!(code(&refused), (403, "forbidden"), "{}", refused.1);
    }
    let early = stage.confirm(&eve, &id, &held.resource).await;
    assert_eq!(code(&early), (403, "needs_approval"));
    let other = stage.person("other", on(Role::Approver, None, None)).await;
    assert_eq!(stage.act(&other, &id, "approve").await.0, 200);
    assert!(stage.is_held(&client, &held).await);
    assert_eq!(
        state(&stage.confirm(&eve, &id, &held.resource).await),
        (200, "released")
    );
}

#[tokio::test]
async fn an_approver_without_the_right_there_or_any_more_does_not_count() {
    // Of another prefix: 403. Approved, and then the right is taken away, or the person is disabled: asked again at the act.
    let Scene {
        stage,
        client,
        ada,
        held,
    } = scene().await;
    let elsewhere = stage.person("far", on(Role::Approver, None, Some("other"))).await;
    let id = stage.begun(&ada, &held).await;
    let refused = stage.act(&elsewhere, &id, "approve").await;
    assert_eq!(code(&refused), (404, "not_found"), "{}", refused.1);
    let sees = vec![
        Grant::everywhere(Role::Viewer),
        on(Role::Approver, None, Some("other")).remove(0),
    ];
    let sees = stage.person("sees", sees).await;
    assert_eq!(code(&stage.act(&sees, &id, "approve").await), (403, "forbidden"));

    let bob = stage.person("bob", on(Role::Approver, None, None)).await;
    assert_eq!(stage.act(&bob, &id, "approve").await.0, 200);
    let (identity, system) = (stage.identity(), Who::system("test"));
    let bob_id = person(&stage, "bob").id().to_owned();
    identity
        .set_grants(&system, &bob_id, on(Role::Viewer, None, None))
        .await
        .unwrap();
    let late = stage.confirm(&ada, &id, &held.resource).await;
    assert_eq!(code(&late), (403, "needs_approval"), "{}", late.1);
    identity
        .set_grants(&system, &bob_id, on(Role::Approver, None, None))
        .await
        .unwrap();
    identity.disable_person(&system, &bob_id).await.unwrap();
    assert_eq!(
        code(&stage.confirm(&ada, &id, &held.resource).await),
        (403, "needs_approval")
    );
    assert!(stage.is_held(&client, &held).await);
    // Somebody who may takes his place.
    let carol = stage.person("carol", on(Role::Approver, None, None)).await;
    assert_eq!(
        stage.act(&carol, &id, "approve").await.1["approval"]["by"],
        "carol"
    );
    assert_eq!(
        state(&stage.confirm(&ada, &id, &held.resource).await),
        (200, "released")
    );
}

#[tokio::test]
async fn who_signed_in_long_ago_or_by_token_proves_again_first() {
    // Sixteen minutes old: 403 until the password was given again. A token has nothing to give.
    let Scene {
        stage,
        client,
        ada,
        held,
    } = scene().await;
    let bob = stage.person("bob", on(Role::Approver, None, None)).await;
    let id = stage.begun(&ada, &held).await;
    assert_eq!(stage.act(&bob, &id, "approve").await.0, 200);
    let operator = stage.operator().await;
    let by_token = stage.begun(&operator, &held).await;
    assert_eq!(stage.act(&bob, &by_token, "approve").await.0, 200);
    stage
        .home
        .sql("UPDATE sessions SET authenticated_at = authenticated_at - 16 * 60000")
        .await;
    let old = stage.confirm(&ada, &id, &held.resource).await;
    assert_eq!(code(&old), (403, "needs_reauthentication"), "{}", old.1);
    let refused = stage.confirm(&operator, &by_token, &held.resource).await;
    assert_eq!(code(&refused), (403, "needs_reauthentication"));
    assert!(stage.is_held(&client, &held).await);
    stage
        .home
        .sql("UPDATE sessions SET authenticated_at = authenticated_at + 16 * 60000")
        .await;
    assert_eq!(
        state(&stage.confirm(&ada, &id, &held.resource).await),
        (200, "released")
    );
}

#[tokio::test]
async fn acting_alone_needs_a_second_reason_and_stays_flagged() {
    // Weak, or the first reason again: 422. Then done without anybody; flagged until somebody else has looked.
    let Scene { stage, ada, held, .. } = scene().await;
    let bob = stage.person("bob", on(Role::Approver, None, None)).await;
    let id = stage.begun(&ada, &held).await;
    let path = format!("/v1/unlocks/{id}/confirm");
    for weak in ["..........", super::stage::REASON] {
        let body = json!({"resource": held.resource, "breakGlassReason": weak});
        let reply = stage.post(&ada, &path, &body).await;
        assert_eq!(
            (code(&reply), &reply.1["field"]),
            ((422, "reason_too_weak"), &json!("breakGlassReason")),
            "{}",
            reply.1
        );
    }
    let body = json!({"resource": held.resource, "breakGlassReason": "nobody answers the pager"});
    let done = stage.post(&ada, &path, &body).await;
    assert_eq!(state(&done), (200, "released"), "{}", done.1);
    assert_eq!(
        done.1["breakGlass"],
        json!({"reason": "nobody answers the pager", "reviewed": null})
    );
    assert_eq!(code(&stage.act(&ada, &id, "review").await), (403, "forbidden"));
    let reviewed = stage.act(&bob, &id, "review").await;
    assert_eq!(
        reviewed.1["breakGlass"]["reviewed"]["by"], "bob",
        "{}",
        reviewed.1
    );
    let told = stage.told(&id).await;
    assert_eq!(told.last().unwrap(), "approval reviewed", "{told:?}");
    let rows = stage.record().await;
    let act = rows.iter().find(|row| row.phase == "act").unwrap();
    assert!(act.after.as_deref().unwrap().contains("nobody answers the pager"));
}

#[tokio::test]
async fn a_prefix_that_became_protected_meanwhile_is_protected() {
    // Begun as standard; the tier is raised before the act. And nothing is reviewed or approved where nobody has to.
    let Scene {
        stage, client, ada, ..
    } = scene().await;
    let bob = stage.person("bob", on(Role::Approver, None, None)).await;
    let held = stage.hold(&client, "reports/daily").await;
    let id = stage.begun(&ada, &held).await;
    assert_eq!(
        code(&stage.act(&bob, &id, "approve").await),
        (409, "no_approval_needed")
    );
    assert_eq!(
        code(&stage.act(&bob, &id, "review").await),
        (409, "nothing_to_review")
    );
    protect(&stage, "reports", Tier::Protected).await;
    assert_eq!(
        code(&stage.confirm(&ada, &id, &held.resource).await),
        (403, "needs_approval")
    );
    protect(&stage, "reports", Tier::Standard).await;
    assert_eq!(
        state(&stage.confirm(&ada, &id, &held.resource).await),
        (200, "released")
    );
    let rules = &stage.serving.unlocks.tiers().await.unwrap();
    assert_eq!(rules.len(), 2, "one rule for each prefix: {rules:?}");
}
