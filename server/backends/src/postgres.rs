//! Postgres: lease tables, advisory locks, and sessions blocked on rows and tables.
//!
//! **Invariant:** the watching account never writes, never takes a lock that a user could wait
//! for, and never waits long for a user's lock: every session is read-only with
//! `statement_timeout` and `lock_timeout`, there are at most three, of which reads of single locks
//! leave one to scans, and every wait ends with the configured `timeout`. A forced unlock is one
//! statement of another account.

mod advisory;
mod blocker_tree;
mod catalog;
mod checked_table;
mod column;
mod connection;
mod duplicate_rows;
mod error;
mod ident;
mod inspect;
mod known_keys;
mod lease_tables;
mod lock_participant;
mod lossy_text;
mod pooler;
mod preset;
mod probe;
mod query_text;
mod record;
mod relation;
mod release;
mod release_action;
mod rows;
mod scan;
mod settings;
mod snapshot;
mod table;
mod tls_server_name;
mod watch;

use domain::backend::{BackendKind, BackendTraits, Capability};
use domain::force_release::{Act, Release};
use domain::generation::Generation;
use domain::names::{Resource, Source};
use domain::observation::Inspection;
use domain::safety::{Safety, SafetyClass};
use futures::future::BoxFuture;

use crate::{Backend, BackendError, Budget, Hints, Pass, Probe, RELEASE, Sink};
use config::BackendConfig;
use config::postgres::PostgresConfig;
use connection::Links;
use known_keys::KeyNames;
use runtime::clock::Clock;
use table::LeaseTable;

/// One configured Postgres database.
#[derive(Debug)]
pub struct PostgresBackend {
    links: Links,
    /// The account of forced unlocks, if configured.
    unlocks: Option<Links>,
    tables: Vec<LeaseTable>,
    advisory_locks: bool,
    blocked_sessions: bool,
    key_names: KeyNames,
    clock: Clock,
}

/// Validates the configuration; connects at the first call.
///
/// # Errors
/// [`BackendError::Misconfigured`] if the URL, a table or a column mapping is invalid.
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
    if let Some(duplicate) = tables.iter().enumerate().find_map(|(at, table)| {
        tables[..at]
            .iter()
            .any(|other| other.source == table.source)
            .then(|| table.quoted_name())
    }) {
        return Err(BackendError::Misconfigured {
            detail: format!("table {duplicate} is configured twice"),
            remedy: "Remove one of its two `[[backend.lease_table]]`.".to_owned(),
        });
    }
    let listens = tables.iter().any(|table| table.notify.is_some());
    Ok(PostgresBackend {
        links: Links::new(settings, listens),
        unlocks: unlocks.map(|settings| Links::new(settings, false)),
        tables,
        advisory_locks: postgres.advisory_locks,
        blocked_sessions: postgres.blocked_sessions,
        key_names: KeyNames::new(&postgres.advisory_names, &postgres.names),
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
        vec![
            Capability::new(
                "watch",
                listens,
                if listens {
                    "LISTEN on the tables' channels"
                } else {
                    watch::OFF
                },
            ),
            Capability::new(
                "waiters",
                self.advisory_locks || self.blocked_sessions,
                "pg_locks and pg_blocking_pids; a lease table does not record waiters",
            ),
            Capability::new(
                "fencing",
                fences,
                if fences {
                    "the lease table's token column"
                } else {
                    "no lease table with a token column is configured"
                },
            ),
            Capability::new(
                "ttl",
                !self.tables.is_empty(),
                "the lease table's expiry, by the server's clock; sessions have no TTL",
            ),
            match self.unlocks {
                Some(_) => Capability::new(RELEASE, true, release::HOW),
                None => Capability::new(RELEASE, false, release::NO_ACCOUNT),
            },
            Capability::new("clock", true, "clock_timestamp(), read once in each scan"),
        ]
    }

    fn traits(&self) -> BackendTraits {
        BackendTraits::default()
    }

    fn safety(&self, source: &Source) -> Safety {
        match self.table(source) {
            Some(table) => table.safety(),
            None => Safety {
                class: SafetyClass::Efficiency,
                why: "session locks have no fencing token: writes of a paused holder outside this database are not \
                    rejected"
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
        Box::pin(scan::observe(self, budget, sink))
    }

    fn refresh<'a>(
        &'a self,
        names: &'a [(Source, Resource)],
        sink: &'a mut dyn Sink,
    ) -> BoxFuture<'a, Result<(), BackendError>> {
        Box::pin(scan::refresh(self, names, sink))
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
