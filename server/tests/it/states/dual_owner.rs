//! Two owners of one lock, as each backend can show them, and when that ends.

use domain::state::LockState;
use serde_json::json;

use super::state_agreement::{alert, detail, is_listed, lock, reason, shows};
use super::systems::{Systems, execute};
use testkit::eventually;

const STATE: LockState = LockState::DualOwner;

#[tokio::test(flavor = "multi_thread")]
async fn a_stale_write_shows_two_owners_until_the_newer_lease_ends() {
    // worker-3 releases, worker-9 is granted the next token, worker-3 writes with its own.
    let systems = Systems::start().await;
    let console = &systems.console;
    let jobs = lock("builtin", "lease", "jobs");
    let first = systems.acquire("jobs", "worker-3", 600).await;
    systems.release(&first).await;
    let second = systems.acquire("jobs", "worker-9", 600).await;
    assert!(systems.write("jobs", "worker-9", &second["fencingToken"]).await);
    assert!(!systems.write("jobs", "worker-3", &first["fencingToken"]).await);
    shows(console, STATE, &jobs).await;
    let why = reason(&detail(console, &jobs).await, STATE).unwrap();
    let (older, newer) = (&first["fencingToken"], &second["fencingToken"]);
    assert!(
        why.starts_with(&format!("worker-3 wrote with token {older} at ")),
        "{why}"
    );
    assert!(
        why.ends_with(&format!(" UTC after worker-9 was granted {newer}.")),
        "{why}"
    );
    assert_eq!(
        alert(console, "dual_owner", &jobs).await.unwrap()["why"],
        why.as_str()
    );
    eventually("the suspicion is counted", async || {
        let metrics = console.get("/metrics").await.text().await.unwrap();
        metrics.lines().any(|line| {
            line.starts_with("distributed_lock_dual_owner_suspicions_total{")
                && line.contains("distributed_lock_backend=\"builtin\"")
                && !line.ends_with(" 0")
        })
    })
    .await;
    // The next holder is unrelated.
    systems.release(&second).await;
    systems.acquire("jobs", "worker-11", 600).await;
    eventually("the state and the alert end together", async || {
        let detail = detail(console, &jobs).await;
        detail["ownerId"] == "worker-11"
            && detail["state"] == "healthy"
            && !is_listed(console, STATE, &jobs).await
            && alert(console, "dual_owner", &jobs).await.is_none()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reported_rejection_counts_as_a_stale_write() {
    // A resource that compares tokens itself reports the older one; the holder's own token is no evidence.
    let systems = Systems::start().await;
    let reported = lock("builtin", "lease", "reported");
    let first = systems.acquire("reported", "worker-3", 600).await;
    systems.release(&first).await;
    let second = systems.acquire("reported", "worker-9", 600).await;
    let report = |token: &serde_json::Value| json!({"resource": "reported", "fencingToken": token, "ownerId": "worker-3", "source": "orders-db"});
    systems
        .post("/v1/fencing/rejections", &report(&second["fencingToken"]))
        .await;
    eventually("the rejection is seen", async || {
        alert(&systems.console, "fencing_rejections", &reported)
            .await
            .is_some()
    })
    .await;
    assert_eq!(detail(&systems.console, &reported).await["state"], "healthy");
    systems
        .post("/v1/fencing/rejections", &report(&first["fencingToken"]))
        .await;
    shows(&systems.console, STATE, &reported).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_live_rows_of_one_resource_are_two_owners() {
    // A table without a unique index: a row of history is no holder, a second live row is.
    let systems = Systems::start().await;
    let console = &systems.console;
    let rows = lock("orders", "table:public.locks", "twice");
    systems.row("twice", "worker-1", 3, "-5 minutes").await;
    systems.row("twice", "worker-9", 41, "10 minutes").await;
    console
        .inventory_where("backend=orders", |page| {
            page["locks"][0]["ownerId"] == "worker-9" && page["locks"][0]["state"] == "healthy"
        })
        .await;
    systems.row("twice", "worker-3", 40, "10 minutes").await;
    shows(console, STATE, &rows).await;
    let shown = detail(console, &rows).await;
    assert_eq!(
        reason(&shown, STATE).unwrap(),
        "The table has 2 rows for it that have not expired: worker-9 with token 41, worker-3 with token 40."
    );
    assert_eq!(
        (&shown["ownerId"], &shown["ownerCount"]),
        (&json!("worker-9"), &json!(2))
    );
    assert_eq!(shown["owners"], json!(["worker-9", "worker-3"]));
    execute(&systems.postgres, "DELETE FROM locks WHERE owner_id = 'worker-3'").await;
    eventually("one row is left, and nothing to say", async || {
        detail(console, &rows).await["state"] == "healthy"
            && alert(console, "dual_owner", &rows).await.is_none()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redisson_lock_with_two_owners_is_dual_owner() {
    // Readers may share their hash; the owners of a plain lock may not.
    let systems = Systems::start().await;
    let (one, other) = (
        "285475da-9152-4c83-822a-67ee2f116a79:52",
        "385475da-9152-4c83-822a-67ee2f116a79:7",
    );
    systems
        .redis(&["HSET", "lock:readers", "mode", "read", one, "1", other, "1"])
        .await;
    systems.redis(&["PEXPIRE", "lock:readers", "600000"]).await;
    systems.redis(&["HSET", "lock:plain", one, "1", other, "1"]).await;
    systems.redis(&["PEXPIRE", "lock:plain", "600000"]).await;
    shows(&systems.console, STATE, &lock("cache", "hash", "lock:plain")).await;
    let readers = detail(&systems.console, &lock("cache", "hash", "lock:readers")).await;
    assert_eq!(
        (&readers["ownerCount"], &readers["state"]),
        (&json!(2), &json!("healthy"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lower_token_shows_two_owners_until_the_newer_lease_ends() {
    // worker-3 overwrites the row of worker-9, which holds a newer token until its expiry.
    let systems = Systems::start().await;
    let console = &systems.console;
    let rows = lock("orders", "table:public.locks", "overwritten");
    systems.row("overwritten", "worker-9", 41, "8 seconds").await;
    eventually("worker-9 is seen", async || {
        detail(console, &rows).await["ownerId"] == "worker-9"
    })
    .await;
    let sql = "UPDATE locks SET owner_id = 'worker-3', lease_id = 'l-3', fencing_token = 40,
        expires_at = now() + interval '10 minutes', created_at = now(), updated_at = now()";
    execute(&systems.postgres, sql).await;
    shows(console, STATE, &rows).await;
    let why = reason(&detail(console, &rows).await, STATE).unwrap();
    assert!(why.starts_with("worker-3 acquired it at "), "{why}");
    assert!(
        why.contains(" with token 40 while worker-9, with token 41, has a lease until "),
        "{why}"
    );
    eventually("the newer lease has ended", async || {
        detail(console, &rows).await["state"] == "healthy"
            && alert(console, "dual_owner", &rows).await.is_none()
    })
    .await;
}
