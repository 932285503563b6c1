//! Soak test: viewers and changes for an hour; memory, open files and tasks of the server once a minute.
//!
//! The server is a separate process, the shipped binary, so that its growth is not mixed with that of the load.

pub(crate) mod process_stats;

use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use domain::access::{Grant, Role};
use tokio::process::{Child, Command};
use tokio::time::MissedTickBehavior;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::error::BenchError;
use super::http::{Http, member};
use super::metric::Figure;
use leasehold::audit::{Audit, ChainCheckpoints};
use leasehold::identity::{Identity, NewToken, Principal, Secret};
use runtime::clock::Clock;
use runtime::db::Db;
use runtime::tasks;
use testkit::{ThrowawayFolder, free_port};

use self::process_stats::{Vitals, per_hour};

pub(crate) const MINUTES: u32 = 60;
pub(crate) const MINUTES_MAX: u32 = 24 * 60;
pub(crate) const VIEWERS: usize = 200;
pub(crate) const VIEWERS_MAX: usize = 2_000;
/// Event streams that the server allows per token.
const VIEWERS_OF_TOKEN: usize = 50;
pub(crate) const CHANGES: u32 = 200;
pub(crate) const CHANGES_MAX: u32 = 10_000;

/// Clients that make changes, and their names, used in turn.
const WORKERS: u32 = 8;
const NAMES: u64 = 10_000;
/// Interval at which a viewer loads the first page, in addition to its stream.
const LOOK_EVERY: Duration = Duration::from_secs(5);
const START_MAX: Duration = Duration::from_secs(60);
const MINUTE: Duration = Duration::from_secs(60);

/// Options, each within its limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Plan {
    pub minutes: u32,
    pub viewers: usize,
    pub changes_per_s: u32,
}

/// Events of one minute, and the state of the server at its end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Sample {
    pub minute: u32,
    pub vitals: Vitals,
    pub changes: u64,
    pub looks: u64,
    pub heard_bytes: u64,
    pub failures: u64,
}

#[derive(Debug, Default)]
struct Counts {
    changes: AtomicU64,
    looks: AtomicU64,
    heard_bytes: AtomicU64,
    failures: AtomicU64,
}

/// # Errors
/// The server does not start, or ends too early.
pub(crate) async fn measure(plan: Plan, tell: &(dyn Fn(&Sample) + Sync)) -> Result<Vec<Figure>, BenchError> {
    let server = Server::start().await?;
    let counts = Arc::new(Counts::default());
    let stop = CancellationToken::new();
    let _ends_with_this: DropGuard = stop.clone().drop_guard();
    for number in 0..plan.viewers {
        server.view(number, &counts, &stop);
    }
    for number in 0..WORKERS {
        server.change(number, plan.changes_per_s, &counts, &stop);
    }
    let mut samples = Vec::new();
    for minute in 1..=plan.minutes {
        tokio::time::sleep(MINUTE).await;
        let take = |count: &AtomicU64| count.swap(0, Ordering::Relaxed);
        let sample = Sample {
            minute,
            vitals: server.vitals().await?,
            changes: take(&counts.changes),
            looks: take(&counts.looks),
            heard_bytes: take(&counts.heard_bytes),
            failures: take(&counts.failures),
        };
        tell(&sample);
        samples.push(sample);
    }
    Ok(figures(&samples))
}

/// Samples at the start that are ignored while caches fill: with a hundred new names a second, the alert baselines
/// need seventeen minutes. At least 20 minutes, or half of a shorter run.
const fn filling(samples: usize) -> usize {
    if samples < 60 { samples / 2 } else { samples / 3 }
}

fn figures(samples: &[Sample]) -> Vec<Figure> {
    let settled = &samples[filling(samples.len())..];
    let of = |value: fn(&Vitals) -> f64| -> Vec<(f64, f64)> {
        let point = |sample: &Sample| (f64::from(sample.minute), value(&sample.vitals));
        settled.iter().map(point).collect()
    };
    let last = samples.last().map(|sample| sample.vitals).unwrap_or_default();
    let (changes, failures) = samples.iter().fold((0, 0), |(changes, failures), sample| {
        (changes + sample.changes, failures + sample.failures)
    });
    #[expect(clippy::cast_precision_loss, reason = "counts of a bench, far below 2^52")]
    let per_s = changes as f64 / (samples.len().max(1) as f64 * MINUTE.as_secs_f64());
    #[expect(clippy::cast_precision_loss, reason = "counts of a bench, far below 2^52")]
    let failures = failures as f64;
    vec![
        Figure::plain("changes a second, as they were made", per_s, "/s"),
        Figure::at_most("requests and streams that failed", failures, 0.0, ""),
        Figure::plain("memory at the end (resident)", last.memory_mib, "MiB"),
        Figure::plain(
            "memory, slope once caches had time to fill",
            per_hour(&of(|it| it.memory_mib)),
            "MiB/h",
        ),
        Figure::plain("open files at the end", last.files, ""),
        Figure::plain("open files, slope", per_hour(&of(|it| it.files)), "/h"),
        Figure::plain("tasks at the end", last.tasks, ""),
        Figure::plain("tasks, slope", per_hour(&of(|it| it.tasks)), "/h"),
    ]
}

