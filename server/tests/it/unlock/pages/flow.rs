//! Successful unlocks and results: review, reason, name, and the result at the same address.

use crate::support::{TestServer, on};
use crate::unlock::requests::{HeldLock, REASON};
use domain::access::Role;

use super::{address, begun, id, post, see};

#[tokio::test]
async fn three_pages_unlock_a_lock_and_reloads_repeat_nothing() {
    // Review, begin, type the name; every post redirects to a page. The result stays, and a second post changes
    // nothing.
    let server = TestServer::start().await;
    let operator = server.operator().await;
    let ada = server.user("ada", on(Role::Operator, None, None)).await;
    let held = server.hold(&operator, "jobs/close").await;
    let look = see(&server, &ada, &address(&held)).await;
    look.is(200)
        .has("worker-7")
        .has("Also released")
        .has("reports no waiters")
        .has("read from the backend at");
    assert_eq!(look.hidden("generation"), held.generation);
    let step = begun(&server, &ada, &held).await;
    let confirm = see(&server, &ada, &step).await;
    confirm
        .is(200)
        .has("Type the name of the resource")
        .has(REASON)
        .has("valid for 2 minutes, until");
    assert!(server.is_held(&operator, &held).await);
    let path = format!("{step}/confirm");
    let done = post(&server, &ada, &path, &[("resource", "jobs/close")]).await;
    assert_eq!(done.is(303).to, step);
    for _ in 0..2 {
        let outcome = see(&server, &ada, &step).await;
        outcome
            .is(200)
            .has("Released")
            .has("does not hold it any more")
            .has("no holder");
    }
    assert!(!server.is_held(&operator, &held).await);
    // Another owner acquires it; the form is sent once more.
    let lease = server.acquire(&operator, "jobs/close", "worker-9").await;
    let again = HeldLock {
        lease: lease["leaseId"].as_str().unwrap().to_owned(),
        generation: format!("token:{}:", lease["fencingToken"]),
        ..held
    };
    let replayed = post(&server, &ada, &path, &[("resource", "jobs/close")]).await;
    replayed
        .is(409)
        .has("This intent is released and cannot be used again");
    assert!(server.is_held(&operator, &again).await);
    let phases = server.unlock_phases(id(&step)).await;
    assert_eq!(
        phases,
        [
            "intent pending",
            "act begun",
            "outcome released",
            "intent already_used"
        ]
    );
}

#[tokio::test]
async fn a_new_holder_is_shown_and_not_touched() {
    // Another owner acquires it between the lock's page and the review, between review and intent, and between intent and release.
    let server = TestServer::start().await;
    let operator = server.operator().await;
    let ada = server.user("ada", on(Role::Operator, None, None)).await;
    let first = server.hold(&operator, "r").await;
    let change_hands = async |before: &HeldLock| {
        let path = format!("/v1/locks/{}", before.lease);
        let release = server.as_user(&operator).request(reqwest::Method::DELETE, &path);
        assert!(release.send().await.unwrap().status().is_success());
        let lease = server.acquire(&operator, "r", "worker-9").await;
        let mut now = before.clone();
        while now.generation == before.generation {
            now = server.inventory_lock(&operator, "builtin", "r").await;
        }
        now.lease = lease["leaseId"].as_str().unwrap().to_owned();
        now
    };
    let second = change_hands(&first).await;
    let came = format!("{}?generation={}", address(&first), first.generation);
    see(&server, &ada, &came).await.is(200).has("The holder changed.");
    let old = post(
        &server,
        &ada,
        &address(&first),
        &[("generation", &first.generation), ("reason", REASON)],
    )
    .await;
    old.is(409).has("Another holder has this lock now").has(REASON);
    let step = begun(&server, &ada, &second).await;
    let third = change_hands(&second).await;
    let done = post(&server, &ada, &format!("{step}/confirm"), &[("resource", "r")]).await;
    assert_eq!(done.is(303).to, step);
    let outcome = see(&server, &ada, &step).await;
    outcome
        .is(200)
        .has("Holder changed")
        .has("it was not touched")
        .has("Restart with the new holder");
    assert!(server.is_held(&operator, &third).await);
}

