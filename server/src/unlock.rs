//! Forced unlocks in two steps: an intent that is bound to one person and to the holding that was read for it, then the
//! act, once, or nothing.
//!
//! Owns intents, tiers, approvals, acts and what becomes of outcomes that nobody heard. Who somebody is, is decided
//! before; how a backend is unlocked, by its adapter; nothing here knows HTTP.
//!
//! **Invariants:** the row of the intent is in the audit record before anything else happens, and the row of the act is
//! committed before a backend is asked; an intent is acted on at most once; an act without an answer is
//! `outcome_unknown`, never anything else, until the lock was read again.

mod act;
mod alarm;
mod approve;
mod choice;
mod claim;
mod confirm;
mod done;
mod error;
mod intent;
pub mod limits;
mod look;
mod note;
mod preview;
mod protection;
mod second;
mod standing;
mod store;
mod tending;
pub mod tiers;
mod unseen;
mod visible;
mod waiting;

use std::sync::atomic::{AtomicI64, AtomicU64};
use std::sync::{Arc, Mutex};

use domain::access::Right;
use domain::names::BackendName;
use domain::unlock::{TierReason, Unlock};
use tokio_util::sync::CancellationToken;

use crate::audit::Audit;
use crate::backends::Roster;
use crate::clock::Clock;
use crate::db::Db;
use crate::identity::{Identity, Who};
use crate::inventory::Inventory;
use crate::notify::Notifier;
use crate::tasks;

pub use choice::Narrowed;
pub use confirm::Confirmation;
pub use error::UnlockError;
pub use intent::Asked;
pub use preview::{Preview, hindrance};
pub use standing::Standing;
pub use tiers::TierRule;
pub use visible::VisibleUnlock;

pub struct Unlocks {
    audit: Audit,
    identity: Arc<Identity>,
    notifier: Arc<Notifier>,
    inventory: Arc<Inventory>,
    backends: Arc<Roster>,
    clock: Clock,
    /// Outcomes that are known here and could not be written yet.
    unwritten: Mutex<Vec<act::Told>>,
    /// Looks for open unlocks.
    rounds: AtomicU64,
    /// The end of the newest forced release that the inventory was told, in milliseconds since 1970.
    newest_release: AtomicI64,
}

impl Unlocks {
    /// Finds acts whose server went away before their outcome was written, and tends open unlocks until `stop`.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn start(
        audit: Audit,
        identity: Arc<Identity>,
        notifier: Arc<Notifier>,
        inventory: Arc<Inventory>,
        backends: Arc<Roster>,
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
        // With SQLite nobody else can be in the middle of an act; with Postgres another server may be, until its deadline.
        let is_alone = matches!(unlocks.db(), Db::Sqlite(_));
        unlocks.note_cut_off(is_alone).await?;
        unlocks.pass_on_releases().await?;
        let keeper = unlocks.clone();
        tasks::keep("forced unlocks", stop, move || {
            let keeper = keeper.clone();
            async move { keeper.tend().await }
        });
        Ok(unlocks)
    }

    /// One unlock as it is recorded, for who may see its lock. To show it, make a [`VisibleUnlock`] of it.
    ///
    /// # Errors
    /// `NotFound`, also for a name that the caller may not see.
    pub async fn get(&self, who: &Who, id: &str) -> Result<Unlock, UnlockError> {
        let unlock = store::get(self.db(), id).await?;
        unlock
            .filter(|unlock| who.may(Right::View, &unlock.backend, &unlock.resource.text()))
            .ok_or_else(|| UnlockError::no_unlock(id))
    }

    fn db(&self) -> &Db {
        self.audit.db()
    }

    fn now_ms(&self) -> i64 {
        self.clock.now().wall.timestamp_millis()
    }
}

/// Without the name of a casualty that the reader may not see.
fn seen_by(who: &Who, backend: &BackendName, reason: Option<TierReason>) -> Option<TierReason> {
    reason.map(|reason| reason.cut(|name| who.may(Right::View, backend, name)))
}
