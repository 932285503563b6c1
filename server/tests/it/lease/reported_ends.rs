//! Answers about ended leases: an expiry is stored before an answer reports it, and a refusal names live leases only.

use std::time::Duration;

use ::lease::LeasePrincipal;
use ::lease::operation::{AcquireMode, AcquireOp, Operation, OperationResult};
use ::lease::store::Lane;
use axum::http::StatusCode;
use domain::lease::{LeaseId, Metadata, Revocation, Scope, Ttl};
use domain::names::{OwnerId, Resource};
use runtime::clock::Clock;
use serde_json::{Value, json};

use super::lease_server::{
    LeaseServer, LeaseStore, StoreKind, answer, aside, id, is_granted, on_both_stores, on_every_store,
};

/// How the stored row of this resource's lease says that it ended.
async fn stored_ending(lease_store: &LeaseStore, resource: &str) -> Option<String> {
    use sqlx::Connection as _;
    let text = "SELECT ended_how FROM leases WHERE resource = $1";
    if lease_store.postgres.is_some() {
        let mut connection = sqlx::PgConnection::connect(&lease_store.url).await.unwrap();
        let query = sqlx::query_scalar(text).bind(resource);
        return query.fetch_one(&mut connection).await.unwrap();
    }
    let mut connection = sqlx::SqliteConnection::connect(&lease_store.url).await.unwrap();
    let query = sqlx::query_scalar(text).bind(resource);
    query.fetch_one(&mut connection).await.unwrap()
}

/// Queries without pauses until the answer reports the end, so that only the answer itself can have stored it.
async fn asked_until_ended<F: Future<Output = bool>>(ended: impl Fn() -> F) {
    while !ended().await {}
}

on_both_stores!(an_expiry_is_stored_before_it_is_reported, |store| {
    // By reading the lease, by reading the resource, and by an idempotent replay.
    let server = store.serve().await;
    let lease = server.acquire("lease", "o", 1).await;
    let path = format!("/v1/locks/{}", lease["leaseId"].as_str().unwrap());
    asked_until_ended(|| async { server.get(&path).await.1["state"] == "expired" }).await;
    assert_eq!(stored_ending(store, "lease").await.as_deref(), Some("expired"));

    server.acquire("resource", "o", 1).await;
    asked_until_ended(|| async { server.resource("resource").await["holder"].is_null() }).await;
    assert_eq!(stored_ending(store, "resource").await.as_deref(), Some("expired"));

    let acquire = || async {
        let body = json!({"resource": "replay", "ownerId": "o", "ttlSeconds": 1});
        let url = format!("{}/v1/locks/acquire", server.base);
        answer(server.http.post(url).json(&body).header("idempotency-key", "k")).await
    };
    assert_eq!(acquire().await.0, StatusCode::OK);
    asked_until_ended(|| async { acquire().await.0 == StatusCode::GONE }).await;
    assert_eq!(stored_ending(store, "replay").await.as_deref(), Some("expired"));
    server.close().await;
});

on_every_store!(a_refusal_after_a_revocation_names_no_holder, |store| {
    // During the lock delay the revoked lease is not live, so it is not named, and the answer says when to retry.
    let server = store.serve().await;
    let lease = server.acquire("r", "o", 60).await;
    let revocation = Revocation {
        by: "ops".into(),
        reason: "test".into(),
        audit_id: "1".into(),
    };
    let delay = Duration::from_secs(30);
    server
        .service
        .revoke(id(&lease), revocation, delay)
        .await
        .unwrap();
    let refused = server.acquire("r", "next", 5).await;
    assert!(!is_granted(&refused) && refused["heldBy"].is_null(), "{refused}");
    assert_eq!(refused["waiters"], 0);
    let retry_ms = refused["retryAfterMs"].as_i64().unwrap();
    assert!((20_000..=30_000).contains(&retry_ms), "{refused}");
    server.close().await;
});

/// The COMMIT of each renewal takes longer than the lease's time left, and less than an outage.
const SLOW_RENEWALS: &str = "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN PERFORM pg_sleep(1.0); RETURN NULL; END $$;
    CREATE CONSTRAINT TRIGGER slow AFTER UPDATE ON leases DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW WHEN (NEW.ended_at IS NULL) EXECUTE FUNCTION slow()";

