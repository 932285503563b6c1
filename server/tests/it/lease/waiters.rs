//! Waiters: granted in order, one at a time; removed when they disconnect; and they never delay a renewal.

use std::time::Duration;

use axum::http::StatusCode;
use serde_json::{Value, json};

use super::lease_server::{
    LeaseServer, LeaseStore, StoreKind, aside, is_granted, on_every_store, stopwatch, token,
};
use testkit::eventually;

async fn waiters(server: &LeaseServer, resource: &str) -> Vec<String> {
    let found = server.resource(resource).await;
    let line = found["waiters"].as_array().unwrap();
    line.iter()
        .map(|waiter| waiter["ownerId"].as_str().unwrap().to_owned())
        .collect()
}

/// An acquire that waits, in a task of its own.
fn stand(
    server: &LeaseServer,
    resource: &str,
    owner: &str,
    wait: i64,
) -> tokio::task::JoinHandle<(StatusCode, Value)> {
    let body = json!({"resource": resource, "ownerId": owner, "ttlSeconds": 30, "waitSeconds": wait});
    let request = server
        .http
        .post(format!("{}/v1/locks/acquire", server.base))
        .json(&body);
    aside(super::lease_server::answer(request))
}

async fn stand_in_order(
    stages: &[&LeaseServer],
    resource: &str,
    count: usize,
) -> Vec<tokio::task::JoinHandle<(StatusCode, Value)>> {
    let mut line = Vec::new();
    for place in 0..count {
        line.push(stand(
            stages[place % stages.len()],
            resource,
            &format!("w{place}"),
            60,
        ));
        eventually("the waiter is queued", || async {
            waiters(stages[0], resource).await.len() == place + 1
        })
        .await;
    }
    line
}

async fn serve_in_order(stages: &[&LeaseServer], count: usize) {
    let attempts = || {
        stages
            .iter()
            .map(|server| server.service.metrics().grant_attempts.read())
            .sum::<u64>()
    };
    let mut holder = stages[0].acquire("r", "first", 60).await;
    let line = stand_in_order(stages, "r", count).await;
    let expected: Vec<String> = (0..count).map(|place| format!("w{place}")).collect();
    assert_eq!(waiters(stages[0], "r").await, expected);
    let before = attempts();
    for (place, waiter) in line.into_iter().enumerate() {
        assert_eq!(stages[0].delete(&holder).await.1, json!({"released": true}));
        let (status, granted) = waiter.await.unwrap();
        assert_eq!(status, StatusCode::OK, "{granted}");
        assert!(is_granted(&granted), "w{place}: {granted}");
        assert_eq!(token(&granted), u64::try_from(place).unwrap() + 2);
        holder = granted;
    }
    let tries = attempts() - before;
    assert!(
        tries <= 2 * u64::try_from(count).unwrap(),
        "{tries} tries for {count} releases"
    );
}

on_every_store!(waiters_are_served_in_order_one_for_each_release, |store| {
    // Trap 35: 60 waiters; each release wakes one, with at most 2 attempts each.
    let server = store.serve().await;
    serve_in_order(&[&server], 60).await;
    server.close().await;
});

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_replicas_share_one_queue() {
    // Waiters alternate between two servers on one Postgres; the order is the table's.
    let store = LeaseStore::new(StoreKind::Postgres).await;
    let (one, other) = (store.serve().await, store.serve().await);
    serve_in_order(&[&one, &other], 12).await;
    one.close().await;
    other.close().await;
}

on_every_store!(a_disconnected_waiter_is_removed_and_never_granted, |store| {
    // Trap 23: the first of two disconnects; it leaves the queue within 1 s, and the second is granted the released lock.
    let server = store.serve().await;
    let holder = server.acquire("r", "first", 60).await;
    let mut line = stand_in_order(&[&server], "r", 2).await;
    let second = line.pop().unwrap();
    line.pop().unwrap().abort();
    eventually("it is gone", || async { waiters(&server, "r").await == ["w1"] }).await;
    server.delete(&holder).await;
    let (_, granted) = second.await.unwrap();
    assert_eq!((is_granted(&granted), token(&granted)), (true, 2));
    server.delete(&granted).await;
    assert_eq!(server.resource("r").await["lastFencingToken"], 2);
    server.close().await;
});