#[tokio::test]
async fn cancelled_and_expired_intents_release_nothing() {
    // Cancelled by its requester; and one confirmed after its two minutes.
    let server = TestServer::start().await;
    let operator = server.operator().await;
    let ada = server.user("ada", on(Role::Operator, None, None)).await;
    let held = server.hold(&operator, "r").await;
    let step = begun(&server, &ada, &held).await;
    assert_eq!(
        post(&server, &ada, &format!("{step}/cancel"), &[])
            .await
            .is(303)
            .to,
        step
    );
    see(&server, &ada, &step)
        .await
        .is(200)
        .has("Cancelled")
        .has("The lock was not touched");
    let late = post(&server, &ada, &format!("{step}/confirm"), &[("resource", "r")]).await;
    late.is(409).has("This intent is cancelled");
    let step = begun(&server, &ada, &held).await;
    let over = format!("UPDATE unlocks SET expires_at = 1 WHERE id = '{}'", id(&step));
    server.store.sql(&over).await;
    see(&server, &ada, &step)
        .await
        .is(200)
        .has("Expired")
        .has("Review again");
    let late = post(&server, &ada, &format!("{step}/confirm"), &[("resource", "r")]).await;
    late.is(410).has("expired after two minutes");
    assert!(server.is_held(&operator, &held).await);
}

#[tokio::test]
async fn an_unknown_outcome_is_shown_and_read_again() {
    // A release whose server was killed: neither released nor refused, and the page follows it until it is known.
    let server = TestServer::start().await;
    let operator = server.operator().await;
    let ada = server.user("ada", on(Role::Operator, None, None)).await;
    let held = server.hold(&operator, "r").await;
    let step = begun(&server, &ada, &held).await;
    let cut = format!(
        "UPDATE unlocks SET state = 'outcome_unknown', act_entry = intent_entry, acted_at = {0}, act_deadline = {0} + 60000 WHERE id = '{1}'",
        runtime::clock::Clock::start().now().wall.timestamp_millis(),
        id(&step)
    );
    server.store.sql(&cut).await;
    let page = see(&server, &ada, &step).await;
    page.is(200)
        .has("Outcome unknown")
        .has("may or may not be released")
        .has("The result appears here when it is known");
    let text = page.text;
    assert!(
        !text.contains(">Released<") && !text.contains("nothing was released"),
        "{text}"
    );
}

#[tokio::test]
async fn the_lock_page_links_the_unlock_or_the_reason() {
    // An operator, a viewer, and an operator while everything is read-only.
    let server = TestServer::start().await;
    let operator = server.operator().await;
    let ada = server.user("ada", on(Role::Operator, None, None)).await;
    let vera = server.user("vera", on(Role::Viewer, None, None)).await;
    let held = server.hold(&operator, "a/b").await;
    let lock = "/locks/builtin/a%2Fb?source=lease";
    let way = format!(
        "/unlock/builtin/a/b?source=lease&amp;generation={}",
        held.generation
    );
    see(&server, &ada, lock)
        .await
        .is(200)
        .has(&way)
        .has("data-unlock");
    let seen = see(&server, &vera, lock).await;
    seen.is(200)
        .has("this needs the permission `unlock` on this resource");
    assert!(!seen.text.contains("data-unlock"));
    let look = see(&server, &vera, &address(&held)).await;
    look.is(200)
        .has("Cannot be unlocked now:")
        .has("This needs the permission `unlock` on this resource.");
    assert!(!look.text.contains("Also released"));
    let system = leasehold::identity::Principal::system("test");
    server.identity().set_read_only(&system, true).await.unwrap();
    see(&server, &ada, lock)
        .await
        .is(200)
        .has("the console is read-only for now");
    see(&server, &ada, &address(&held))
        .await
        .is(200)
        .has("Cannot be unlocked now:");
}
