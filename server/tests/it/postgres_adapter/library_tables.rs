//! Lock tables of libraries, with the columns that each of them publishes: what is held, and what a forced unlock does.

use ::config::postgres::LeaseTablePreset;
use domain::force_release::Release;
use domain::observation::{Lifetime, ObservedLock};
use sqlx::PgConnection;
use testkit::Postgres;

use super::release::unlocker;
use super::watched_postgres::*;
use crate::support::unlocking::unlock;

/// A server with a library's table, and its only held row.
async fn held(
    sql: &str,
    table: &str,
    preset: LeaseTablePreset,
    resource: &str,
) -> (Postgres, PgConnection, ObservedLock) {
    let server = server().await;
    let mut user = user(&server.superuser_url()).await;
    run(&mut user, sql).await;
    let backend = backend(&server.superuser_url(), vec![lease_table(table, preset, &[])]);
    let observed = observe(&backend).await;
    let source = format!("table:{table}");
    assert_eq!(observed.names_in(&source), [resource], "{:?}", observed.pass);
    let lock = observed.lock(&source, resource).clone();
    (server, user, lock)
}

async fn release(server: &Postgres, table: &str, preset: LeaseTablePreset, resource: &str) -> Release {
    let backend = unlocker(&server.superuser_url(), vec![lease_table(table, preset, &[])]);
    let (source, resource) = id(&format!("table:{table}"), resource);
    unlock(&backend, &source, &resource).await
}

async fn rows(user: &mut PgConnection, table: &str) -> i64 {
    let sql = format!("SELECT count(*) FROM {table}");
    sqlx::query_scalar(sqlx::AssertSqlSafe(sql))
        .fetch_one(user)
        .await
        .unwrap()
}

#[tokio::test]
async fn locks_of_laravel_and_symfony_are_deleted_like_by_the_library() {
    // Seconds since 1970; the owner or token is unique for each holding. Laravel releases by DELETE too.
    let laravel = "CREATE TABLE cache_locks (key varchar(255) PRIMARY KEY, owner varchar(255) NOT NULL, expiration int NOT NULL);
        INSERT INTO cache_locks VALUES ('app_cache_report', 'n8f2kq', extract(epoch FROM now()) + 600)";
    let symfony = "CREATE TABLE lock_keys (key_id varchar(64) NOT NULL PRIMARY KEY, key_token varchar(44) NOT NULL,
        key_expiration int NOT NULL); INSERT INTO lock_keys VALUES ('9f86d081', 'q0Zb+token=', extract(epoch FROM now()) + 600)";
    for (sql, table, preset, resource, owner) in [
        (
            laravel,
            "public.cache_locks",
            LeaseTablePreset::Laravel,
            "app_cache_report",
            "n8f2kq",
        ),
        (
            symfony,
            "public.lock_keys",
            LeaseTablePreset::Symfony,
            "9f86d081",
            "q0Zb+token=",
        ),
    ] {
        let (server, mut user, lock) = held(sql, table, preset, resource).await;
        assert_eq!(lock.owner.known().unwrap().as_str(), owner);
        assert_eq!(lock.lease_id.known().map(AsRef::as_ref), Some(owner));
        assert!(
            matches!(
                lock.lifetime,
                Lifetime::Leased {
                    remaining_ms: 500_000..=601_000,
                    ..
                }
            ),
            "{lock:?}"
        );
        assert_eq!(release(&server, table, preset, resource).await, Release::Released);
        assert_eq!(rows(&mut user, table).await, 0);
    }
}

const PG_BOSS: &str = "CREATE SCHEMA pgboss; CREATE TYPE pgboss.job_state AS ENUM ('created', 'retry', 'active', 'completed');
        CREATE TABLE pgboss.job (id uuid NOT NULL, name text NOT NULL, state pgboss.job_state NOT NULL, data jsonb,
        started_on timestamptz, expire_seconds int NOT NULL, PRIMARY KEY (name, id));
        INSERT INTO pgboss.job VALUES ('7f000001-0000-4000-8000-000000000001', 'mail', 'active', '{}', now(), 900),
        ('7f000001-0000-4000-8000-000000000002', 'mail', 'created', '{}', NULL, 900)";