on_every_store!(a_waiter_that_times_out_holds_nothing, |store| {
    // A wait of 1 s against a lease of 30 s: false after 1 s; against one of 1 s: the lease, as soon as it expires.
    let server = store.serve().await;
    server.acquire("long", "first", 30).await;
    server.acquire("short", "first", 1).await;
    let began = stopwatch();
    let refused = stand(&server, "long", "w", 1);
    let granted = stand(&server, "short", "w", 10);
    let (status, answer) = refused.await.unwrap();
    assert_eq!((status, is_granted(&answer)), (StatusCode::OK, false), "{answer}");
    assert_eq!(answer["heldBy"]["ownerId"], "first");
    assert!(began.elapsed() >= Duration::from_secs(1));
    let (_, answer) = granted.await.unwrap();
    assert!(is_granted(&answer), "{answer}");
    assert_eq!(waiters(&server, "long").await, Vec::<String>::new());
    server.close().await;
});

on_every_store!(a_new_acquire_does_not_overtake_the_queue, |store| {
    // Released while an owner waits: an acquire without a wait is refused, and the waiter gets the lock.
    let server = store.serve().await;
    let holder = server.acquire("r", "first", 60).await;
    let mut line = stand_in_order(&[&server], "r", 1).await;
    let (_, newcomer) = tokio::join!(server.delete(&holder), server.acquire("r", "newcomer", 30));
    let (_, granted) = line.pop().unwrap().await.unwrap();
    assert!(
        is_granted(&granted) && !is_granted(&newcomer),
        "{granted} {newcomer}"
    );
    server.close().await;
});

on_every_store!(requests_that_are_cut_off_leave_nothing_behind, |store| {
    // Traps 15, 16: 300 acquires and 100 waiting ones are aborted at random moments; the next is served, no lock stays
    // held or queued, and a release whose client disconnected still wakes the waiter.
    let server = store.serve().await;
    let mut aborted = Vec::new();
    for number in 0..400_u64 {
        let wait = if number % 4 == 0 { 30 } else { 0 };
        aborted.push((stand(&server, &format!("r{}", number % 7), "o", wait), number % 5));
        if aborted.len() >= 20 {
            for (task, ms) in aborted.drain(..) {
                // The abort may hit any stage of a request.
                tokio::time::sleep(Duration::from_millis(ms)).await;
                task.abort();
            }
        }
    }
    for number in 0..7 {
        let resource = format!("r{number}");
        eventually("the queue is empty", || async {
            waiters(&server, &resource).await.is_empty()
        })
        .await;
    }
    // Answers that arrived before the abort hold their lease until it is released here.
    let (_, list) = server.get("/v1/locks").await;
    for lock in list["locks"].as_array().unwrap() {
        server.delete(lock).await;
    }
    let holder = server.acquire("r1", "o", 30).await;
    assert!(is_granted(&holder), "{holder}");
    let waiter = stand(&server, "r1", "next", 30);
    eventually("it waits", || async { waiters(&server, "r1").await.len() == 1 }).await;
    let url = format!("{}/v1/locks/{}", server.base, holder["leaseId"].as_str().unwrap());
    let release = aside(server.http.delete(url).send());
    eventually("the waiter has it", || async {
        // Whatever happens to the release's client.
        let now = server.resource("r1").await;
        now["holder"]["ownerId"] == "next"
    })
    .await;
    release.abort();
    assert!(is_granted(&waiter.await.unwrap().1));
    server.close().await;
});

on_every_store!(a_crowd_of_waiters_starves_no_renewal, |store| {
    // Trap 17: 150 wait without a connection each; renewals and other acquires go through meanwhile, quickly.
    let server = store.serve().await;
    let holder = server.acquire("r", "first", 60).await;
    let crowd: Vec<_> = (0..150)
        .map(|place| stand(&server, "r", &format!("w{place}"), 30))
        .collect();
    eventually("all waiters are queued", || async {
        waiters(&server, "r").await.len() == 150
    })
    .await;
    for round in 0..30 {
        assert_eq!(server.renew(&holder).await.0, StatusCode::OK);
        assert!(is_granted(
            &server.acquire(&format!("other{round}"), "o", 30).await
        ));
    }
    // They wait for up to 30 s: all of them are still queued.
    assert_eq!(waiters(&server, "r").await.len(), 150);
    for waiter in crowd {
        waiter.abort();
    }
    eventually("the line is empty", || async {
        waiters(&server, "r").await.is_empty()
    })
    .await;
    server.close().await;
});

