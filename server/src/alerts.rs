//! Alerts: rules and silences in SQL, the evaluator, and queries of both.
//!
//! Owns alert states and the decision whom to notify; delivery belongs to the implementation of [`Notices`].
//!
//! **Invariants:** a change of state and its notification are one transaction, so that a crash neither loses nor
//! repeats it; of several replicas on one Postgres the leader evaluates, and the store checks the fencing token of
//! its lease.

mod acknowledgements;
mod alert_cache;
mod ended_alerts;
mod error;
mod evaluator;
mod evaluator_monitor;
mod event_source;
mod firing_history;
mod outbox;
mod previews;
mod prometheus;
mod rules;
mod silences;
mod store;
mod toml;
mod unreadable_rows;
mod visibility;

use std::sync::Arc;

use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use domain::notification::Notice;

use self::evaluator::Evaluator;
use self::previews::Previews;
use crate::audit::Audit;
use crate::notify::Occasion;
use backends::BackendRegistry;
use inventory::Inventory;
use lease::LeaseService;
use runtime::clock::Clock;
use runtime::db::{Db, Tx};
use runtime::tasks;

pub use acknowledgements::AlertSelection;
pub use error::AlertError;
pub use evaluator_monitor::EvaluatorMonitor;
pub use event_source::{Ledger, ReadPositions, SqlLedger, Start};
pub use firing_history::EndedFiring;
pub use previews::{PreviewRun, PreviewSpan};
pub use prometheus::prometheus;
pub use rules::{KeptRule, RuleVersion};
pub use store::StoredAlert;
pub use toml::{from_toml, toml};
pub use visibility::{AlertPosition, AlertSummary, OpenAlert, ResolvedAlert};

/// The outbox port.
pub trait Notices: Send + Sync {
    /// Enqueues in the transaction of the state change.
    fn enqueue<'a>(
        &'a self,
        tx: &'a mut Tx,
        notice: &'a Notice,
        occasion: Occasion,
        now: i64,
    ) -> BoxFuture<'a, Result<(), sqlx::Error>>;

    /// Called after the commit.
    fn wake(&self) {}

    /// Receivers that this process has added. Other processes add receivers only on Postgres, where the revision shows it.
    fn receivers_added(&self) -> u64 {
        0
    }
}

/// Rules, silences and alerts. Cheap to share.
pub struct Alerts {
    pub(crate) db: Db,
    pub(crate) audit: Audit,
    pub(crate) inventory: Arc<Inventory>,
    pub(crate) ledger: Arc<dyn Ledger>,
    pub(crate) backends: Arc<BackendRegistry>,
    pub(crate) clock: Clock,
    evaluation: Arc<EvaluatorMonitor>,
    cache: alert_cache::AlertCache,
    ended: ended_alerts::EndedAlertCache,
    previews: Previews,
}

/// Dependencies of the evaluator.
pub struct AlertDeps {
    pub audit: Audit,
    /// Database of history.
    pub history: Db,
    pub inventory: Arc<Inventory>,
    pub leases: Arc<LeaseService>,
    pub notices: Arc<dyn Notices>,
    /// The configured backends.
    pub backends: Arc<BackendRegistry>,
    /// Records each evaluation, and is monitored.
    pub evaluation: Arc<EvaluatorMonitor>,
    pub clock: Clock,
    pub stop: CancellationToken,
}

impl Alerts {
    /// Starts the evaluation; creates the built-in rules at the first start.
    ///
    /// # Errors
    /// The store refuses or does not answer.
    pub async fn start(parts: AlertDeps) -> Result<Arc<Self>, sqlx::Error> {
        let db = parts.audit.db().clone();
        let previews = Previews::new(parts.history.clone());
        let ledger = SqlLedger::new(
            parts.history,
            parts.audit.clone(),
            parts.inventory.clone(),
            parts.leases.clone(),
        );
        let alerts = Arc::new(Self {
            db,
            audit: parts.audit,
            inventory: parts.inventory,
            ledger: Arc::new(ledger),
            backends: parts.backends,
            clock: parts.clock,
            evaluation: parts.evaluation,
            cache: alert_cache::AlertCache::default(),
            ended: ended_alerts::EndedAlertCache::default(),
            previews,
        });
        alerts.seed().await?;
        alerts.monitor(parts.stop.clone());
        let (it, leases, notices) = (alerts.clone(), parts.leases, parts.notices);
        let stop = parts.stop.clone();
        // After a panic it restarts as after a restart of the server: it reads the stored state and what it missed.
        tasks::spawn_until_finished("alerts", parts.stop, move || {
            Evaluator::new(it.clone(), &leases, notices.clone()).run(stop.clone())
        });
        Ok(alerts)
    }

    fn monitor(&self, stop: CancellationToken) {
        let (evaluation, db, until) = (self.evaluation.clone(), self.db.clone(), stop.clone());
        tasks::spawn_supervised("alert evaluation", stop, move || {
            let (evaluation, db, until) = (evaluation.clone(), db.clone(), until.clone());
            async move { evaluation.monitor(&db, until).await }
        });
    }

    /// Store queries of the evaluator; an idle server makes none.
    pub fn query_count(&self) -> u64 {
        self.ledger.query_count() + self.cache.query_count()
    }

    pub(crate) fn now(&self) -> i64 {
        self.clock.now().wall.timestamp_millis()
    }
}

pub use app::pages::overview::firing_alerts::path;
