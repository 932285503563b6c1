//! `leasehold serve`, the shipped binary, as a process of its own: its memory and CPU time are not mixed with those of the
//! load.

mod process_stats;

use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use domain::access::{Grant, Role};
use tokio::process::{Child, Command};
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use crate::browser_session;
use crate::error::BenchError;
use crate::http::{Http, member};
use leasehold::audit::{Audit, ChainCheckpoints};
use leasehold::identity::{Identity, NewToken, Principal, Secret};
use runtime::clock::Clock;
use runtime::db::Db;
use runtime::tasks;
use testkit::{ThrowawayFolder, free_port};

pub(crate) use process_stats::{Vitals, memory_mib};

/// Event streams that the server allows per token.
const VIEWERS_OF_TOKEN: usize = 50;
pub(crate) const VIEWERS_MAX: usize = 2_000;
/// Clients that make changes, and their names, used in turn.
pub(crate) const WORKERS: u32 = 8;
const NAMES: u64 = 10_000;
const START_MAX: Duration = Duration::from_secs(60);

/// Operations and failures of the load.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub changes: AtomicU64,
    pub page_loads: AtomicU64,
    pub received_bytes: AtomicU64,
    pub failures: AtomicU64,
}

/// `leasehold serve` on SQLite in a temporary folder.
pub(crate) struct ChildServer {
    child: Child,
    port: u16,
    /// One per group of viewers within the limit of streams per principal.
    tokens: Vec<Secret>,
    /// Sessions of users, with the same limit.
    cookies: Vec<String>,
    http: reqwest::Client,
    _folder: ThrowawayFolder,
}