const PROCRASTINATE: &str = "CREATE TYPE procrastinate_job_status AS ENUM ('todo', 'doing', 'succeeded', 'failed');
        CREATE TABLE procrastinate_jobs (id bigserial PRIMARY KEY, queue_name varchar(128) NOT NULL,
        task_name varchar(128) NOT NULL, lock text, status procrastinate_job_status NOT NULL, worker_id bigint);
        INSERT INTO procrastinate_jobs (queue_name, task_name, status, worker_id)
        VALUES ('q', 't', 'doing', 7), ('q', 't', 'todo', NULL)";
const PGQUEUER: &str = "CREATE TYPE pgqueuer_status AS ENUM ('queued', 'picked', 'successful');
        CREATE TABLE pgqueuer (id bigserial PRIMARY KEY, priority int NOT NULL, queue_manager_id uuid,
        created timestamptz NOT NULL DEFAULT now(), updated timestamptz NOT NULL DEFAULT now(),
        heartbeat timestamptz NOT NULL DEFAULT now(), status pgqueuer_status NOT NULL, entrypoint text NOT NULL);
        INSERT INTO pgqueuer (priority, queue_manager_id, heartbeat, status, entrypoint)
        VALUES (0, gen_random_uuid(), now() - interval '2 min', 'picked', 'f'), (0, NULL, now(), 'queued', 'f')";
const DBOS: &str = "CREATE SCHEMA dbos; CREATE TABLE dbos.workflow_status (workflow_uuid text PRIMARY KEY, status text,
        executor_id text, owner_xid text, created_at bigint NOT NULL, updated_at bigint NOT NULL, started_at_epoch_ms bigint);
        INSERT INTO dbos.workflow_status VALUES ('wf-1', 'PENDING', 'local', 'x-9', 0, 0, extract(epoch FROM now()) * 1000),
        ('wf-2', 'SUCCESS', 'local', NULL, 0, 0, 0)";
const APSCHEDULER: &str = "CREATE TABLE jobs (id uuid PRIMARY KEY, task_id varchar(500) NOT NULL, args bytea NOT NULL,
        created_at timestamptz NOT NULL, acquired_by varchar(500), acquired_until timestamptz);
        INSERT INTO jobs VALUES ('7f000001-0000-4000-8000-000000000001', 't', '', now(), 'host-1', now() + interval '30 s'),
        ('7f000001-0000-4000-8000-000000000002', 't', '', now(), NULL, NULL)";

#[tokio::test]
async fn jobs_whose_end_is_the_librarys_are_shown_and_not_released() {
    // Held by their state alone; the refusal names the library's own way.
    let uuid = "7f000001-0000-4000-8000-000000000001";
    for (sql, table, preset, resource, remedy) in [
        (
            PG_BOSS,
            "pgboss.job",
            LeaseTablePreset::PgBoss,
            uuid,
            "boss.cancel",
        ),
        (
            PROCRASTINATE,
            "public.procrastinate_jobs",
            LeaseTablePreset::Procrastinate,
            "1",
            "retry_job",
        ),
        (
            PGQUEUER,
            "public.pgqueuer",
            LeaseTablePreset::Pgqueuer,
            "1",
            "mark_job_as_cancelled",
        ),
        (
            DBOS,
            "dbos.workflow_status",
            LeaseTablePreset::Dbos,
            "wf-1",
            "dbos workflow cancel",
        ),
        (
            APSCHEDULER,
            "public.jobs",
            LeaseTablePreset::Apscheduler,
            uuid,
            "takes it over",
        ),
    ] {
        let (server, _user, lock) = held(sql, table, preset, resource).await;
        if let Some(why) = lock.generation.why() {
            assert!(why.contains(remedy), "{table}: {why}");
            continue;
        }
        let answer = release(&server, table, preset, resource).await;
        assert!(
            matches!(&answer, Release::Refused { remedy: given, .. } if given.contains(remedy)),
            "{table}: {answer:?}"
        );
    }
}

#[tokio::test]
async fn a_picked_job_of_pgqueuer_shows_that_its_worker_is_silent() {
    // Two minutes without a heartbeat, against PgQueuer's own thirty seconds.
    let sql = "CREATE TABLE pgqueuer (id bigserial PRIMARY KEY, queue_manager_id uuid, heartbeat timestamptz NOT NULL,
        status text NOT NULL); INSERT INTO pgqueuer (queue_manager_id, heartbeat, status)
        VALUES (gen_random_uuid(), now() - interval '2 min', 'picked')";
    let (_server, _user, lock) = held(sql, "public.pgqueuer", LeaseTablePreset::Pgqueuer, "1").await;
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
