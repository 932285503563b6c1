//! A listing of several batches while its rows change.

use std::collections::HashSet;
use std::sync::OnceLock;

use ::backends::{Backend, Batch, Sink};
use domain::names::Resource;
use domain::observation::Lifetime;

use super::watched_postgres::*;

const SOURCE: &str = "table:public.distributed_locks";

/// Runs `change` with the first batch of the table.
struct Interrupted<'a> {
    change: Option<Box<dyn FnOnce() + Send + 'a>>,
    kept: BatchSink,
}

impl Sink for Interrupted<'_> {
    fn accept(&mut self, batch: Batch) {
        let is_of_table = batch.locks.iter().any(|lock| lock.source.as_str() == SOURCE);
        if is_of_table && let Some(change) = self.change.take() {
            change();
        }
        self.kept.accept(batch);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn later_batches_are_as_old_as_the_first() {
    // With the first batch the last row passes to another owner, and a refresh reads it. The cursor still has the
    // earlier row, which must not count as the later reading; time left counts from the first request for every row.
    let server = server().await;
    let mut user = user(&server.superuser_url()).await;
    run(&mut user, COMMON).await;
    run(
        &mut user,
        "INSERT INTO distributed_locks SELECT 'job:' || n, 'one', 'l-1', n, now() + interval '1 h', now(), now()
        FROM generate_series(1, 300) n",
    )
    .await;
    let postgres = backend(&server.superuser_url(), vec![common("distributed_locks")]);
    let refreshed = OnceLock::new();
    let watching = &postgres;
    let change = async move {
        let sql =
            "UPDATE distributed_locks SET owner_id = 'two', lease_id = 'l-2' WHERE resource = 'job:300'";
        run(&mut user, sql).await;
        let mut kept = BatchSink::default();
        watching
            .refresh(&[id(SOURCE, "job:300")], &mut kept)
            .await
            .unwrap();
        kept.batches
    };
    let change = || {
        let runtime = tokio::runtime::Handle::current();
        let batches = tokio::task::block_in_place(|| runtime.block_on(change));
        refreshed.set(batches).unwrap();
    };
    let mut sink = Interrupted {
        change: Some(Box::new(change)),
        kept: BatchSink::default(),
    };
    postgres.observe(BUDGET, &mut sink).await.unwrap();
    let listed = sink.kept.batches;
    let owner = |batch: &Batch| {
        let mut locks = batch.locks.iter();
        let lock = locks.find(|lock| lock.resource == Resource::from("job:300"))?;
        Some(lock.owner.known().unwrap().as_str().to_owned())
    };
    let read = &refreshed.get().unwrap()[0];
    let last = listed.iter().find(|batch| owner(batch).is_some()).unwrap();
    assert_eq!(
        (owner(read).as_deref(), owner(last).as_deref()),
        (Some("two"), Some("one"))
    );
    assert!(
        last.sent_at < read.sent_at,
        "{:?}, {:?}",
        last.sent_at,
        read.sent_at
    );
    let rows = listed.iter().flat_map(|batch| &batch.locks);
    let times: HashSet<i64> = rows
        .filter(|lock| lock.source.as_str() == SOURCE)
        .map(|lock| match lock.lifetime {
            Lifetime::Leased { remaining_ms, .. } => remaining_ms,
            _ => panic!("{lock:?}"),
        })
        .collect();
    assert_eq!(times.len(), 1, "{times:?}");
}
