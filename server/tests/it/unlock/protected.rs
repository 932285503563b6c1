//! Protected prefixes: the user signs in again, a second approver with the permission, and break-glass.

use crate::support::{TestCaller, TestServer, code, on};
use crate::unlock::requests::{HeldLock, state};
use std::sync::Arc;

use domain::access::{Grant, Role};
use domain::unlock::ProtectionLevel;
use leasehold::identity::{Principal, Subject};
use serde_json::json;

/// A protected lock, its operator signed in, and a client's token.
struct Scene {
    server: TestServer,
    client: TestCaller,
    ada: TestCaller,
    held: HeldLock,
}

async fn scene() -> Scene {
    let server = TestServer::start().await;
    server.protect("jobs/billing").await;
    let client = server.token("client", on(Role::Client, None, None)).await;
    let ada = server.user("ada", on(Role::Operator, None, None)).await;
    let held = server.hold(&client, "jobs/billing/close").await;
    Scene {
        server,
        client,
        ada,
        held,
    }
}

fn user(server: &TestServer, name: &str) -> Principal {
    let directory = server.identity().directory();
    let user = directory.user_named(name).unwrap();
    Principal {
        subject: Subject::User {
            id: user.id.as_str().into(),
            name: user.name.as_str().into(),
        },
        grants: Arc::clone(&user.grants),
        ..Principal::system("test")
    }
}

#[tokio::test]
async fn a_second_approver_must_approve_first() {
    // Without approval: 403. Approved by another user: released, with the approver in the audit entries.
    let Scene {
        server, ada, held, ..
    } = scene().await;
    let bob = server.user("bob", on(Role::Approver, None, Some("jobs"))).await;
    let id = server.begun(&ada, &held).await;
    assert_eq!(server.unlock_state(&ada, &id).await["protection"], "protected");
    let early = server.confirm(&ada, &id, &held.resource).await;
    assert_eq!(code(&early), (403, "needs_approval"), "{}", early.1);
    let approved = server.unlock_step(&bob, &id, "approve").await;
    assert_eq!(
        (approved.0, &approved.1["approval"]["by"]),
        (200, &json!("bob")),
        "{}",
        approved.1
    );
    assert_eq!(
        server.unlock_step(&bob, &id, "approve").await.0,
        200,
        "again changes nothing"
    );
    assert_eq!(
        state(&server.confirm(&ada, &id, &held.resource).await),
        (200, "released")
    );
    assert_eq!(
        server.unlock_phases(&id).await,
        [
            "intent pending",
            "intent needs_approval",
            "approval approved",
            "act begun",
            "outcome released"
        ]
    );
    let rows = server.unlock_entries().await;
    let bob_id = user(&server, "bob").id().to_owned();
    for row in rows
        .iter()
        .filter(|row| ["approval", "act"].contains(&&*row.phase) || row.outcome == "released")
    {
        assert_eq!(row.approver_id.as_deref(), Some(&*bob_id), "{row:?}");
    }
    let late = server.unlock_step(&bob, &id, "approve").await;
    assert_eq!(code(&late), (409, "already_used"));
    let reader = server.token_of(Role::Viewer).await;
    let (_, metrics) = server.as_user(&reader).text("/metrics").await;
    let released = |line: &&str| {
        line.starts_with("distributed_lock_force_unlocks_total{") && line.contains("outcome=\"released\"")
    };
    let counted = |protected: &str| {
        let mut lines = metrics.lines().filter(released);
        let line = lines.find(|line| line.contains(&format!("protected=\"{protected}\"")));
        line.and_then(|line| line.rsplit(' ').next()).map(str::to_owned)
    };
    assert_eq!(
        ["true", "false", "break_glass"].map(counted),
        ["1", "0", "0"].map(|count| Some(count.to_owned())),
        "{metrics}"
    );
}

