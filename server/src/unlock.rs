//! Forced unlocks in two steps: an intent bound to one user and to the holding that was read for it, then one
//! execution or none.
//!
//! Owns intents, protected prefixes, approvals, executions and unresolved outcomes. Authentication happens before;
//! the release itself is the backend adapter's; nothing here knows HTTP.
//!
//! **Invariants:** the intent is in the audit log before anything else happens, and the entry of the execution is
//! committed before the backend is called; an intent is executed at most once; an execution without an answer is
//! `outcome_unknown`, never anything else, until the lock was read again.

mod approve;
mod audit_entries;
mod break_glass_alert;
mod bulk_candidates;
mod claim;
mod confirm;
mod error;
mod execute;
mod finding;
mod finished_unlocks;
mod fresh_read;
mod intent;
pub mod limits;
mod maintenance;
mod not_found;
mod pending_reviews;
mod preview;
pub mod protected_prefixes;
mod protection;
mod second_approver;
mod status;
mod store;
mod visibility;
mod weak_identity;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64};

use domain::access::Permission;
use domain::names::BackendName;
use domain::unlock::{ProtectionReason, Unlock};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::audit::Audit;
use crate::identity::{Identity, Principal};
use crate::notify::Notifier;
use backends::BackendRegistry;
use inventory::Inventory;
use runtime::clock::Clock;
use runtime::db::Db;
use runtime::tasks;

pub use bulk_candidates::{BulkCandidates, CandidateFilter};
pub use confirm::Confirmation;
pub use error::UnlockError;
pub use intent::UnlockRequest;
pub use preview::{Preview, find_blocked_reason};
pub use protected_prefixes::{ProtectedPrefix, is_exception};
pub use status::UnlockStatus;
pub use visibility::VisibleUnlock;

pub struct Unlocks {
    audit: Audit,
    identity: Arc<Identity>,
    notifier: Arc<Notifier>,
    inventory: Arc<Inventory>,
    backends: Arc<BackendRegistry>,
    clock: Clock,
    /// Known outcomes that could not be written yet.
    unwritten: Mutex<Vec<execute::PendingOutcome>>,
    /// Number of queries for open unlocks.
    rounds: AtomicU64,
    /// End of the newest forced release passed to the inventory, in milliseconds since 1970.
    newest_release: AtomicI64,
}

impl Unlocks {
    /// Resolves executions that were interrupted by a crash, and maintains open unlocks until `stop`.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn start(
        audit: Audit,
        identity: Arc<Identity>,
        notifier: Arc<Notifier>,
        inventory: Arc<Inventory>,
        backends: Arc<BackendRegistry>,
        clock: Clock,
        stop: CancellationToken,
    ) -> Result<Arc<Self>, sqlx::Error> {
        let unlocks = Arc::new(Self {
            audit,
            identity,
            notifier,
            inventory,
            backends,
            clock,
            unwritten: Mutex::default(),
            rounds: AtomicU64::new(0),
            newest_release: AtomicI64::new(0),
        });
        // With SQLite no other process can be executing; with Postgres another replica may be, until its deadline.
        let is_alone = matches!(unlocks.db(), Db::Sqlite(_));
        unlocks.resolve_interrupted(is_alone).await?;
        unlocks.pass_on_releases().await?;
        let maintained = unlocks.clone();
        tasks::spawn_supervised("forced unlocks", stop, move || {
            let maintained = maintained.clone();
            async move { maintained.run_maintenance().await }
        });
        Ok(unlocks)
    }

    /// One unlock as stored, for a reader who may see its lock. Convert it to a [`VisibleUnlock`] before display.
    ///
    /// # Errors
    /// `NotFound`, also for a name that the caller may not see.
    pub async fn get(&self, who: &Principal, id: &str) -> Result<Unlock, UnlockError> {
        let unlock = store::get(self.db(), id).await?;
        unlock
            .filter(|unlock| who.may(Permission::View, &unlock.backend, &unlock.resource.text()))
            .ok_or_else(|| UnlockError::no_unlock(id))
    }

    fn db(&self) -> &Db {
        self.audit.db()
    }

    fn now_ms(&self) -> i64 {
        self.clock.now().wall.timestamp_millis()
    }
}

/// Removes names of casualties that the reader may not see.
fn seen_by(
    who: &Principal,
    backend: &BackendName,
    reason: Option<ProtectionReason>,
) -> Option<ProtectionReason> {
    reason.map(|reason| reason.cut(|name| who.may(Permission::View, backend, name)))
}
