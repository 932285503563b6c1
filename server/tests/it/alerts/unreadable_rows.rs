//! Rows of the store that another version wrote.

use domain::alerts::SilenceDraft;
use leasehold::identity::Principal;

use super::servers::{Server, firing};
use crate::support::store::Store;
use testkit::eventually;

async fn evaluation_goes_on(home: Store) {
    // An open alert cannot be read; its condition still holds, and another alert begins.
    let first = Server::start(&home).await;
    first.refuse("jobs/1").await;
    eventually("it fires", || async { firing(&first).await == 1 }).await;
    first.stop().await;
    home.sql("UPDATE alerts SET body = '{}', acked_at = 1").await;
    let second = Server::start(&home).await;
    second.refuse("jobs/2").await;
    eventually("both fire", || async { firing(&second).await == 2 }).await;
    let open = second.alerts.open(&Default::default()).await.unwrap();
    assert!(open.iter().all(|open| open.kept.acked.is_none()));
    second.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unreadable_alert_is_replaced_on_sqlite() {
    Box::pin(evaluation_goes_on(Store::sqlite())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unreadable_alert_is_replaced_on_postgres() {
    Box::pin(evaluation_goes_on(Store::postgres().await)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unreadable_silence_suppresses_nothing() {
    // One of its two matchers has a label that this version does not know.
    let home = Store::sqlite();
    let first = Server::start(&home).await;
    let draft = SilenceDraft {
        matchers: vec![("rule".to_owned(), "fencing_rejections".to_owned())],
        lasts: "2h".to_owned(),
        comment: "maintenance".to_owned(),
    };
    let who = Principal::system("test");
    first.alerts.silence(&who, &draft).await.unwrap();
    first.stop().await;
    home.sql(r#"UPDATE silences SET matchers = '[["rule", "fencing_rejections"], ["datacenter", "north"]]'"#)
        .await;
    let second = Server::start(&home).await;
    second.refuse("jobs/1").await;
    eventually("the rejected write is notified", || async {
        second.sent_count() == 1
    })
    .await;
    second.stop().await;
}
