//! Users and API tokens: authentication, roles and permissions.
//!
//! Owns users, tokens, grants, sessions, one-time links and the read-only switch, in SQL, and an in-memory directory
//! that is at most one second behind. Knows neither HTTP nor pages: cookies and headers are read elsewhere.
//!
//! **Invariants:** secrets are stored as hashes only; every change of permissions is in the audit log, in the same
//! transaction; there is no default password.

mod access_change;
mod active_tokens;
mod cache_reload;
mod commit;
mod created_credentials;
pub mod current_principal;
mod error;
mod hashing_queue;
mod last_admin;
pub mod limits;
mod lineage;
mod names;
pub mod oidc;
mod one_time_links;
mod password;
pub mod principal;
mod principal_cache;
mod prune;
mod revalidation;
mod row_locks;
mod secret;
mod session_start;
mod sessions;
mod sign_in_attempt;
mod sign_in_throttle;
mod tokens;
mod user_passwords;
mod users;

use std::sync::{Arc, OnceLock};

use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use self::sign_in_throttle::SignInThrottle;
use crate::audit::{Appended, Audit};
use crate::janitor::Janitor;
use runtime::clock::Clock;
use runtime::db::Db;
use runtime::tasks;

pub use access_change::AccessChange;
pub use active_tokens::ActiveToken;
pub use created_credentials::EndedAccess;
pub use error::IdentityError;
pub use lineage::{AccountChange, Lineage, find_tie, is_opened_by, recent_authors};
pub use oidc::{Oidc, OidcError, OidcSetupError, Returned, StartedFlow};
pub use principal::{Principal, Subject};
pub use principal_cache::{Directory, Token, User};
pub use secret::Secret;
pub use sessions::{Session, SessionView, SignedIn};
pub use tokens::{NewToken, TokenView};
pub use users::NewUser;

pub struct Identity {
    db: Db,
    audit: Audit,
    clock: Clock,
    directory: watch::Sender<Arc<Directory>>,
    /// Password hashing is deliberately expensive: the number of concurrent hashes is limited.
    hashing: hashing_queue::HashingQueue,
    throttle: SignInThrottle,
    reread: cache_reload::Reread,
    /// Wakes the sender of notifications; absent in a CLI command, whose messages the server finds by polling.
    outbox: OnceLock<Arc<Notify>>,
}

impl Identity {
    /// Loads the directory and refreshes it until `stop`.
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
        let cache = identity.clone();
        tasks::spawn_supervised("user and token cache", stop.clone(), move || {
            let cache = cache.clone();
            async move { cache.refresh_regularly().await }
        });
        // A separate task, because it writes: waiting for the store must not delay a revocation.
        let tokens = identity.clone();
        tasks::spawn_supervised("token last use and old sessions", stop, move || {
            let tokens = tokens.clone();
            async move { tokens.record_uses_regularly().await }
        });
        Ok(identity)
    }

    /// For a CLI command next to the server: loaded once.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn open(db: Db, audit: Audit, clock: Clock) -> Result<Self, sqlx::Error> {
        let directory = principal_cache::load(&db).await?;
        Ok(Self {
            db,
            audit,
            clock,
            directory: watch::Sender::new(Arc::new(directory)),
            hashing: hashing_queue::HashingQueue::default(),
            throttle: SignInThrottle::default(),
            reread: cache_reload::Reread::default(),
            outbox: OnceLock::new(),
        })
    }

    /// Current users, tokens and grants.
    pub fn directory(&self) -> Arc<Directory> {
        self.directory.borrow().clone()
    }

    async fn refresh_regularly(&self) {
        loop {
            tokio::time::sleep(limits::DIRECTORY_POLL_INTERVAL).await;
            if let Err(error) = self.reload_if_changed().await {
                tracing::warn!("cannot read users and tokens: {error}");
            }
        }
    }

    async fn record_uses_regularly(&self) {
        let mut janitor = Janitor::new("sessions", limits::PRUNE_EVERY);
        loop {
            tokio::time::sleep(limits::TOKEN_USED_EVERY).await;
            janitor.run(self.clock.tick(), self.prune()).await;
            if let Err(error) = self.record_uses().await {
                tracing::warn!("cannot record which tokens were used: {error}");
            }
        }
    }

    /// Sets the notifier of the outbox, woken by changes that send notifications.
    pub fn wake_outbox(&self, outbox: Arc<Notify>) {
        // Set once, when the server starts.
        let _already_set = self.outbox.set(outbox);
    }

    async fn reload(&self) -> Result<(), sqlx::Error> {
        let loaded = Arc::new(principal_cache::load(&self.db).await?);
        self.directory.send_if_modified(|current| {
            // Of two concurrent reads, the one that began earlier does not replace the later one.
            if loaded.version < current.version {
                return false;
            }
            loaded.take_over_uses(current);
            *current = loaded;
            true
        });
        Ok(())
    }

    /// Call after the commit of a change: applied here immediately, on other replicas within a second.
    async fn changed(&self, appended: Appended) -> Result<(), IdentityError> {
        self.audit.export(&appended).await;
        self.reload().await?;
        Ok(())
    }

    fn now_ms(&self) -> i64 {
        self.clock.now().wall.timestamp_millis()
    }
}