/// `leasehold serve` on SQLite in a temporary folder.
struct Server {
    child: Child,
    port: u16,
    /// One per group of viewers within the limit of streams per token.
    tokens: Vec<Secret>,
    http: reqwest::Client,
    _folder: ThrowawayFolder,
}

impl Server {
    async fn start() -> Result<Self, BenchError> {
        // An already installed provider is the same one.
        let _installed = rustls::crypto::ring::default_provider().install_default();
        let folder = ThrowawayFolder::create("soak").map_err(BenchError::io("folder"))?;
        let tokens = tokens(folder.path()).await?;
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

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    async fn get(&self, path: &str) -> reqwest::Result<reqwest::Response> {
        let request = self.http.get(self.url(path)).bearer_auth(self.tokens[0].expose());
        request.send().await
    }

    async fn vitals(&self) -> Result<Vitals, BenchError> {
        let pid = self
            .child
            .id()
            .ok_or_else(|| BenchError::bad_answer("our server", "it ended"))?;
        let health: serde_json::Value = self.get("/healthz").await?.json().await?;
        let tasks = health["tasksAlive"].as_f64().unwrap_or(0.0);
        process_stats::read(pid, tasks).map_err(BenchError::io("look at the server"))
    }

    /// A viewer with an open list: the stream, and the first page periodically.
    fn view(&self, number: usize, counts: &Arc<Counts>, stop: &CancellationToken) {
        let token = self.tokens[number / VIEWERS_OF_TOKEN].clone();
        let (http, counts) = (self.http.clone(), counts.clone());
        let (events, list) = (self.url("/v1/events"), self.url("/v1/inventory?limit=50"));
        // Staggered start.
        let late = Duration::from_millis(25 * u64::try_from(number % 200).unwrap_or(0));
        tasks::spawn("bench viewer", stop.clone(), async move {
            tokio::time::sleep(late).await;
            loop {
                if watch(&http, &token, (&events, &list), &counts).await.is_err() {
                    counts.failures.fetch_add(1, Ordering::Relaxed);
                }
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        });
    }

    /// Acquires and releases a lock: two changes.
    fn change(&self, number: u32, per_s: u32, counts: &Arc<Counts>, stop: &CancellationToken) {
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

async fn watch(
    http: &reqwest::Client,
    token: &Secret,
    (events, list): (&str, &str),
    counts: &Counts,
) -> reqwest::Result<()> {
    let ask = |url: &str| http.get(url).bearer_auth(token.expose()).send();
    let mut stream = ask(events).await?.error_for_status()?;
    let mut looks = tokio::time::interval(LOOK_EVERY);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            part = stream.chunk() => match part? {
                Some(part) => {
                    counts.heard_bytes.fetch_add(part.len() as u64, Ordering::Relaxed);
                }
                None => return Ok(()),
            },
            _ = looks.tick() => {
                ask(list).await?.error_for_status()?.bytes().await?;
                counts.looks.fetch_add(1, Ordering::Relaxed);
            }
        }
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
    for turn in (0..NAMES).cycle() {
        pace.tick().await;
        let body =
            format!(r#"{{"resource":"soak:{number}:{turn}","ownerId":"worker-{number}","ttlSeconds":30}}"#);
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

/// They may view and hold leases.
async fn tokens(folder: &Path) -> Result<Vec<Secret>, BenchError> {
    let db = Db::open(&format!("sqlite:{}", folder.join("leasehold.db").display())).await?;
    let audit = Audit::new(db.clone(), Clock::start(), ChainCheckpoints::default());
    let identity = Identity::open(db.clone(), audit, Clock::start()).await?;
    let mut tokens = Vec::new();
    for number in 0..VIEWERS_MAX.div_ceil(VIEWERS_OF_TOKEN) {
        let new = NewToken {
            name: format!("soak-{number}"),
            grants: vec![Grant::everywhere(Role::Operator)],
            expires_in: None,
        };
        tokens.push(identity.create_token(&Principal::system("bench"), new).await?);
    }
    db.close().await;
    Ok(tokens)
}