/// What one server reports of a lease while another renews it: its state, and whether the renewal was confirmed.
async fn read_during_renewal(near: &LeaseServer, far: &LeaseServer, resource: &str) -> (Value, bool) {
    let lease = near.acquire(resource, "o", 2).await;
    let path = format!("/v1/locks/{}", lease["leaseId"].as_str().unwrap());
    // Close to the end of the lease, by the clock of the store.
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    let renew = near.http.post(format!("{}{path}/renew", near.base));
    let renewed = aside(answer(renew.json(&json!({"ttlSeconds": 60}))));
    // After the expiry that the last committed row shows, before the renewal's COMMIT.
    tokio::time::sleep(Duration::from_millis(600)).await;
    let (_, read) = far.get(&path).await;
    (read["state"].clone(), renewed.await.unwrap().0 == StatusCode::OK)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_renewal_in_its_commit_is_not_reported_as_expired() {
    // Decided before the expiry and committed after it: a concurrent read waits for it. A slow machine may decide the
    // renewal too late or answer 503, which proves nothing.
    let store = LeaseStore::new(StoreKind::Postgres).await;
    let (near, far) = (store.serve().await, store.serve().await);
    store.sql(SLOW_RENEWALS).await;
    let mut proven = 0;
    for number in 0..5 {
        let (state, renewed) = read_during_renewal(&near, &far, &format!("r{number}")).await;
        assert!(
            !(renewed && state == "expired"),
            "reported as expired, then renewed"
        );
        if renewed && state == "held" {
            proven += 1;
            break;
        }
    }
    assert!(proven > 0, "no reading met a renewal in its commit");
    near.close().await;
    far.close().await;
}

on_both_stores!(the_expired_event_follows_the_stored_expiry, |store| {
    let server = store.serve().await;
    let lease = server.acquire("r", "o", 1).await;
    let url = format!(
        "{}/v1/locks/{}/events",
        server.base,
        lease["leaseId"].as_str().unwrap()
    );
    let stream = server.http.get(url).send().await.unwrap().text().await.unwrap();
    assert!(stream.contains("event: expired"), "{stream}");
    assert_eq!(stored_ending(store, "r").await.as_deref(), Some("expired"));
    server.close().await;
});

fn acquire(number: u8, mode: AcquireMode) -> Operation {
    Operation::Acquire(Box::new(AcquireOp {
        resource: Resource::from("r"),
        id: LeaseId::from_parts(1_700_000_000_000, [number; 10]),
        owner: OwnerId::new(format!("o{number}")),
        issuer: "".into(),
        ttl: Ttl::parse(60, 3_600).unwrap(),
        metadata: Metadata::default(),
        key: None,
        mode,
    }))
}

on_both_stores!(a_refusal_because_of_waiters_names_no_holder, |lease_store| {
    // The holder releases; the waiter is next and has not been granted yet.
    let store = lease_store.open(&Clock::start()).await;
    let release = Operation::Release {
        lease: LeaseId::from_parts(1_700_000_000_000, [1; 10]),
        principal: LeasePrincipal::new(""),
        scope: Scope::everything(),
        unbind: None,
    };
    let operations = [
        acquire(1, AcquireMode::Once),
        acquire(2, AcquireMode::OrWait),
        acquire(3, AcquireMode::Once),
        release,
        acquire(4, AcquireMode::Once),
    ];
    let applied = store.apply(Lane::Main, &operations).await.unwrap();
    let refusals = applied.done.iter().filter_map(|done| match done {
        OperationResult::Refused {
            refusal,
            waiters,
            reserved_for_waiter,
        } => {
            let owner = refusal.owner.as_ref().map(OwnerId::as_str);
            Some((owner, refusal.remaining_ms > 0, *waiters, *reserved_for_waiter))
        }
        _ => None,
    });
    let refusals: Vec<_> = refusals.collect();
    assert_eq!(refusals, [(Some("o1"), true, 1, false), (None, false, 1, true)]);
    store.close().await;
});
