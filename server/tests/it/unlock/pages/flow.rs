//! What goes well, and outcomes: look, reason, name, and what came of it at the same address.

use domain::access::Role;

use super::super::stage::{Held, REASON, Stage, on};
use super::{address, begun, id, post, see};

#[tokio::test]
async fn a_lock_is_unlocked_by_three_pages_and_reloading_repeats_nothing() {
    // Look, begin, type the name; every post leads on to a page. The outcome stays, and a second post changes nothing.
    let stage = Stage::start().await;
    let operator = stage.operator().await;
    let ada = stage.person("ada", on(Role::Operator, None, None)).await;
    let held = stage.hold(&operator, "jobs/close").await;
    let look = see(&stage, &ada, &address(&held)).await;
    look.is(200)
        .has("worker-7")
        .has("What dies with it")
        .has("Nobody waits")
        .has("read fresh at");
    assert_eq!(look.hidden("generation"), held.generation);
    let step = begun(&stage, &ada, &held).await;
    let confirm = see(&stage, &ada, &step).await;
    confirm
        .is(200)
        .has("Type the name of the resource")
        .has(REASON)
        .has("valid for 2 minutes, until");
    assert!(stage.is_held(&operator, &held).await);
    let path = format!("{step}/confirm");
    let done = post(&stage, &ada, &path, &[("resource", "jobs/close")]).await;
    assert_eq!(done.is(303).to, step);
    for _ in 0..2 {
        let outcome = see(&stage, &ada, &step).await;
        outcome
            .is(200)
            .has("Released")
            .has("does not hold it any more")
            .has("nobody");
    }
    assert!(!stage.is_held(&operator, &held).await);
    // Somebody takes it; the form is sent once more.
    let lease = stage.acquire(&operator, "jobs/close", "worker-9").await;
    let again = Held {
        lease: lease["leaseId"].as_str().unwrap().to_owned(),
        generation: format!("token:{}:", lease["fencingToken"]),
        ..held
    };
    let replayed = post(&stage, &ada, &path, &[("resource", "jobs/close")]).await;
    replayed.is(409).has("This intent is released and works no more");
    assert!(stage.is_held(&operator, &again).await);
    let told = stage.told(id(&step)).await;
    assert_eq!(
        told,
        [
            "intent pending",
            "act begun",
            "outcome released",
            "intent already_used"
        ]
    );
}

#[tokio::test]
async fn another_holder_is_told_before_and_at_the_act_and_is_not_touched() {
    // It changes hands between the lock's page and the look, between look and intent, and between intent and act.
    let stage = Stage::start().await;
    let operator = stage.operator().await;
    let ada = stage.person("ada", on(Role::Operator, None, None)).await;
    let first = stage.hold(&operator, "r").await;
    let change_hands = async |before: &Held| {
        let path = format!("/v1/locks/{}", before.lease);
        let release = stage.request(&operator, reqwest::Method::DELETE, &path);
        assert!(release.send().await.unwrap().status().is_success());
        let lease = stage.acquire(&operator, "r", "worker-9").await;
        let mut now = before.clone();
        while now.generation == before.generation {
            now = stage.seen(&operator, "builtin", "r").await;
        }
        now.lease = lease["leaseId"].as_str().unwrap().to_owned();
        now
    };
    let second = change_hands(&first).await;
    let came = format!("{}?generation={}", address(&first), first.generation);
    see(&stage, &ada, &came).await.is(200).has("The holder changed.");
    let old = post(
        &stage,
        &ada,
        &address(&first),
        &[("generation", &first.generation), ("reason", REASON)],
    )
    .await;
    old.is(409).has("Another holding stands there now").has(REASON);
    let step = begun(&stage, &ada, &second).await;
    let third = change_hands(&second).await;
    let done = post(&stage, &ada, &format!("{step}/confirm"), &[("resource", "r")]).await;
    assert_eq!(done.is(303).to, step);
    let outcome = see(&stage, &ada, &step).await;
    outcome
        .is(200)
        .has("Holder changed")
        .has("it was not touched")
        .has("Begin again with the new holder");
    assert!(stage.is_held(&operator, &third).await);
}

