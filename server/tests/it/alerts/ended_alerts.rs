//! The list of ended alerts, read again after each change.

use domain::alerts::Draft;
use leasehold::identity::Principal;

use super::servers::{Server, firing};
use crate::support::store::Store;
use testkit::eventually;

async fn ended(server: &Server) -> usize {
    let resolved = server.alerts.resolved(&Default::default(), 10).await;
    resolved.unwrap().len()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_end_by_a_clock_that_is_behind_is_listed() {
    // The list is read without ends; then an alert ends, by a clock that is 10 minutes behind.
    let home = Store::sqlite();
    let server = Server::start(&home).await;
    server.refuse("jobs/1").await;
    eventually("the rejected write fires", || async {
        firing(&server).await == 1
    })
    .await;
    assert_eq!(ended(&server).await, 0);
    let who = Principal::system("test");
    let mut draft = Draft::from(&server.alerts.rule("fencing_rejections").await.unwrap().rule);
    draft.enabled = false;
    let saved = server.alerts.save_rule(&who, draft.clone(), Some(1), false);
    assert_eq!(saved.await.unwrap().version, 2);
    eventually("it is resolved", || async { firing(&server).await == 0 }).await;
    home.sql("UPDATE alerts SET ended_at = ended_at - 600000 WHERE is_open = 0")
        .await;
    assert_eq!(ended(&server).await, 1);
    // It is read again after the next change, and listed once.
    draft.enabled = true;
    let saved = server.alerts.save_rule(&who, draft, Some(2), false);
    assert_eq!(saved.await.unwrap().version, 3);
    assert_eq!(ended(&server).await, 1);
    server.stop().await;
}
