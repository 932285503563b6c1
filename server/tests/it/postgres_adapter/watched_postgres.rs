//! A throwaway Postgres, the adapter on it, and a sink that stores its input.

use std::collections::BTreeMap;
use std::time::Duration;

use ::backends::postgres::{PostgresBackend, connect};
use ::backends::{Backend, BackendError, Batch, Budget, NamePredicate, Pass, Sink, SourcePass};
use ::config::postgres::{LeaseTableConfig, LeaseTablePreset, PostgresConfig, QueryText};
use ::config::tls::TlsConfig;
use ::config::{BackendConfig, SystemConfig};
use ::testkit::{Postgres, PostgresOptions, Throwaway};
use domain::names::{BackendName, Resource, Source};
use domain::observation::ObservedLock;
use runtime::clock::Clock;
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection};
use tokio::task::JoinHandle;

pub(super) const BUDGET: Budget = Budget {
    time_max: Duration::from_secs(20),
};

pub(super) const COMMON: &str = "CREATE TABLE distributed_locks (
    resource text PRIMARY KEY, owner_id text, lease_id text, fencing_token bigint,
    expires_at timestamptz, created_at timestamptz, updated_at timestamptz)";

pub(super) async fn server() -> Postgres {
    let settings = vec![("max_prepared_transactions".to_owned(), "5".to_owned())];
    Throwaway::postgres(PostgresOptions {
        fast: true,
        settings,
        ..Default::default()
    })
    .await
    .unwrap()
}

/// A session of a user of the database.
pub(super) async fn user(url: &str) -> PgConnection {
    PgConnection::connect(url).await.unwrap()
}

pub(super) async fn named_user(url: &str, application_name: &str) -> PgConnection {
    let mut session = user(url).await;
    run(
        &mut session,
        &format!("SET application_name = '{application_name}'"),
    )
    .await;
    session
}

pub(super) async fn run(session: &mut PgConnection, sql: &str) {
    session
        .execute(AssertSqlSafe(sql.to_owned()))
        .await
        .unwrap_or_else(|error| panic!("{sql}: {error}"));
}

/// Runs `sql`, which will block, in the background.
#[expect(
    clippy::disallowed_methods,
    reason = "a test's own session; its panic is the test's"
)]
pub(super) fn later(mut session: PgConnection, sql: &'static str) -> JoinHandle<()> {
    tokio::spawn(async move { run(&mut session, sql).await })
}

pub(super) async fn pid(session: &mut PgConnection) -> i32 {
    sqlx::query_scalar("SELECT pg_backend_pid()")
        .fetch_one(session)
        .await
        .unwrap()
}

pub(super) fn lease_table(
    table: &str,
    preset: LeaseTablePreset,
    columns: &[(&str, &str)],
) -> LeaseTableConfig {
    let columns = columns
        .iter()
        .map(|(role, column)| ((*role).to_owned(), (*column).to_owned()))
        .collect();
    LeaseTableConfig {
        stale_after: None,
        table: table.to_owned(),
        preset,
        columns,
        held_when: None,
        expires_unit: None,
        notify: None,
        release: None,
    }
}

pub(super) fn common(table: &str) -> LeaseTableConfig {
    lease_table(table, LeaseTablePreset::Common, &[])
}

pub(super) fn postgres_config(url: &str, lease_tables: Vec<LeaseTableConfig>) -> PostgresConfig {
    PostgresConfig {
        url: url.into(),
        unlock_url: None,
        advisory_locks: true,
        blocked_sessions: true,
        query_text: QueryText::default(),
        lease_tables,
        advisory_names: Vec::new(),
        names: Vec::new(),
        poolers: Vec::new(),
    }
}

pub(super) fn backend_config(postgres: &PostgresConfig) -> BackendConfig {
    BackendConfig {
        name: BackendName::parse("orders-db").unwrap(),
        poll_interval: Duration::from_secs(2),
        timeout: Duration::from_secs(5),
        scan_timeout: BUDGET.time_max,
        tls: TlsConfig::default(),
        user: None,
        password: None,
        system: SystemConfig::Postgres(postgres.clone()),
    }
}

pub(super) fn backend_of(postgres: &PostgresConfig) -> PostgresBackend {
    connect(&backend_config(postgres), postgres, Clock::start()).unwrap()
}

pub(super) fn backend(url: &str, lease_tables: Vec<LeaseTableConfig>) -> PostgresBackend {
    backend_of(&postgres_config(url, lease_tables))
}

/// The output of one scan.
#[derive(Default)]
pub(super) struct BatchSink {
    pub(super) batches: Vec<Batch>,
    /// Sources whose locks were all read.
    pub(super) read_sources: Vec<String>,
}

impl Sink for BatchSink {
    fn accept(&mut self, batch: Batch) {
        self.batches.push(batch);
    }

    fn read_part(&mut self, source: &Source, covers: NamePredicate) {
        assert!(covers(b"any".as_slice()));
        self.read_sources.push(source.as_str().to_owned());
    }
}

pub(super) struct SeenLocks {
    pub(super) pass: Pass,
    pub(super) batches: usize,
    pub(super) read_sources: Vec<String>,
    pub(super) locks: BTreeMap<(String, String), ObservedLock>,
}

impl SeenLocks {
    #[track_caller]
    pub(super) fn lock(&self, source: &str, resource: &str) -> &ObservedLock {
        let lock = self.locks.get(&(source.to_owned(), resource.to_owned()));
        lock.unwrap_or_else(|| panic!("no {resource} of {source} in {:?}", self.locks.keys()))
    }

    #[track_caller]
    pub(super) fn source(&self, source: &str) -> &SourcePass {
        self.pass
            .sources
            .iter()
            .find(|pass| pass.source.as_str() == source)
            .unwrap()
    }

    #[track_caller]
    pub(super) fn fault(&self, source: &str) -> &str {
        let pass = self.source(source);
        assert!(!pass.coverage.is_complete(), "{pass:?}");
        pass.fault.as_deref().unwrap()
    }

    pub(super) fn names_in(&self, source: &str) -> Vec<&str> {
        self.locks
            .keys()
            .filter(|(of, _)| of == source)
            .map(|(_, resource)| resource.as_str())
            .collect()
    }
}

pub(super) async fn try_observe(backend: &PostgresBackend) -> Result<SeenLocks, BackendError> {
    let mut kept = BatchSink::default();
    let pass = backend.observe(BUDGET, &mut kept).await?;
    let (batches, read_sources) = (kept.batches.len(), kept.read_sources);
    let locks = kept.batches.into_iter().flat_map(|batch| batch.locks);
    let locks = locks
        .map(|lock| ((lock.source.as_str().to_owned(), lock.resource.text()), lock))
        .collect();
    Ok(SeenLocks {
        pass,
        batches,
        read_sources,
        locks,
    })
}

pub(super) async fn observe(backend: &PostgresBackend) -> SeenLocks {
    try_observe(backend).await.unwrap()
}

pub(super) fn id(source: &str, resource: &str) -> (Source, Resource) {
    (Source::parse(source).unwrap(), Resource::from(resource))
}