impl ChildServer {
    /// `part`: names the temporary folder.
    ///
    /// # Errors
    /// It does not start, or is not ready in time.
    pub(crate) async fn start(part: &str) -> Result<Self, BenchError> {
        // An already installed provider is the same one.
        let _installed = rustls::crypto::ring::default_provider().install_default();
        let folder = ThrowawayFolder::create(part).map_err(BenchError::io("folder"))?;
        let (tokens, cookies) = sign_in(folder.path()).await?;
        let port = free_port().map_err(BenchError::io("port"))?;
        // The product's binary, built into the same folder.
        let program = std::env::current_exe()
            .map_err(BenchError::io("program"))?
            .with_file_name("leasehold");
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("LEASEHOLD_STORE", "sqlite:leasehold.db")
            .env("LEASEHOLD_LOG", "warn")
            .current_dir(folder.path())
            .args(["serve", "--listen", &format!("127.0.0.1:{port}")])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .process_group(0)
            .kill_on_drop(true);
        let child = command.spawn().map_err(BenchError::io("server"))?;
        // Ended through the folder's guard if this process is killed.
        folder.worked_in_by(child.id().unwrap_or_default());
        let server = Self {
            child,
            port,
            tokens,
            cookies,
            http: reqwest::Client::new(),
            _folder: folder,
        };
        let ready = async {
            while !server
                .get("/readyz")
                .await
                .is_ok_and(|answer| answer.status().is_success())
            {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        let ready = tokio::time::timeout(START_MAX, ready).await;
        ready.map_err(|_| BenchError::bad_answer("our server", "it was not ready within a minute"))?;
        Ok(server)
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    pub(crate) async fn get(&self, path: &str) -> reqwest::Result<reqwest::Response> {
        let request = self.http.get(self.url(path)).bearer_auth(self.tokens[0].expose());
        request.send().await
    }

    /// # Errors
    /// It ended.
    pub(crate) async fn vitals(&self) -> Result<Vitals, BenchError> {
        let pid = self.pid()?;
        let health: serde_json::Value = self.get("/healthz").await?.json().await?;
        let tasks = health["tasksAlive"].as_f64().unwrap_or(0.0);
        process_stats::read(pid, tasks).map_err(BenchError::io("look at the server"))
    }

    /// CPU time of the process so far, in seconds.
    ///
    /// # Errors
    /// It ended.
    pub(crate) fn cpu_s(&self) -> Result<f64, BenchError> {
        process_stats::cpu_s(self.pid()?).map_err(BenchError::io("look at the server"))
    }

    /// The token of a viewer, so that no token has more event streams than the server allows.
    pub(crate) fn token_of(&self, viewer: usize) -> Secret {
        self.tokens[viewer / VIEWERS_OF_TOKEN].clone()
    }

    /// The cookie of a viewer in a browser.
    pub(crate) fn cookie_of(&self, viewer: usize) -> String {
        self.cookies[viewer / VIEWERS_OF_TOKEN].clone()
    }

    pub(crate) fn http(&self) -> reqwest::Client {
        self.http.clone()
    }

    fn pid(&self) -> Result<u32, BenchError> {
        let ended = || BenchError::bad_answer("our server", "it ended");
        self.child.id().ok_or_else(ended)
    }

    /// Acquires this many locks for an hour.
    ///
    /// # Errors
    /// One is not granted.
    pub(crate) async fn hold(&self, locks: usize) -> Result<(), BenchError> {
        let address = ([127, 0, 0, 1], self.port).into();
        let mut http = Http::connect(address, self.tokens[0].expose()).await?;
        for number in 0..locks {
            let body = format!(
                r#"{{"resource":"tenant_{}:job:{number:06}","ownerId":"worker","ttlSeconds":3600}}"#,
                number % 20
            );
            http.post("/v1/locks/acquire", &body).await?;
        }
        Ok(())
    }

    /// One of [`WORKERS`] that together acquire and release locks: two changes each time.
    pub(crate) fn change(&self, number: u32, per_s: u32, counts: &Arc<Counts>, stop: &CancellationToken) {
        let (port, token, counts) = (self.port, self.tokens[0].clone(), counts.clone());
        let every = Duration::from_secs_f64(f64::from(WORKERS) / f64::from(per_s.max(1)));
        tasks::spawn("bench worker", stop.clone(), async move {
            loop {
                if work(port, &token, (number, every), &counts).await.is_err() {
                    counts.failures.fetch_add(1, Ordering::Relaxed);
                }
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        });
    }
}

async fn work(
    port: u16,
    token: &Secret,
    (number, every): (u32, Duration),
    counts: &Counts,
) -> Result<(), BenchError> {
    let mut http = Http::connect(([127, 0, 0, 1], port).into(), token.expose()).await?;
    let mut pace = tokio::time::interval(every);
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for name in (0..NAMES).cycle() {
        pace.tick().await;
        let body = format!(
            r#"{{"resource":"changing:{number}:{name}","ownerId":"worker-{number}","ttlSeconds":30}}"#
        );
        let answer = http.post("/v1/locks/acquire", &body).await?;
        let id = member(answer, "leaseId").ok_or_else(|| BenchError::bad_answer("our server", answer))?;
        let path = format!("/v1/locks/{id}");
        // Long enough to be observed.
        pace.tick().await;
        http.delete(&path).await?;
        counts.changes.fetch_add(2, Ordering::Relaxed);
    }
    Ok(())
}

/// Tokens and cookies that may view every page and hold leases.
async fn sign_in(folder: &Path) -> Result<(Vec<Secret>, Vec<String>), BenchError> {
    let db = Db::open(&format!("sqlite:{}", folder.join("leasehold.db").display())).await?;
    let audit = Audit::new(db.clone(), Clock::start(), ChainCheckpoints::default());
    let identity = Identity::open(db.clone(), audit, Clock::start()).await?;
    let (mut tokens, mut cookies) = (Vec::new(), Vec::new());
    for number in 0..VIEWERS_MAX.div_ceil(VIEWERS_OF_TOKEN) {
        let grants = vec![Grant::everywhere(Role::Admin)];
        let token = NewToken {
            name: format!("viewers-{number}"),
            grants: grants.clone(),
            expires_in: None,
        };
        tokens.push(identity.create_token(&Principal::system("bench"), token).await?);
        cookies.push(browser_session::cookie(&identity, format!("viewer-{number}"), grants).await?);
    }
    db.close().await;
    Ok((tokens, cookies))
}
