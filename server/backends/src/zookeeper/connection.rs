//! Calls to ZooKeeper with a timeout: one session, recreated when it breaks, over any of the
//! servers. Only reads go through [`Link::call`], so calls may be repeated.
//!
//! **Invariant**: no call takes longer than the configured timeout, at most
//! [`IN_FLIGHT_MAX`] are on their way at once, and no more are sent per second than configured.

use std::future::Future;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use zookeeper_client::{Client, Error};

use super::error::{ZookeeperError, ZookeeperErrorKind};
use super::rate_limit::RateLimit;
use super::settings::ZookeeperSettings;
use crate::BackendError;
use runtime::clock::Clock;

pub(super) const IN_FLIGHT_MAX: usize = 64;
const ATTEMPTS: usize = 2;
/// Longest answer to a command of four letters, in bytes.
const COMMAND_BYTES_MAX: usize = 16 * 1024;
/// An answer is over when nothing follows for this long: other servers keep the connection open.
const MORE: Duration = Duration::from_millis(200);

pub(super) struct Link {
    pub(super) settings: ZookeeperSettings,
    pub(super) clock: Clock,
    rate_limit: RateLimit,
    in_flight: Semaphore,
    slot: Mutex<Slot>,
    /// One new session at a time.
    connecting: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Slot {
    client: Option<Client>,
    /// Number of sessions given up, so that calls that fail together give up one.
    epoch: u64,
}

impl Link {
    pub(super) fn new(settings: ZookeeperSettings, clock: Clock) -> Self {
        Self {
            rate_limit: RateLimit::new(settings.requests_per_second),
            in_flight: Semaphore::new(IN_FLIGHT_MAX),
            slot: Mutex::default(),
            connecting: tokio::sync::Mutex::new(()),
            settings,
            clock,
        }
    }

    /// Runs `work`; repeats it after an error that another session may not have.
    pub(super) async fn call<T, F, W>(&self, work: F) -> Result<T, ZookeeperError>
    where
        F: Fn(Client) -> W,
        W: Future<Output = Result<T, Error>>,
    {
        let timeout_ms = self.settings.timeout_ms();
        let _turn = self.in_flight.acquire().await;
        self.rate_limit.wait_for_slot(&self.clock).await;
        let started = self.clock.tick();
        let mut last: Option<ZookeeperError> = None;
        for _ in 0..ATTEMPTS {
            let left_ms = timeout_ms - self.clock.tick().since(started);
            let Ok(left_ms @ 1..) = u64::try_from(left_ms) else {
                break;
            };
            let epoch = self.slot().epoch;
            let attempt = self.attempt(&work);
            match tokio::time::timeout(Duration::from_millis(left_ms), attempt).await {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(fault)) if fault.kind != ZookeeperErrorKind::Transport => return Err(fault),
                Ok(Err(fault)) => last = Some(fault),
                // The error of the first attempt is more useful than that of the second, which had no time left.
                Err(_) => {}
            }
            self.abandon(epoch);
        }
        Err(last.unwrap_or_else(|| ZookeeperError::no_answer(timeout_ms)))
    }

    /// Makes the server of this session catch up with the leader: a follower answers reads by itself and may be behind.
    pub(super) async fn sync(&self) -> Result<(), ZookeeperError> {
        self.call(|client| async move { client.sync("/").await }).await
    }

    async fn attempt<T, F, W>(&self, work: &F) -> Result<T, ZookeeperError>
    where
        F: Fn(Client) -> W,
        W: Future<Output = Result<T, Error>>,
    {
        let client = self.client().await?;
        work(client).await.map_err(ZookeeperError::from)
    }

    /// The current session, or a new one.
    async fn client(&self) -> Result<Client, ZookeeperError> {
        let in_use = || {
            self.slot()
                .client
                .clone()
                .filter(|client| !client.state().is_terminated())
        };
        if let Some(client) = in_use() {
            return Ok(client);
        }
        let _turn = self.connecting.lock().await;
        if let Some(client) = in_use() {
            return Ok(client);
        }
        let client = self.connect().await?;
        // It may be on another server, in the middle of a scan.
        client.sync("/").await?;
        self.slot().client = Some(client.clone());
        Ok(client)
    }

    /// A session of its own, within the timeout.
    pub(super) async fn connect(&self) -> Result<Client, ZookeeperError> {
        let limit = self.settings.timeout * 2 / 3;
        match tokio::time::timeout(limit, self.settings.connect()).await {
            Ok(Ok(client)) => Ok(client),
            Ok(Err(Error::NoHosts | Error::Timeout | Error::ConnectionLoss)) | Err(_) => {
                Err(self.diagnose_connection().await)
            }
            Ok(Err(error)) => Err(error.into()),
        }
    }

    /// The client does not say why no server could be used, so this asks each of them.
    async fn diagnose_connection(&self) -> ZookeeperError {
        let mut worst = ZookeeperError::no_answer(self.settings.timeout_ms());
        let share = u32::try_from(self.settings.servers.len()).unwrap_or(u32::MAX);
        for server in &self.settings.servers {
            let answer =
                tokio::time::timeout(self.settings.timeout / 4 / share, send_command(server, b"srvr\n"))
                    .await;
            worst.error = match answer {
                Err(_) => continue,
                Ok(Err(error)) => BackendError::Unreachable {
                    detail: format!("{server}: {error}"),
                },
                Ok(Ok(answer)) => opens_no_session(server, &answer),
            };
        }
        worst
    }

    /// The answer to a command of four letters from the first server that answers. A command needs
    /// no session, and servers answer only the commands on their list.
    pub(super) async fn command(&self, command: &[u8]) -> Option<String> {
        for server in &self.settings.servers {
            let answer = tokio::time::timeout(self.settings.timeout / 2, send_command(server, command)).await;
            if let Ok(Ok(answer)) = answer {
                return Some(answer);
            }
        }
        None
    }

    /// Drops the session of `epoch`, unless another call has replaced it.
    fn abandon(&self, epoch: u64) {
        let mut slot = self.slot();
        if slot.epoch == epoch {
            slot.client = None;
            slot.epoch += 1;
        }
    }

    fn slot(&self) -> MutexGuard<'_, Slot> {
        self.slot.lock()
    }
}

/// Sends a command and reads the answer: until the server closes, or has nothing to add.
async fn send_command(server: &str, command: &[u8]) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(server).await?;
    stream.write_all(command).await?;
    let mut answer = Vec::new();
    let mut part = [0; 4096];
    while answer.len() < COMMAND_BYTES_MAX {
        let read = match answer.is_empty() {
            true => stream.read(&mut part).await?,
            false => match tokio::time::timeout(MORE, stream.read(&mut part)).await {
                Ok(read) => read?,
                Err(_) => break,
            },
        };
        if read == 0 {
            break;
        }
        answer.extend_from_slice(&part[..read]);
    }
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// The error of a server that answers a command and opened no session.
fn opens_no_session(server: &str, answer: &str) -> BackendError {
    let is_zookeeper = ["Zookeeper version", "ZooKeeper", "whitelist"];
    if is_zookeeper.iter().any(|part| answer.contains(part)) {
        return BackendError::Unreachable {
            detail: format!("{server} opens no session: its ensemble has no quorum, or it is too busy"),
        };
    }
    BackendError::Protocol {
        detail: format!("{server} opens no ZooKeeper session: it is another kind of server, or wants TLS"),
    }
}
