//! Postgres: lease tables, advisory locks, and sessions blocked on rows and tables.
//!
//! **Invariant:** the watching account never writes, takes a lock that a user could wait for, or waits long for a user's
//! lock: every session is read-only with `statement_timeout` and `lock_timeout`, there are at most three, and every wait
//! of ours ends with the configured `timeout`. A forced unlock is one statement of another account.

mod advisory;
mod catalog;
mod fault;
mod ident;
mod inspect;
mod known_keys;
mod lease_tables;
mod link;
mod party;
mod pass;
mod plan;
mod probe;
mod query_text;
mod record;
mod relation;
mod relay;
mod release;
mod repeated;
mod row_act;
mod rows;
mod settings;
mod snapshot;
mod table;
mod tree;
mod watch;

use domain::backend::{BackendKind, Capability};
use domain::generation::Generation;
use domain::names::{Resource, Source};
use domain::observation::Inspection;
use domain::release::{Act, Release};
use domain::safety::{Safety, SafetyClass};
use futures::future::BoxFuture;

use crate::backends::{Backend, BackendError, Budget, Hints, Pass, Probe, RELEASE, Sink};
use crate::clock::Clock;
use crate::config::BackendConfig;
use crate::config::postgres::{AdvisoryNameConfig, PostgresConfig};
use link::Links;
use table::LeaseTable;

/// One configured Postgres database.
#[derive(Debug)]
pub struct PostgresBackend {
    links: Links,
    /// The account of forced unlocks, where one is configured.
    unlocks: Option<Links>,
    tables: Vec<LeaseTable>,
    advisory_locks: bool,
    blocked_sessions: bool,
    advisory_names: Vec<AdvisoryNameConfig>,
    clock: Clock,
}

/// Reads the configuration; connects when it is first asked something.
///
/// # Errors
/// [`BackendError::Misconfigured`] when the URL, a table or a column mapping cannot be meant as written.
pub fn connect(
    config: &BackendConfig,
    postgres: &PostgresConfig,
    clock: Clock,
) -> Result<PostgresBackend, BackendError> {
    let settings = settings::read(config, postgres)?;
    let unlocks = settings::for_unlocks(config, postgres)?;
    let tables = postgres
        .lease_tables
        .iter()
        .map(LeaseTable::read)
        .collect::<Result<Vec<_>, _>>()?;
    if let Some(twice) = tables.iter().enumerate().find_map(|(at, table)| {
        tables[..at]
            .iter()
            .any(|other| other.source == table.source)
            .then(|| table.shown())
    }) {
        return Err(BackendError::Misconfigured {
            detail: format!("table {twice} is configured twice"),
            mend: "Remove one of its two `[[backend.lease_table]]`.".to_owned(),
        });
    }
    let listens = tables.iter().any(|table| table.notify.is_some());
    Ok(PostgresBackend {
        links: Links::new(settings, listens),
        unlocks: unlocks.map(|settings| Links::new(settings, false)),
        tables,
        advisory_locks: postgres.advisory_locks,
        blocked_sessions: postgres.blocked_sessions,
        advisory_names: postgres.advisory_names.clone(),
        clock,
    })
}

impl PostgresBackend {
    fn table(&self, source: &Source) -> Option<&LeaseTable> {
        self.tables.iter().find(|table| table.source == *source)
    }
}

impl Backend for PostgresBackend {
    fn kind(&self) -> BackendKind {
        BackendKind::Postgres
    }

    fn address(&self) -> String {
        self.links.settings.address.clone()
    }

    fn capabilities(&self) -> Vec<Capability> {
        let listens = self.tables.iter().any(|table| table.notify.is_some());
        let fences = self
            .tables
            .iter()
            .any(|table| table.safety().class == SafetyClass::Correctness);
        let can = |name: &str, can: bool, how: &str| Capability {
            name: name.to_owned(),
            can,
            how: how.to_owned(),
        };
        vec![
            can(
                "watch",
                listens,
                if listens {
                    "LISTEN on the tables' channels"
                } else {
                    watch::OFF
                },
            ),
            can(
                "waiters",
                self.advisory_locks || self.blocked_sessions,
                "pg_locks and pg_blocking_pids; a lease table does not record who waits",
            ),
            can(
                "fencing",
                fences,
                if fences {
                    "the lease table's token column"
                } else {
                    "no lease table with a token column is configured"
                },
            ),
            can(
                "ttl",
                !self.tables.is_empty(),
                "the lease table's expiry, by the server's clock; sessions have no TTL",
            ),
            match self.unlocks {
                Some(_) => can(RELEASE, true, release::HOW),
                None => can(RELEASE, false, release::NO_ACCOUNT),
            },
            can("clock", true, "clock_timestamp(), read once in each pass"),
        ]
    }

    fn safety(&self, source: &Source) -> Safety {
        match self.table(source) {
            Some(table) => table.safety(),
            None => Safety {
                class: SafetyClass::Efficiency,
                why: "session locks have no fencing token: what a paused holder does outside this database is not held back"
                    .into(),
            },
        }
    }

    fn grain_ms(&self, _source: &Source) -> i64 {
        1
    }

    fn observe<'a>(
        &'a self,
        budget: Budget,
        sink: &'a mut dyn Sink,
    ) -> BoxFuture<'a, Result<Pass, BackendError>> {
        Box::pin(pass::observe(self, budget, sink))
    }

    fn refresh<'a>(
        &'a self,
        names: &'a [(Source, Resource)],
        sink: &'a mut dyn Sink,
    ) -> BoxFuture<'a, Result<(), BackendError>> {
        Box::pin(pass::refresh(self, names, sink))
    }

    fn watch<'a>(&'a self, hints: Hints) -> BoxFuture<'a, ()> {
        Box::pin(watch::watch(self, hints))
    }

    fn inspect<'a>(
        &'a self,
        source: &'a Source,
        resource: &'a Resource,
    ) -> BoxFuture<'a, Result<Inspection, BackendError>> {
        Box::pin(inspect::inspect(self, source, resource))
    }

    fn release<'a>(
        &'a self,
        source: &'a Source,
        resource: &'a Resource,
        generation: &'a Generation,
        _act: &'a Act,
    ) -> BoxFuture<'a, Result<Release, BackendError>> {
        Box::pin(release::release(self, source, resource, generation))
    }

    fn probe(&self) -> BoxFuture<'_, Result<Probe, BackendError>> {
        Box::pin(probe::probe(self))
    }
}
