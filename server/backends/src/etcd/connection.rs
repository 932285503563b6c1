//! Calls to etcd with a timeout: one client for the current endpoint, recreated when it breaks;
//! the next endpoint when one fails.
//!
//! etcd's Rust client would spread calls over all endpoints, including dead ones, so each
//! client here has one endpoint. Only reads go through [`Link::call`], so calls may be
//! repeated.
//!
//! **Invariant**: no call takes longer than the configured timeout.

use std::future::Future;
use std::time::Duration;

use etcd_client::{Client, Error};
use parking_lot::{Mutex, MutexGuard};

use super::error::{EtcdError, EtcdErrorKind};
use super::settings::EtcdSettings;
use runtime::clock::Clock;

pub(super) struct Link {
    pub(super) settings: EtcdSettings,
    pub(super) clock: Clock,
    slot: Mutex<Slot>,
    /// One login at a time: each costs etcd 50 ms of CPU.
    connecting: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Slot {
    /// Index of the current endpoint.
    index: usize,
    client: Option<Connected>,
    /// Number of clients given up, so that calls that fail together switch the endpoint once.
    epoch: u64,
}

#[derive(Clone)]
pub(super) struct Connected {
    pub(super) client: Client,
    pub(super) login: Login,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Login {
    /// No user is configured.
    None,
    Done,
    /// A user is configured and etcd reports that authentication is off.
    Off,
}

impl Link {
    pub(super) fn new(settings: EtcdSettings, clock: Clock) -> Self {
        Self {
            settings,
            clock,
            slot: Mutex::default(),
            connecting: tokio::sync::Mutex::new(()),
        }
    }

    /// Runs `work`; repeats it after an error that another connection or endpoint may not have.
    pub(super) async fn call<T, F, W>(&self, work: F) -> Result<T, EtcdError>
    where
        F: Fn(Client) -> W,
        W: Future<Output = Result<T, Error>>,
    {
        let timeout_ms = self.settings.timeout_ms();
        let started = self.clock.tick();
        let endpoints = self.settings.endpoints.len();
        let mut last = EtcdError::no_answer(timeout_ms);
        for attempt in 0..endpoints.max(2) {
            let left_ms = timeout_ms - self.clock.tick().since(started);
            if left_ms <= 0 {
                break;
            }
            // A dead endpoint must leave time for the others.
            let others = i64::try_from(endpoints.saturating_sub(attempt).max(1)).unwrap_or(1);
            let share = Duration::from_millis(u64::try_from(left_ms / others).unwrap_or(0));
            let epoch = self.slot().epoch;
            match tokio::time::timeout(share, self.attempt(&work)).await {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(fault)) => last = fault,
                Err(_) => last = EtcdError::no_answer(timeout_ms),
            }
            match last.kind {
                EtcdErrorKind::Transport => self.abandon(epoch, 1),
                EtcdErrorKind::LoginLost | EtcdErrorKind::AuthOff if self.settings.user.is_some() => {
                    self.abandon(epoch, 0)
                }
                _ => return Err(last),
            }
        }
        Err(last)
    }

    async fn attempt<T, F, W>(&self, work: &F) -> Result<T, EtcdError>
    where
        F: Fn(Client) -> W,
        W: Future<Output = Result<T, Error>>,
    {
        let connected = self.connected().await?;
        work(connected.client).await.map_err(|error| self.fault(&error))
    }

    pub(super) fn fault(&self, error: &Error) -> EtcdError {
        EtcdError::from_error(error, self.settings.timeout_ms())
    }

    /// The current client, or a new one.
    pub(super) async fn connected(&self) -> Result<Connected, EtcdError> {
        if let Some(connected) = self.in_use() {
            return Ok(connected);
        }
        let _turn = self.connecting.lock().await;
        if let Some(connected) = self.in_use() {
            return Ok(connected);
        }
        let (index, epoch) = {
            let slot = self.slot();
            (slot.index, slot.epoch)
        };
        let connected = self.connect(index).await?;
        let mut slot = self.slot();
        if slot.epoch == epoch {
            slot.client = Some(connected.clone());
        }
        Ok(connected)
    }

    /// A new client for one endpoint (index modulo their number). The caller limits the time.
    pub(super) async fn connect(&self, index: usize) -> Result<Connected, EtcdError> {
        let endpoint = [&self.settings.endpoints[index % self.settings.endpoints.len()]];
        let login = self.settings.user.is_some();
        match Client::connect(endpoint, Some(self.settings.options(login))).await {
            Ok(client) => Ok(Connected {
                client,
                login: if login { Login::Done } else { Login::None },
            }),
            Err(error) => {
                let fault = self.fault(&error);
                if fault.kind != EtcdErrorKind::AuthOff {
                    return Err(fault);
                }
                let client = Client::connect(endpoint, Some(self.settings.options(false))).await;
                let client = client.map_err(|error| self.fault(&error))?;
                Ok(Connected {
                    client,
                    login: Login::Off,
                })
            }
        }
    }

    /// The current endpoint's index.
    pub(super) fn index(&self) -> usize {
        self.slot().index
    }

    /// The current client may be broken: the next call creates a new one.
    pub(super) fn forget(&self) {
        let epoch = self.slot().epoch;
        self.abandon(epoch, 1);
    }

    /// Drops the client of `epoch`, unless another call has replaced it, and moves on by `step` endpoints.
    fn abandon(&self, epoch: u64, step: usize) {
        let mut slot = self.slot();
        if slot.epoch == epoch {
            slot.client = None;
            slot.index = (slot.index + step) % self.settings.endpoints.len();
            slot.epoch += 1;
        }
    }

    fn in_use(&self) -> Option<Connected> {
        self.slot().client.clone()
    }

    fn slot(&self) -> MutexGuard<'_, Slot> {
        self.slot.lock()
    }
}
