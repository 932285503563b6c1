//! Alerts: rules and silences in SQL, the evaluator that judges them, and what pages and programs ask of both.
//!
//! Owns states and who is told; how a message gets out is the affair of whoever implements [`Notices`].
//!
//! **Invariants:** a change of state and its notice are one transaction, so that a crash neither loses nor repeats it; of
//! several servers on one Postgres one evaluates, and its turn is a lease whose fencing token the store checks.

mod book;
mod error;
mod evaluation;
mod evaluator;
mod ledger;
mod previews;
mod prometheus;
mod rules;
mod silences;
mod store;
mod told;
mod visible;
mod written;

use std::sync::Arc;

use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use domain::alerts::Subject;
use domain::notice::Notice;

use self::evaluator::Evaluator;
use self::previews::Previews;
use crate::audit::Audit;
use crate::backends::Roster;
use crate::clock::Clock;
use crate::db::{Db, Tx};
use crate::inventory::Inventory;
use crate::lease::LeaseService;
use crate::notify::Occasion;
use crate::tasks;

pub use error::AlertError;
pub use evaluation::Evaluation;
pub use ledger::{Ledger, Marks, SqlLedger, Start};
pub use previews::{PreviewRun, PreviewSpan};
pub use prometheus::prometheus;
pub use rules::{KeptRule, RuleVersion};
pub use store::Kept;
pub use visible::{OpenAlert, ResolvedAlert};
pub use written::{from_toml, toml};

/// Takes what is to be sent.
pub trait Notices: Send + Sync {
    /// In the same transaction as the change of state it tells of.
    fn enqueue<'a>(
        &'a self,
        tx: &'a mut Tx,
        notice: &'a Notice,
        occasion: Occasion,
        now: i64,
    ) -> BoxFuture<'a, Result<(), sqlx::Error>>;

    /// It was committed.
    fn wake(&self) {}
}

/// What rules and alerts are asked for. Cheap to share.
pub struct Alerts {
    pub(crate) db: Db,
    pub(crate) audit: Audit,
    pub(crate) inventory: Arc<Inventory>,
    pub(crate) ledger: Arc<dyn Ledger>,
    pub(crate) backends: Arc<Roster>,
    pub(crate) clock: Clock,
    evaluation: Arc<Evaluation>,
    shelf: book::Shelf,
    previews: Previews,
}

/// What the evaluator stands on.
pub struct Parts {
    pub audit: Audit,
    /// Where history is.
    pub history: Db,
    pub inventory: Arc<Inventory>,
    pub leases: Arc<LeaseService>,
    pub notices: Arc<dyn Notices>,
    /// What is configured.
    pub backends: Arc<Roster>,
    /// Told of each evaluation, and monitored from now on.
    pub evaluation: Arc<Evaluation>,
    pub clock: Clock,
    pub stop: CancellationToken,
}

impl Alerts {
    /// Begins to evaluate; the built-in rules are there from the first start on.
    ///
    /// # Errors
    /// The store refuses or does not answer.
    pub async fn start(parts: Parts) -> Result<Arc<Self>, sqlx::Error> {
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
            shelf: book::Shelf::default(),
            previews,
        });
        alerts.seed().await?;
        alerts.monitor(parts.stop.clone());
        let (it, leases, notices) = (alerts.clone(), parts.leases, parts.notices);
        let stop = parts.stop.clone();
        // Made anew it begins as after a restart of the server: it reads what was written, and what it missed.
        tasks::keep_to_end("alerts", parts.stop, move || {
            Evaluator::new(it.clone(), leases.clone(), notices.clone()).run(stop.clone())
        });
        Ok(alerts)
    }

    fn monitor(&self, stop: CancellationToken) {
        let (evaluation, db, until) = (self.evaluation.clone(), self.db.clone(), stop.clone());
        tasks::keep("alert evaluation", stop, move || {
            let (evaluation, db, until) = (evaluation.clone(), db.clone(), until.clone());
            async move { evaluation.monitor(&db, until).await }
        });
    }

    /// How often evaluating has asked the store: an idle server does not.
    pub fn asked(&self) -> u64 {
        self.ledger.asked() + self.shelf.asked()
    }

    pub(crate) fn now(&self) -> i64 {
        self.clock.now().wall.timestamp_millis()
    }
}

/// The console's page on what an alert is about.
pub fn path(subject: &Subject) -> String {
    match subject {
        Subject::Lock(lock) => app::links::of(lock),
        Subject::Prefix { prefix, .. } => {
            // The part before the first id is the part that a list can be cut to.
            let plain = prefix.split('*').next().unwrap_or_default();
            app::links::prefix(plain)
        }
        Subject::Backend(_) => "/backends".to_owned(),
    }
}
