//! Rows of the store that another version wrote.

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
