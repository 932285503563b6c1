//! People and machines: who they are, what they may do, and how they prove it.
//!
//! Owns people, tokens, grants, sessions, one-time links and the read-only switch, in SQL, and a directory in memory that
//! is at most a second behind it. Knows no HTTP and no page: cookies and headers are read elsewhere.
//!
//! **Invariants:** secrets are stored as hashes only; every change of who may do what is in the audit record, in the same
//! transaction; there is no default password.

mod attempt;
mod commit;
pub mod current;
mod directory;
mod error;
mod hashing_queue;
pub mod limits;
mod lineage;
mod links;
mod names;
mod notice;
pub mod oidc;
mod password;
mod people;
mod reread;
mod secret;
mod sessions;
mod standing;
mod throttle;
mod tokens;
pub mod who;

use std::sync::{Arc, OnceLock};

use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use crate::audit::{Appended, Audit};
use crate::clock::Clock;
use crate::db::Db;
use crate::tasks;

pub use directory::{Directory, Person, Token};
pub use error::IdentityError;
pub use lineage::{AccountChange, Lineage, is_opened_by, recent_authors, tie};
pub use notice::AccessChange;
pub use oidc::{Begun, Oidc, OidcError, OidcSetupError, Returned};
pub use people::NewPerson;
pub use secret::{Secret, id as new_id};
pub use sessions::{Session, SessionView, SignedIn};
pub use tokens::{NewToken, TokenView};
pub use who::{Subject, Who};

pub struct Identity {
    db: Db,
    audit: Audit,
    clock: Clock,
    directory: watch::Sender<Arc<Directory>>,
    /// Hashing a password costs memory and time on purpose: only so many at once.
    hashing: hashing_queue::HashingQueue,
    throttle: throttle::Throttle,
    reread: reread::Reread,
    /// Wakes the sender of notifications; absent in a command, whose messages the server finds by itself.
    outbox: OnceLock<Arc<Notify>>,
}

impl Identity {
    /// Loads the directory, and keeps it fresh until `stop`.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn start(
        db: Db,
        audit: Audit,
        clock: Clock,
        stop: CancellationToken,
    ) -> Result<Arc<Self>, sqlx::Error> {
        let identity = Arc::new(Self::open(db, audit, clock).await?);
        identity.remember_sources().await?;
        let keeper = identity.clone();
        tasks::keep("directory of people and tokens", stop.clone(), move || {
            let keeper = keeper.clone();
            async move { keeper.keep_fresh().await }
        });
        // Apart, because it writes: waiting for the store must not delay a revocation.
        let keeper = identity.clone();
        tasks::keep("last use of tokens", stop, move || {
            let keeper = keeper.clone();
            async move { keeper.keep_used().await }
        });
        Ok(identity)
    }

    /// For a command beside the server: loaded once.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn open(db: Db, audit: Audit, clock: Clock) -> Result<Self, sqlx::Error> {
        let directory = directory::load(&db).await?;
        Ok(Self {
            db,
            audit,
            clock,
            directory: watch::Sender::new(Arc::new(directory)),
            hashing: hashing_queue::HashingQueue::default(),
            throttle: throttle::Throttle::default(),
            reread: reread::Reread::default(),
            outbox: OnceLock::new(),
        })
    }

    /// People, tokens and grants as they stand.
    pub fn directory(&self) -> Arc<Directory> {
        self.directory.borrow().clone()
    }

    async fn keep_fresh(&self) {
        loop {
            tokio::time::sleep(limits::DIRECTORY_LOOK).await;
            if let Err(error) = self.reload_if_changed().await {
                tracing::warn!("cannot read people and tokens: {error}");
            }
        }
    }

    async fn keep_used(&self) {
        loop {
            tokio::time::sleep(limits::TOKEN_USED_EVERY).await;
            if let Err(error) = self.note_used().await {
                tracing::warn!("cannot write down which tokens were used: {error}");
            }
        }
    }

    /// Wakes this after changes that receivers are sent.
    pub fn wake_outbox(&self, outbox: Arc<Notify>) {
        // Set once, when the server starts.
        let _already_set = self.outbox.set(outbox);
    }

    async fn reload(&self) -> Result<(), sqlx::Error> {
        let loaded = Arc::new(directory::load(&self.db).await?);
        self.directory.send_if_modified(|current| {
            // Of two that read at the same time, the one that began earlier does not replace the later one.
            if loaded.version < current.version {
                return false;
            }
            loaded.keep_used(current);
            *current = loaded;
            true
        });
        Ok(())
    }

    /// After a change was committed: it holds here at once, elsewhere within a second.
    async fn changed(&self, appended: Appended) -> Result<(), IdentityError> {
        self.audit.export(&appended).await;
        self.reload().await?;
        Ok(())
    }

    fn now_ms(&self) -> i64 {
        self.clock.now().wall.timestamp_millis()
    }
}
