//! Fencing rejections, more than one read returns.

use domain::lease::StoreTime;
use domain::token::FencingToken;

use super::*;
use crate::operation::Rejection;
use crate::store::{RejectionQuery, RejectionRange};

const MANY: u64 = 2_500;

fn query(most: u32) -> RejectionQuery {
    RejectionQuery {
        resource: None,
        names: None,
        from: StoreTime::from_ms(i64::MIN),
        until: StoreTime::from_ms(i64::MAX),
        most,
    }
}

fn rejection(token: u64) -> Operation {
    rejection_on("r", token)
}

fn rejection_on(resource: &str, token: u64) -> Operation {
    Operation::Reject(Box::new(Rejection {
        resource: Resource::from(resource),
        token: FencingToken::new(token),
        highest: None,
        owner: None,
        source: "s".to_owned(),
        reason: "stale",
        at: None,
    }))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rejections_are_read_from_the_newest() {
    let etcd = cluster(1, &[]).await;
    let store = open(&etcd).await;
    assert!(store.rejections(&query(10)).await.unwrap().is_empty());
    let tokens: Vec<u64> = (1..=MANY).collect();
    for chunk in tokens.chunks(50) {
        let batch: Vec<Operation> = chunk.iter().map(|token| rejection(*token)).collect();
        store.apply(Lane::Main, &batch).await.unwrap();
    }
    let newest = store.rejections(&query(10)).await.unwrap();
    let found: Vec<i64> = newest.iter().map(|row| row.token).collect();
    assert_eq!(found, (2_491..=2_500).rev().collect::<Vec<i64>>());
    let all = store.rejections(&query(10_000)).await.unwrap();
    assert_eq!(all.len() as u64, MANY);
    assert!(all.windows(2).all(|pair| pair[0].id > pair[1].id));
    // A query of one resource skips the others.
    let other = RejectionQuery {
        resource: Some(Resource::from("other")),
        ..query(10)
    };
    assert!(store.rejections(&other).await.unwrap().is_empty());
    let last = store
        .last_rejection_before(StoreTime::from_ms(i64::MAX))
        .await
        .unwrap();
    assert_eq!(last, all[0].id);
    let range = RejectionRange {
        after: all[100].id,
        to: last,
        since: StoreTime::from_ms(0),
    };
    let counts = store.rejection_counts(&range).await.unwrap();
    assert_eq!(counts.iter().map(|count| count.times).sum::<u64>(), 100);
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rejections_on_several_resources_have_ids_of_their_own() {
    // All of a batch, which etcd commits as one revision.
    let etcd = cluster(1, &[]).await;
    let store = open(&etcd).await;
    let names: Vec<String> = (0..20).map(|number| format!("r{number}")).collect();
    let repeated_names = names.iter().chain(&names);
    let batch: Vec<Operation> = repeated_names.map(|name| rejection_on(name, 7)).collect();
    store.apply(Lane::Main, &batch).await.unwrap();
    let found = store.rejections(&query(100)).await.unwrap();
    let ids: std::collections::BTreeSet<i64> = found.iter().map(|row| row.id).collect();
    assert_eq!((found.len(), ids.len()), (batch.len(), batch.len()), "{ids:?}");
    store.close().await;
}
