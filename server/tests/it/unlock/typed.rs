//! The reason and the name that people type.

use super::stage::{Stage, code, state};

#[tokio::test]
async fn a_reason_that_tells_nothing_is_refused_and_recorded() {
    // Nothing, white space, dots, nine characters, what cannot be seen, too long: 422, a row each, no intent.
    let stage = Stage::start().await;
    let operator = stage.operator().await;
    let held = stage.hold(&operator, "r").await;
    let long = "word ".repeat(101);
    let weak = [
        "",
        "   \t \n",
        "..........",
        "stuck now",
        "stuck\u{200b}\u{200b}\u{200b}\u{200b}\u{200b}",
        &long,
    ];
    for reason in weak {
        let reply = stage.begin_for(&operator, &held, reason).await;
        assert_eq!(code(&reply), (422, "reason_too_weak"), "{reason:?}: {}", reply.1);
        assert_eq!(reply.1["field"], "reason");
    }
    let rows = stage.record().await;
    assert_eq!(rows.len(), weak.len());
    assert!(
        rows.iter()
            .all(|row| row.outcome == "reason_too_weak" && row.unlock_id.is_none())
    );
    assert!(stage.is_held(&operator, &held).await);
}

#[tokio::test]
async fn a_name_that_is_not_the_name_is_refused_and_the_third_ends_the_intent() {
    // Look-alikes one by one, each on an intent of its own; then three wrong ones, and the right one comes too late.
    let stage = Stage::start().await;
    let operator = stage.operator().await;
    let name = "jobs/caf\u{e9}";
    let held = stage.hold(&operator, name).await;
    let look_alikes = [
        "",
        "jobs/cafe",
        "jobs/cafe\u{301}",
        "jobs/caf\u{e9} ",
        "Jobs/caf\u{e9}",
        "j\u{43e}bs/caf\u{e9}",
        "jobs/caf\u{e9}\u{200b}",
        "jobs/*",
    ];
    for pair in look_alikes.chunks(2) {
        let id = stage.begun(&operator, &held).await;
        for wrong in pair {
            let reply = stage.confirm(&operator, &id, wrong).await;
            assert_eq!(code(&reply), (422, "name_mismatch"), "{wrong:?}: {}", reply.1);
        }
        assert_eq!(stage.state(&operator, &id).await["state"], "pending");
    }
    let id = stage.begun(&operator, &held).await;
    for wrong in ["one", "two", "three"] {
        let reply = stage.confirm(&operator, &id, wrong).await;
        assert_eq!(code(&reply), (422, "name_mismatch"), "{}", reply.1);
    }
    assert_eq!(
        code(&stage.confirm(&operator, &id, name).await),
        (409, "already_used")
    );
    assert_eq!(
        stage.told(&id).await,
        [
            "intent pending",
            "intent name_mismatch",
            "intent name_mismatch",
            "intent name_mismatch",
            "outcome cancelled",
            "intent already_used"
        ]
    );
    assert!(stage.is_held(&operator, &held).await);
    // After two wrong ones the right one still counts.
    let id = stage.begun(&operator, &held).await;
    for wrong in ["one", "two"] {
        stage.confirm(&operator, &id, wrong).await;
    }
    assert_eq!(
        state(&stage.confirm(&operator, &id, name).await),
        (200, "released")
    );
}

#[tokio::test]
async fn wrong_names_at_once_are_each_counted() {
    // Ten at the same moment: three are counted, the intent is cancelled, the lease lives.
    let stage = Stage::start().await;
    let operator = stage.operator().await;
    let held = stage.hold(&operator, "r").await;
    let id = stage.begun(&operator, &held).await;
    let replies = futures::future::join_all((0..10).map(|_| stage.confirm(&operator, &id, "x"))).await;
    let counted = replies
        .iter()
        .filter(|reply| code(reply) == (422, "name_mismatch"))
        .count();
    assert_eq!(counted, 3, "{replies:?}");
    assert_eq!(stage.state(&operator, &id).await["state"], "cancelled");
    assert!(stage.is_held(&operator, &held).await);
}
