//! Job queues of npm and PyPI, with their presets: what is shown of a running job, why a forced unlock is refused, and
//! what the library's own way does instead.

use ::backends::Backend;
use ::backends::postgres::PostgresBackend;
use ::config::postgres::{LeaseTableConfig, LeaseTablePreset};
use domain::force_release::Release;
use domain::observation::{Lifetime, ObservedLock};
use testkit::{Postgres, eventually};

use super::lock_tables::only;
use super::release::unlocker;
use super::watched_postgres::*;
use crate::support::lock_client::LockClient;
use crate::support::unlocking::unlock;

const RECIPES: &str = include_str!("../../../../docs/recipes.md");

/// A server whose jobs are in one table.
struct Jobs {
    server: Postgres,
    backend: PostgresBackend,
    source: String,
}

impl Jobs {
    async fn start_on(table: &str, preset: LeaseTablePreset) -> Self {
        let server = server().await;
        let backend = unlocker(&server.superuser_url(), vec![lease_table(table, preset, &[])]);
        let source = format!("table:{table}");
        Self {
            server,
            backend,
            source,
        }
    }

    async fn start_worker(&self, script: &str, args: &[&str]) -> LockClient {
        let url = self.server.superuser_url();
        let mut worker = LockClient::start(script, &[&[url.as_str()], args].concat());
        assert_eq!(worker.line().await, "ready");
        worker
    }

    async fn held(&self) -> Vec<ObservedLock> {
        let observed = observe(&self.backend).await;
        assert!(
            observed.source(&self.source).coverage.is_complete(),
            "{:?}",
            observed.pass
        );
        let jobs = observed
            .locks
            .into_iter()
            .filter(|((source, _), _)| *source == self.source);
        jobs.map(|(_, lock)| lock).collect()
    }

    /// The only running job.
    async fn only(&self) -> ObservedLock {
        let [lock] = self.held().await.try_into().unwrap();
        lock
    }

    /// A forced unlock is refused and names the library's own command; the job continues.
    async fn refused(&self, lock: &ObservedLock, remedy: &str) {
        let (source, resource) = id(&self.source, &lock.resource.text());
        let detail = self.backend.inspect(&source, &resource).await.unwrap();
        let why = detail.blast_radius.why().unwrap();
        assert!(why.contains(remedy), "{why}");
        if lock.generation.is_known() {
            let answer = unlock(&self.backend, &source, &resource).await;
            assert!(
                matches!(&answer, Release::Refused { remedy: given, .. } if given.contains(remedy)),
                "{answer:?}"
            );
        }
        let after = self
            .backend
            .inspect(&source, &resource)
            .await
            .unwrap()
            .lock
            .unwrap();
        assert_eq!(after.owner, lock.owner);
    }
}

fn owner(lock: &ObservedLock) -> &str {
    lock.owner.known().unwrap().as_str()
}

#[tokio::test]
async fn a_job_of_procrastinate_holds_its_lock_until_it_ends() {
    // Two jobs with the same lock: the second starts after `retry_job` and `finish_job` have ended the first.
    let jobs = Jobs::start_on("public.procrastinate_jobs", LeaseTablePreset::Procrastinate).await;
    let mut first = jobs.start_worker("procrastinate_worker.py", &[]).await;
    first.send("defer").await;
    first.send("defer").await;
    assert_eq!(first.line().await, "started 1");
    let mut second = jobs.start_worker("procrastinate_worker.py", &[]).await;
    let lock = jobs.only().await;
    assert_eq!((lock.resource.text().as_str(), owner(&lock)), ("1", "1"));
    jobs.refused(&lock, "`retry_job` or `finish_job`").await;
    second.send("retry 1").await;
    assert_eq!(second.line().await, "started 1");
    assert_eq!(owner(&jobs.only().await), "2");
    let mut third = jobs.start_worker("procrastinate_worker.py", &[]).await;
    third.send("finish 1").await;
    assert_eq!(third.line().await, "started 2");
    let lock = jobs.only().await;
    assert_eq!((lock.resource.text().as_str(), owner(&lock)), ("2", "3"));
}

#[tokio::test]
async fn the_documented_view_shows_heartbeats_of_procrastinate() {
    // The SQL and the columns of the recipe.
    let jobs = Jobs::start_on("public.procrastinate_jobs", LeaseTablePreset::Procrastinate).await;
    let mut worker = jobs.start_worker("procrastinate_worker.py", &[]).await;
    worker.send("defer").await;
    assert_eq!(worker.line().await, "started 1");
    let lines = RECIPES
        .lines()
        .skip_while(|line| !line.starts_with("# CREATE VIEW"));
    let view: String = lines
        .take_while(|line| line.starts_with("# "))
        .map(|line| &line[1..])
        .collect();
    run(&mut user(&jobs.server.superuser_url()).await, &view).await;
    let columns = [
        ("resource", "id"),
        ("owner", "worker_id"),
        ("heartbeat", "last_heartbeat"),
    ];
    let table = LeaseTableConfig {
        stale_after: Some(std::time::Duration::from_secs(30)),
        ..only("public.running_jobs", &columns)
    };
    let observed = observe(&backend(&jobs.server.superuser_url(), vec![table])).await;
    let lock = observed.lock("table:public.running_jobs", "1");
    assert_eq!(owner(lock), "1");
    assert!(
        matches!(
            lock.lifetime,
            Lifetime::Heartbeat {
                stale_after_ms: 30_000,
                ..
            }
        ),
        "{lock:?}"
    );
}