#[tokio::test]
async fn the_requester_cannot_be_the_second_approver() {
    // With both roles: by the same session, another session, and by a token that they made.
    let Scene {
        server, client, held, ..
    } = scene().await;
    let both = vec![
        Grant::everywhere(Role::Operator),
        Grant::everywhere(Role::Approver),
    ];
    let eve = server.user("eve", both.clone()).await;
    let again = server.sign_in("eve").await;
    let made = server.token_by(&user(&server, "eve"), "eves", both.clone()).await;
    let id = server.begun(&eve, &held).await;
    for caller in [&eve, &again, &made] {
        let refused = server.unlock_step(caller, &id, "approve").await;
        assert_eq!(code(&refused), (403, "forbidden"), "{}", refused.1);
    }
    let early = server.confirm(&eve, &id, &held.resource).await;
    assert_eq!(code(&early), (403, "needs_approval"));
    let other = server.user("other", on(Role::Approver, None, None)).await;
    assert_eq!(server.unlock_step(&other, &id, "approve").await.0, 200);
    assert!(server.is_held(&client, &held).await);
    assert_eq!(
        state(&server.confirm(&eve, &id, &held.resource).await),
        (200, "released")
    );
}

#[tokio::test]
async fn an_approver_without_permission_does_not_count() {
    // An approver of another prefix: 404, or 403 if the lock is visible. Approved, then the permission is removed or the
    // user disabled: checked again at the release.
    let Scene {
        server,
        client,
        ada,
        held,
    } = scene().await;
    let elsewhere = server.user("far", on(Role::Approver, None, Some("other"))).await;
    let id = server.begun(&ada, &held).await;
    let refused = server.unlock_step(&elsewhere, &id, "approve").await;
    assert_eq!(code(&refused), (404, "not_found"), "{}", refused.1);
    let sees = vec![
        Grant::everywhere(Role::Viewer),
        on(Role::Approver, None, Some("other")).remove(0),
    ];
    let sees = server.user("sees", sees).await;
    assert_eq!(
        code(&server.unlock_step(&sees, &id, "approve").await),
        (403, "forbidden")
    );

    let bob = server.user("bob", on(Role::Approver, None, None)).await;
    assert_eq!(server.unlock_step(&bob, &id, "approve").await.0, 200);
    let (identity, system) = (server.identity(), Principal::system("test"));
    let bob_id = user(&server, "bob").id().to_owned();
    identity
        .set_grants(&system, &bob_id, on(Role::Viewer, None, None))
        .await
        .unwrap();
    let late = server.confirm(&ada, &id, &held.resource).await;
    assert_eq!(code(&late), (403, "needs_approval"), "{}", late.1);
    identity
        .set_grants(&system, &bob_id, on(Role::Approver, None, None))
        .await
        .unwrap();
    identity.disable_user(&system, &bob_id).await.unwrap();
    assert_eq!(
        code(&server.confirm(&ada, &id, &held.resource).await),
        (403, "needs_approval")
    );
    assert!(server.is_held(&client, &held).await);
    // A user with the permission replaces the approver.
    let carol = server.user("carol", on(Role::Approver, None, None)).await;
    assert_eq!(
        server.unlock_step(&carol, &id, "approve").await.1["approval"]["by"],
        "carol"
    );
    assert_eq!(
        state(&server.confirm(&ada, &id, &held.resource).await),
        (200, "released")
    );
}

#[tokio::test]
async fn an_old_sign_in_or_a_token_must_reauthenticate() {
    // Signed in sixteen minutes ago: 403 until the sign-in is recent again. An API token has no password.
    let Scene {
        server,
        client,
        ada,
        held,
    } = scene().await;
    let bob = server.user("bob", on(Role::Approver, None, None)).await;
    let id = server.begun(&ada, &held).await;
    assert_eq!(server.unlock_step(&bob, &id, "approve").await.0, 200);
    let operator = server.operator().await;
    let by_token = server.begun(&operator, &held).await;
    assert_eq!(server.unlock_step(&bob, &by_token, "approve").await.0, 200);
    server
        .store
        .sql("UPDATE sessions SET authenticated_at = authenticated_at - 16 * 60000")
        .await;
    let old = server.confirm(&ada, &id, &held.resource).await;
    assert_eq!(code(&old), (403, "needs_reauthentication"), "{}", old.1);
    let refused = server.confirm(&operator, &by_token, &held.resource).await;
    assert_eq!(code(&refused), (403, "needs_reauthentication"));
    assert!(server.is_held(&client, &held).await);
    server
        .store
        .sql("UPDATE sessions SET authenticated_at = authenticated_at + 16 * 60000")
        .await;
    assert_eq!(
        state(&server.confirm(&ada, &id, &held.resource).await),
        (200, "released")
    );
}

