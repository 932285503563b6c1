//! The reason and the name that users type.

use crate::support::{TestServer, code};
use crate::unlock::requests::state;
#[tokio::test]
async fn a_reason_without_content_is_refused_and_recorded() {
    // Empty, white space, dots, nine characters, invisible characters, too long: 422, an audit entry each, no intent.
    let server = TestServer::start().await;
    let operator = server.operator().await;
    let held = server.hold(&operator, "r").await;
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
        let reply = server.begin_for(&operator, &held, reason).await;
        assert_eq!(code(&reply), (422, "reason_too_weak"), "{reason:?}: {}", reply.1);
        assert_eq!(reply.1["field"], "reason");
    }
    let rows = server.unlock_entries().await;
    assert_eq!(rows.len(), weak.len());
    assert!(
        rows.iter()
            .all(|row| row.outcome == "reason_too_weak" && row.unlock_id.is_none())
    );
    assert!(server.is_held(&operator, &held).await);
}

#[tokio::test]
async fn a_wrong_name_is_refused_and_the_third_ends_the_intent() {
    // Look-alikes one by one, each on an intent of its own; then three wrong ones, and the right one comes too late.
    let server = TestServer::start().await;
    let operator = server.operator().await;
    let name = "jobs/caf\u{e9}";
    let held = server.hold(&operator, name).await;
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
        let id = server.begun(&operator, &held).await;
        for wrong in pair {
            let reply = server.confirm(&operator, &id, wrong).await;
            assert_eq!(code(&reply), (422, "name_mismatch"), "{wrong:?}: {}", reply.1);
        }
        assert_eq!(server.unlock_state(&operator, &id).await["state"], "pending");
    }
    let id = server.begun(&operator, &held).await;
    for wrong in ["one", "two", "three"] {
        let reply = server.confirm(&operator, &id, wrong).await;
        assert_eq!(code(&reply), (422, "name_mismatch"), "{}", reply.1);
    }
    assert_eq!(
        code(&server.confirm(&operator, &id, name).await),
        (409, "already_used")
    );
    assert_eq!(
        server.unlock_phases(&id).await,
        [
            "intent pending",
            "intent name_mismatch",
            "intent name_mismatch",
            "intent name_mismatch",
            "outcome cancelled",
            "intent already_used"
        ]
    );
    assert!(server.is_held(&operator, &held).await);
    // After two wrong ones the right one still counts.
    let id = server.begun(&operator, &held).await;
    for wrong in ["one", "two"] {
        server.confirm(&operator, &id, wrong).await;
    }
    assert_eq!(
        state(&server.confirm(&operator, &id, name).await),
        (200, "released")
    );
}

#[tokio::test]
async fn concurrent_wrong_names_are_each_counted() {
    // Ten at the same moment: three are counted, the intent is cancelled, the lease lives.
    let server = TestServer::start().await;
    let operator = server.operator().await;
    let held = server.hold(&operator, "r").await;
    let id = server.begun(&operator, &held).await;
    let replies = futures::future::join_all((0..10).map(|_| server.confirm(&operator, &id, "x"))).await;
    let counted = replies
        .iter()
        .filter(|reply| code(reply) == (422, "name_mismatch"))
        .count();
    assert_eq!(counted, 3, "{replies:?}");
    assert_eq!(server.unlock_state(&operator, &id).await["state"], "cancelled");
    assert!(server.is_held(&operator, &held).await);
}
