//! Notifications that an alert fires or has ended: receivers, an outbox in SQL, and the task that delivers.
//!
//! Owns receivers, pending messages and their delivery. Callers of [`enqueue`] decide what fires and what is
//! silenced; they enqueue in the transaction that records the reason, so that neither exists without the other.
//!
//! **Invariants:** a message leaves the outbox only when its receiver accepted it, or as a dead letter that users
//! see; messages of one receiver and group are delivered in order; no connection is made to an address that the
//! guard has not checked; a secret is sent only to its own receiver, and with a key none is stored in plain text.

mod active_alerts;
mod connectivity_check;
mod delivery;
mod delivery_loop;
mod enqueue;
mod error;
mod fingerprint;
mod http_sender;
pub mod limits;
pub mod message;
mod outbox;
mod pacing;
mod prune;
pub mod receiver;
mod receivers;
mod sealed_columns;
pub mod secret_box;
pub mod secret_keys;
pub mod ssrf_guard;
mod test_message;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use domain::duration::millis;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use self::http_sender::WebhookClient;
use self::ssrf_guard::SsrfGuard;
use crate::audit::Audit;
use config::NotifyConfig;
use runtime::clock::Clock;
use runtime::db::Db;
use runtime::tasks;

pub use connectivity_check::{Reachable, Unreachable, reach};
pub use delivery_loop::Delivering;
pub use enqueue::{Occasion, enqueue, enqueue_at};
pub use error::NotifyError;
pub use fingerprint::fingerprint;
pub use outbox::{Delivery, DeliveryFilter, DeliveryState};
pub use pacing::Pacing;
pub use receiver::{NewReceiver, ReceiverKind, ReceiverView};
pub use secret_box::SecretBox;
pub use test_message::TestMessage;

pub struct Notifier {
    audit: Audit,
    clock: Clock,
    guard: SsrfGuard,
    vault: SecretBox,
    courier: WebhookClient,
    /// Public URL of the console, without a trailing slash.
    home: String,
    resend_interval: Duration,
    max_retry_time: Duration,
    pacing: Pacing,
    woken: Arc<Notify>,
    /// Number of outbox queries.
    query_count: AtomicU64,
    /// Receivers added by this process.
    receivers_added: AtomicU64,
    served: delivery_loop::ServedReceivers,
}

impl Notifier {
    /// How often a group of alerts is notified.
    pub const fn pacing(&self) -> Pacing {
        self.pacing
    }

    /// Delivers messages of the outbox until `stop`; requests in flight then are completed.
    pub fn start(
        audit: Audit,
        vault: SecretBox,
        config: &NotifyConfig,
        home: &str,
        clock: Clock,
        stop: CancellationToken,
    ) -> (Arc<Self>, Delivering) {
        let guard = SsrfGuard::new(&config.allowed_networks);
        let notifier = Arc::new(Self {
            audit,
            clock,
            courier: WebhookClient::new(&guard),
            guard,
            vault,
            home: home.to_owned(),
            resend_interval: config.resend_interval,
            max_retry_time: config.max_retry_time,
            pacing: Pacing {
                growth_factor: config.growth_factor,
                group_interval_ms: millis(config.group_interval),
            },
            woken: Arc::default(),
            query_count: AtomicU64::new(0),
            receivers_added: AtomicU64::new(0),
            served: delivery_loop::ServedReceivers::default(),
        });
        let (worker, ending) = (notifier.clone(), stop.clone());
        let task = tasks::spawn_until_finished("notifications", stop, move || {
            worker.clone().deliver(ending.clone())
        });
        (notifier, Delivering::new(task))
    }

    /// Number of outbox queries; an idle server on SQLite makes few.
    pub fn query_count(&self) -> u64 {
        self.query_count.load(Ordering::Relaxed)
    }

    /// Receivers that this process has added.
    pub fn receivers_added(&self) -> u64 {
        self.receivers_added.load(Ordering::Relaxed)
    }

    /// Call after the commit of an [`enqueue`], to deliver at once instead of within ten seconds.
    pub fn wake(&self) {
        self.woken.notify_one();
    }

    /// The notifier behind [`wake`](Self::wake), for callers without access to this type.
    pub fn outbox(&self) -> Arc<Notify> {
        self.woken.clone()
    }

    fn db(&self) -> &Db {
        self.audit.db()
    }

    fn now_ms(&self) -> i64 {
        self.clock.now().wall.timestamp_millis()
    }
}