#[tokio::test]
async fn giving_up_and_running_out_release_nothing_and_say_so() {
    // Cancelled by its owner; and one whose two minutes are over, confirmed too late.
    let stage = Stage::start().await;
    let operator = stage.operator().await;
    let ada = stage.person("ada", on(Role::Operator, None, None)).await;
    let held = stage.hold(&operator, "r").await;
    let step = begun(&stage, &ada, &held).await;
    assert_eq!(
        post(&stage, &ada, &format!("{step}/cancel"), &[])
            .await
            .is(303)
            .to,
        step
    );
    see(&stage, &ada, &step)
        .await
        .is(200)
        .has("Cancelled")
        .has("The lock was not touched");
    let late = post(&stage, &ada, &format!("{step}/confirm"), &[("resource", "r")]).await;
    late.is(409).has("This intent is cancelled");
    let step = begun(&stage, &ada, &held).await;
    let over = format!("UPDATE unlocks SET expires_at = 1 WHERE id = '{}'", id(&step));
    stage.home.sql(&over).await;
    see(&stage, &ada, &step)
        .await
        .is(200)
        .has("Ran out")
        .has("begin again");
    let late = post(&stage, &ada, &format!("{step}/confirm"), &[("resource", "r")]).await;
    late.is(410).has("good for two minutes, which are over");
    assert!(stage.is_held(&operator, &held).await);
}

#[tokio::test]
async fn what_is_not_known_is_not_dressed_up_and_looks_again() {
    // An act whose server went away: neither released nor refused, and the page asks to be loaded again.
    let stage = Stage::start().await;
    let operator = stage.operator().await;
    let ada = stage.person("ada", on(Role::Operator, None, None)).await;
    let held = stage.hold(&operator, "r").await;
    let step = begun(&stage, &ada, &held).await;
    let cut = format!(
        "UPDATE unlocks SET state = 'outcome_unknown', act_row = intent_row, acted_at = {0}, act_deadline = {0} + 60000 WHERE id = '{1}'",
        leasehold::clock::Clock::start().now().wall.timestamp_millis(),
        id(&step)
    );
    stage.home.sql(&cut).await;
    let answer = stage
        .request(&ada, reqwest::Method::GET, &step)
        .send()
        .await
        .unwrap();
    assert_eq!(answer.headers()["refresh"], "5");
    let text = answer.text().await.unwrap();
    assert!(
        text.contains("Outcome unknown") && text.contains("may or may not be released"),
        "{text}"
    );
    assert!(
        !text.contains(">Released<") && !text.contains("nothing was released"),
        "{text}"
    );
}

#[tokio::test]
async fn the_locks_page_has_the_way_or_says_why_not() {
    // An operator, a viewer, and an operator while everything is read-only.
    let stage = Stage::start().await;
    let operator = stage.operator().await;
    let ada = stage.person("ada", on(Role::Operator, None, None)).await;
    let vera = stage.person("vera", on(Role::Viewer, None, None)).await;
    let held = stage.hold(&operator, "a/b").await;
    let lock = "/locks/builtin/a%2Fb?source=lease";
    let way = format!(
        "/unlock/builtin/a/b?source=lease&amp;generation={}",
        held.generation
    );
    see(&stage, &ada, lock).await.is(200).has(&way).has("data-unlock");
    let seen = see(&stage, &vera, lock).await;
    seen.is(200).has("this needs the right unlock on this resource");
    assert!(!seen.text.contains("data-unlock"));
    let look = see(&stage, &vera, &address(&held)).await;
    look.is(200)
        .has("Not now:")
        .has("This needs the right unlock on this resource.");
    assert!(!look.text.contains("What dies with it"));
    let system = leasehold::identity::Who::system("test");
    stage.identity().set_read_only(&system, true).await.unwrap();
    see(&stage, &ada, lock)
        .await
        .is(200)
        .has("the console is read-only for now");
    see(&stage, &ada, &address(&held)).await.is(200).has("Not now:");
}