on_every_store!(waiters_are_rejected_at_shutdown, |store| {
    // On shutdown: 503 with Retry-After, no grant, the lease stays valid, all within 10 s.
    let server = store.serve().await;
    let holder = server.acquire("r", "first", 60).await;
    let body = json!({"resource": "r", "ownerId": "w", "ttlSeconds": 5, "waitSeconds": 60});
    let request = server
        .http
        .post(format!("{}/v1/locks/acquire", server.base))
        .json(&body);
    let waiter = aside(request.send());
    eventually("it waits", || async { waiters(&server, "r").await.len() == 1 }).await;
    server.close().await;
    let response = waiter.await.unwrap().unwrap();
    assert_eq!(
        (response.status().as_u16(), &response.headers()["retry-after"]),
        (503, &"1".parse().unwrap())
    );
    let server = store.serve().await;
    assert_eq!(server.renew(&holder).await.0, StatusCode::OK);
    assert_eq!(waiters(&server, "r").await, Vec::<String>::new());
    assert_eq!(server.resource("r").await["lastFencingToken"], 1);
    server.close().await;
});

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_retry_on_another_replica_gets_the_grant_of_its_key() {
    // Trap 22 over two replicas: the link of the first request is half-open, so its server still waits for the client, which
    // repeats the request elsewhere. An owner without a key waits between them.
    let store = LeaseStore::new(StoreKind::Postgres).await;
    let (one, other) = (store.serve().await, store.serve().await);
    let holder = one.acquire("r", "first", 60).await;
    let keyed = |server: &LeaseServer| {
        let body = json!({"resource": "r", "ownerId": "keyed", "ttlSeconds": 600, "waitSeconds": 30});
        let request = server.http.post(format!("{}/v1/locks/acquire", server.base));
        aside(super::lease_server::answer(
            request.header("idempotency-key", "k").json(&body),
        ))
    };
    let queued = async |count: usize| {
        eventually("it is queued", || async {
            waiters(&one, "r").await.len() == count
        })
        .await;
    };
    let first = keyed(&one);
    queued(1).await;
    let between = stand(&other, "r", "between", 30);
    queued(2).await;
    let retry = keyed(&other);
    queued(3).await;
    one.delete(&holder).await;
    let (_, granted) = first.await.unwrap();
    assert_eq!((is_granted(&granted), token(&granted)), (true, 2), "{granted}");
    let (_, repeated) = retry.await.unwrap();
    assert!(is_granted(&repeated), "{repeated}");
    assert_eq!(repeated["leaseId"], granted["leaseId"]);
    eventually("only the other one waits", || async {
        waiters(&one, "r").await == ["between"]
    })
    .await;
    between.abort();
    one.close().await;
    other.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_acquire_outlasts_the_waiter_of_a_killed_server() {
    // The lock is free, and reserved for the waiter of a server that was killed: it counts for 750 ms after the last heartbeat,
    // which is 200 ms ahead here, so that a fast machine does not give up before.
    let store = LeaseStore::new(StoreKind::Postgres).await;
    let server = store.serve().await;
    server.delete(&server.acquire("r", "first", 60).await).await;
    store
        .sql(
            "INSERT INTO lease_waiters (waiter_id, resource, owner_id, replica_id, waiting_since)
                VALUES ('00000000-0001-7000-8000-000000000001', 'r', 'w', 'killed', 0);
             INSERT INTO lease_replicas
                VALUES ('killed', (extract(epoch FROM clock_timestamp()) * 1000)::bigint + 200)",
        )
        .await;
    let granted = server.acquire("r", "next", 60).await;
    assert!(is_granted(&granted), "{granted}");
    server.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiters_whose_rows_were_deleted_join_again() {
    // No heartbeat for longer than other servers wait for one: they have deleted the rows of our waiters.
    let store = LeaseStore::new(StoreKind::Postgres).await;
    let server = store.serve().await;
    let holder = server.acquire("r", "first", 60).await;
    let line = stand_in_order(&[&server], "r", 1).await;
    let mut database = store.first_database().await;
    let mut other_server = sqlx::Connection::begin(&mut database).await.unwrap();
    sqlx::raw_sql("SELECT FROM lease_replicas FOR UPDATE; DELETE FROM lease_waiters")
        .execute(&mut *other_server)
        .await
        .unwrap();
    // Real heartbeats are missed meanwhile.
    tokio::time::sleep(Duration::from_secs(6)).await;
    other_server.commit().await.unwrap();
    eventually("it waits again", || async {
        waiters(&server, "r").await == ["w0"]
    })
    .await;
    server.delete(&holder).await;
    for waiter in line {
        let (_, granted) = waiter.await.unwrap();
        assert!(is_granted(&granted), "{granted}");
    }
    server.close().await;
}
