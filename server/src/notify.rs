//! Telling people and machines that an alert fires or has ended: receivers, an outbox in SQL, and the task that sends.
//!
//! Owns who is told, what is on its way, and how it is sent. What fires, and whether it is silenced, is decided by those who
//! [`enqueue`]; they do so in the transaction that holds the reason, so that neither is there without the other.
//!
//! **Invariants:** a message is gone from the outbox only when its receiver took it, or as a dead letter that people see;
//! of one receiver and one group, messages arrive in order; no address is connected to that the guard has not seen; no
//! secret leaves but to its own receiver, and where there is a key none lies in the store in clear.

mod courier;
mod delivering;
mod enqueue;
mod error;
mod fingerprint;
pub mod guard;
pub mod keys;
pub mod limits;
pub mod message;
mod queue;
mod reaching;
pub mod receiver;
mod receivers;
mod send;
mod signature;
mod standing;
mod tending;
mod trial;
pub mod vault;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use self::courier::Courier;
use self::guard::Guard;
use crate::audit::Audit;
use crate::clock::Clock;
use crate::config::NotifyConfig;
use crate::db::Db;
use crate::tasks;

pub use delivering::Delivering;
pub use enqueue::{Occasion, enqueue, enqueue_at};
pub use error::NotifyError;
pub use fingerprint::fingerprint;
pub use queue::{Delivery, DeliveryState, Wanted};
pub use reaching::{Reached, Unreached, reach};
pub use receiver::{Kind, NewReceiver, ReceiverView};
pub use signature::sign;
pub use trial::Trial;
pub use vault::Vault;

pub struct Notifier {
    audit: Audit,
    clock: Clock,
    guard: Guard,
    vault: Vault,
    courier: Courier,
    /// Where people reach the console, without a slash at its end.
    home: String,
    resend: Duration,
    give_up: Duration,
    growth_factor: u32,
    woken: Arc<Notify>,
    /// How often the outbox was looked at.
    looks: AtomicU64,
    turns: delivering::Turns,
}

impl Notifier {
    /// How many times the alerts of its last message a group must have to be notified again.
    pub const fn growth_factor(&self) -> u32 {
        self.growth_factor
    }

    /// Begins to send what is in the outbox, until `stop`; what is being sent then is brought to its end.
    pub fn start(
        audit: Audit,
        vault: Vault,
        config: &NotifyConfig,
        home: &str,
        clock: Clock,
        stop: CancellationToken,
    ) -> (Arc<Self>, Delivering) {
        let guard = Guard::new(&config.allow);
        let notifier = Arc::new(Self {
            audit,
            clock,
            courier: Courier::new(&guard),
            guard,
            vault,
            home: home.to_owned(),
            resend: config.resend,
            give_up: config.give_up,
            growth_factor: config.growth_factor,
            woken: Arc::default(),
            looks: AtomicU64::new(0),
            turns: delivering::Turns::default(),
        });
        let (worker, ending) = (notifier.clone(), stop.clone());
        let task = tasks::keep_to_end("notifications", stop, move || {
            worker.clone().deliver(ending.clone())
        });
        (notifier, Delivering::new(task))
    }

    /// How often the outbox was looked at: that of an idle server on SQLite hardly is.
    pub fn looks(&self) -> u64 {
        self.looks.load(Ordering::Relaxed)
    }

    /// After a commit that held an [`enqueue`]: it is sent at once. Without this it is sent within ten seconds.
    pub fn wake(&self) {
        self.woken.notify_one();
    }

    /// The same for those who know no notifier.
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

/// For times in SQL.
fn ms(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}