#[tokio::test]
async fn break_glass_needs_a_second_reason_and_stays_flagged() {
    // A weak reason, or the first one again: 422. Then released by break-glass; flagged until another user has
    // reviewed it.
    let Scene {
        server, ada, held, ..
    } = scene().await;
    let bob = server.user("bob", on(Role::Approver, None, None)).await;
    let id = server.begun(&ada, &held).await;
    let path = format!("/v1/unlocks/{id}/confirm");
    for weak in ["..........", crate::unlock::requests::REASON] {
        let body = json!({"resource": held.resource, "breakGlassReason": weak});
        let reply = server.as_user(&ada).post(&path, &body).await;
        assert_eq!(
            (code(&reply), &reply.1["field"]),
            ((422, "reason_too_weak"), &json!("breakGlassReason")),
            "{}",
            reply.1
        );
    }
    let body = json!({"resource": held.resource, "breakGlassReason": "no approver answers the pager"});
    let done = server.as_user(&ada).post(&path, &body).await;
    assert_eq!(state(&done), (200, "released"), "{}", done.1);
    assert_eq!(
        done.1["breakGlass"],
        json!({"reason": "no approver answers the pager", "reviewed": null})
    );
    assert_eq!(
        code(&server.unlock_step(&ada, &id, "review").await),
        (403, "forbidden")
    );
    // Sent twice at the same time: one review, and both answers name it.
    let review = || server.unlock_step(&bob, &id, "review");
    let (one, other) = tokio::join!(review(), review());
    for (status, answer) in [one, other] {
        assert_eq!(
            (status, &answer["breakGlass"]["reviewed"]["by"]),
            (200, &json!("bob")),
            "{answer}"
        );
    }
    let phases = server.unlock_phases(&id).await;
    let last = &phases[phases.len() - 2..];
    assert!(last[0] != last[1] && last[1] == "approval reviewed", "{phases:?}");
    let rows = server.unlock_entries().await;
    let act = rows.iter().find(|row| row.phase == "act").unwrap();
    assert!(
        act.after
            .as_deref()
            .unwrap()
            .contains("no approver answers the pager")
    );
}

#[tokio::test]
async fn a_prefix_protected_meanwhile_counts() {
    // Begun as standard; the prefix becomes protected before the release. And nothing is reviewed or approved where it
    // is not required.
    let Scene {
        server, client, ada, ..
    } = scene().await;
    let bob = server.user("bob", on(Role::Approver, None, None)).await;
    let held = server.hold(&client, "reports/daily").await;
    let id = server.begun(&ada, &held).await;
    assert_eq!(
        code(&server.unlock_step(&bob, &id, "approve").await),
        (409, "no_approval_needed")
    );
    assert_eq!(
        code(&server.unlock_step(&bob, &id, "review").await),
        (409, "nothing_to_review")
    );
    server.protect("reports").await;
    assert_eq!(
        code(&server.confirm(&ada, &id, &held.resource).await),
        (403, "needs_approval")
    );
    server.set_protection("reports", ProtectionLevel::Standard).await;
    assert_eq!(
        state(&server.confirm(&ada, &id, &held.resource).await),
        (200, "released")
    );
    let rules = &server.serving.unlocks.protected_prefixes().await.unwrap();
    assert_eq!(rules.len(), 2, "one rule for each prefix: {rules:?}");
}
