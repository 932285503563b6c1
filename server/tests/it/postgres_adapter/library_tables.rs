//! What libraries of job tables do not show within seconds, and a table of another shape. The libraries themselves are in
//! `job_queues.rs`.

use ::config::postgres::LeaseTablePreset;
use domain::observation::Lifetime;

use super::watched_postgres::*;

#[tokio::test]
async fn a_picked_job_of_pgqueuer_shows_that_its_worker_is_silent() {
    // Two minutes without a heartbeat, against PgQueuer's own thirty seconds.
    let sql = "CREATE TABLE pgqueuer (id bigserial PRIMARY KEY, queue_manager_id uuid, heartbeat timestamptz NOT NULL,
        status text NOT NULL); INSERT INTO pgqueuer (queue_manager_id, heartbeat, status)
        VALUES (gen_random_uuid(), now() - interval '2 min', 'picked')";
    let server = server().await;
    run(&mut user(&server.superuser_url()).await, sql).await;
    let table = lease_table("public.pgqueuer", LeaseTablePreset::Pgqueuer, &[]);
    let observed = observe(&backend(&server.superuser_url(), vec![table])).await;
    let lock = observed.lock("table:public.pgqueuer", "1");
    assert!(
        matches!(
            lock.lifetime,
            Lifetime::Heartbeat {
                silent_ms: 120_000..,
                stale_after_ms: 30_000,
                ..
            }
        ),
        "{lock:?}"
    );
}

#[tokio::test]
async fn a_preset_for_another_table_names_the_missing_column() {
    // A table without the state column: a fault with the remedy, not an empty list.
    let server = server().await;
    let mut user = user(&server.superuser_url()).await;
    run(
        &mut user,
        "CREATE TABLE jobs (id int PRIMARY KEY, started_on timestamptz)",
    )
    .await;
    let backend = backend(
        &server.superuser_url(),
        vec![lease_table("jobs", LeaseTablePreset::PgBoss, &[])],
    );
    let observed = observe(&backend).await;
    let fault = observed.fault("table:public.jobs");
    assert!(
        fault.contains("has no column state") && fault.contains("set `held_when`"),
        "{fault}"
    );
}