#[tokio::test]
async fn a_job_of_pgqueuer_is_picked_again_without_heartbeats() {
    // The first worker is killed. A cancelled job is no longer held.
    let jobs = Jobs::start_on("public.pgqueuer", LeaseTablePreset::Pgqueuer).await;
    let mut first = jobs.start_worker("pgqueuer_worker.py", &["30"]).await;
    first.send("add").await;
    assert_eq!(first.line().await, "started 1");
    let lock = jobs.only().await;
    assert_eq!(owner(&lock).len(), 36, "the id of a queue manager: {lock:?}");
    assert!(
        matches!(
            lock.lifetime,
            Lifetime::Heartbeat {
                stale_after_ms: 30_000,
                ..
            }
        ),
        "{lock:?}"
    );
    jobs.refused(&lock, "mark_job_as_cancelled").await;
    drop(first);
    let mut second = jobs.start_worker("pgqueuer_worker.py", &["1"]).await;
    assert_eq!(second.line().await, "started 1");
    assert_ne!(owner(&jobs.only().await), owner(&lock));
    second.send("cancel 1").await;
    eventually("the cancelled job is not held", async || {
        jobs.held().await.is_empty()
    })
    .await;
}

#[tokio::test]
async fn a_cancelled_job_of_pg_boss_stays_cancelled() {
    // The handler is not interrupted; its end changes nothing.
    let jobs = Jobs::start_on("pgboss.job", LeaseTablePreset::PgBoss).await;
    let mut worker = jobs.start_worker("pg_boss.mjs", &[]).await;
    worker.send("add").await;
    let job = worker.until("started").await;
    let lock = jobs.only().await;
    assert_eq!(lock.resource.text(), job);
    assert!(lock.acquired_at.is_known() && !lock.owner.is_known(), "{lock:?}");
    jobs.refused(&lock, "boss.cancel").await;
    worker.send(&format!("cancel {job}")).await;
    assert_eq!(worker.line().await, "cancelled");
    assert!(jobs.held().await.is_empty());
    worker.send("end").await;
    worker.send("add").await;
    let next = worker.until("started").await;
    assert_eq!(jobs.only().await.resource.text(), next);
}

#[tokio::test]
async fn a_cancelled_workflow_of_dbos_fails_at_its_next_step() {
    // Only a workflow of a queue has a time of its start.
    let server = server().await;
    let url = server.superuser_url();
    let mut worker = LockClient::start("dbos_workflow.py", &[&url]);
    let mut started = [worker.until("started").await, worker.until("started").await];
    started.sort();
    assert_eq!(started, ["direct", "queued"]);
    let source = "table:dbos.workflow_status";
    let table = lease_table("dbos.workflow_status", LeaseTablePreset::Dbos, &[]);
    let jobs = Jobs {
        backend: unlocker(&url, vec![table]),
        server,
        source: source.to_owned(),
    };
    let [direct, queued] = jobs.held().await.try_into().unwrap();
    for lock in [&direct, &queued] {
        assert_eq!(owner(lock), "worker-1");
        jobs.refused(lock, "dbos workflow cancel").await;
    }
    assert!(queued.acquired_at.is_known(), "{queued:?}");
    let why = direct.acquired_at.why().unwrap();
    assert!(why.contains("started_at_epoch_ms"), "{why}");
    let mut command = LockClient::start("dbos_command.py", &["workflow", "cancel", "direct", "-s", &url]);
    assert_eq!(command.line().await, "done");
    assert_eq!(jobs.only().await.resource.text(), "queued");
    worker.send("").await;
    assert_eq!(worker.line().await, "DBOSAwaitedWorkflowCancelledError");
}

#[tokio::test]
async fn an_expired_job_of_apscheduler_runs_again_or_is_abandoned() {
    // The first scheduler dies. An idle one does not look by itself; with its next job it acquires the expired one too.
    let jobs = Jobs::start_on("public.jobs", LeaseTablePreset::Apscheduler).await;
    let mut first = jobs.start_worker("apscheduler_worker.py", &["host-1", "3"]).await;
    first.send("add").await;
    assert_eq!(first.line().await, "started");
    let lock = jobs.only().await;
    assert_eq!(owner(&lock), "host-1");
    assert!(
        matches!(
            lock.lifetime,
            Lifetime::Leased {
                remaining_ms: 1..=3_000,
                ..
            }
        ),
        "{lock:?}"
    );
    jobs.refused(&lock, "after `acquired_until`").await;
    let mut second = jobs.start_worker("apscheduler_worker.py", &["host-2", "3"]).await;
    drop(first);
    let expired = async || {
        matches!(
            jobs.only().await.lifetime,
            Lifetime::Leased {
                remaining_ms: ..=0,
                ..
            }
        )
    };
    eventually("the lease of the dead scheduler expires", expired).await;
    assert_eq!(owner(&jobs.only().await), "host-1");
    second.send("add").await;
    assert_eq!(second.line().await, "started");
    assert_eq!(second.line().await, "started");
    let held = jobs.held().await;
    assert!(
        !held.is_empty() && held.iter().all(|lock| owner(lock) == "host-2"),
        "{held:?}"
    );

    let mut third = jobs.start_worker("apscheduler_worker.py", &["host-3", "3"]).await;
    drop(second);
    eventually("the clean-up ends the expired jobs", async || {
        third.send("cleanup").await;
        jobs.held().await.is_empty()
    })
    .await;
}
