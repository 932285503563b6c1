//! Whether the server stays as it is: viewers and changes for an hour, its memory, open files and tasks once a minute.
//!
//! The server is a process of its own, the one that people run: what it grows by is not mixed with what the load needs.

pub mod vitals;

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use domain::access::{Grant, Role};
use tokio::process::{Child, Command};
use tokio::time::MissedTickBehavior;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::error::BenchError;
use super::figure::Figure;
use super::http::{Http, member};
use crate::audit::{Audit, Heads};
use crate::clock::Clock;
use crate::db::Db;
use crate::identity::{Identity, NewToken, Secret, Who};
use crate::tasks;
use crate::throwaway::{ThrowawayFolder, free_port};

use self::vitals::{Vitals, per_hour};

pub const MINUTES: u32 = 60;
pub const MINUTES_MAX: u32 = 24 * 60;
pub const VIEWERS: usize = 200;
pub const VIEWERS_MAX: usize = 2_000;
/// Event streams that the server opens for one token.
const VIEWERS_OF_TOKEN: usize = 50;
pub const CHANGES: u32 = 200;
pub const CHANGES_MAX: u32 = 10_000;

/// Clients that make the changes, and the names that they use in turn.
const WORKERS: u32 = 8;
const NAMES: u64 = 10_000;
/// A viewer asks for the first page so often, besides reading its stream.
const LOOK_EVERY: Duration = Duration::from_secs(5);
const START_MAX: Duration = Duration::from_secs(60);
const MINUTE: Duration = Duration::from_secs(60);

/// What is asked for; each within its bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    pub minutes: u32,
    pub viewers: usize,
    pub changes_per_s: u32,
}

/// What happened in one minute, and how the server stood at its end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
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
/// The server does not start, or ends before the time is over.
pub async fn measure(plan: Plan, tell: &(dyn Fn(&Sample) + Sync)) -> Result<Vec<Figure>, BenchError> {
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

/// How many samples are for what fills up to its bound: with a hundred new names a second, what alerts remember of locks takes
/// seventeen minutes. A third of an hour or more, half of a shorter run.
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

/// `leasehold serve` on SQLite in a folder of its own.
struct Server {
    child: Child,
    port: u16,
    /// One for so many viewers as one token may have streams.
    tokens: Vec<Secret>,
    http: reqwest::Client,
    _folder: ThrowawayFolder,
}

impl Server {
    async fn start() -> Result<Self, BenchError> {
        // Whoever had it installed before us wins, and it is the same one.
        let _installed = rustls::crypto::ring::default_provider().install_default();
        let folder = ThrowawayFolder::create("soak").map_err(BenchError::io("folder"))?;
        let tokens = tokens(folder.path()).await?;
        let port = free_port().map_err(BenchError::io("port"))?;
        let program: PathBuf = std::env::current_exe().map_err(BenchError::io("program"))?;
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
        // Killed ourselves, we drop nothing.
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
        ready.map_err(|_| BenchError::answer("our server", "it was not ready within a minute"))?;
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
            .ok_or_else(|| BenchError::answer("our server", "it ended"))?;
        let health: serde_json::Value = self.get("/healthz").await?.json().await?;
        let tasks = health["tasksAlive"].as_f64().unwrap_or(0.0);
        vitals::read(pid, tasks).map_err(BenchError::io("look at the server"))
    }

    /// Somebody with the list open: the stream, and the first page now and then.
    fn view(&self, number: usize, counts: &Arc<Counts>, stop: &CancellationToken) {
        let token = self.tokens[number / VIEWERS_OF_TOKEN].clone();
        let (http, counts) = (self.http.clone(), counts.clone());
        let (events, list) = (self.url("/v1/events"), self.url("/v1/inventory?limit=50"));
        // Not all of them at once.
        let late = Duration::from_millis(25 * u64::try_from(number % 200).unwrap_or(0));
        tasks::spawn("viewer of the bench", stop.clone(), async move {
            tokio::time::sleep(late).await;
            loop {
                if watch(&http, &token, (&events, &list), &counts).await.is_err() {
                    counts.failures.fetch_add(1, Ordering::Relaxed);
                }
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        });
    }

    /// Takes a lock and gives it back: two changes.
    fn change(&self, number: u32, per_s: u32, counts: &Arc<Counts>, stop: &CancellationToken) {
        let (port, token, counts) = (self.port, self.tokens[0].clone(), counts.clone());
        let every = Duration::from_secs_f64(f64::from(WORKERS) / f64::from(per_s.max(1)));
        tasks::spawn("worker of the bench", stop.clone(), async move {
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
        let id = member(answer, "leaseId").ok_or_else(|| BenchError::answer("our server", answer))?;
        let path = format!("/v1/locks/{id}");
        // Long enough to be seen.
        pace.tick().await;
        http.delete(&path).await?;
        counts.changes.fetch_add(2, Ordering::Relaxed);
    }
    Ok(())
}

/// They may look, and hold leases.
async fn tokens(folder: &Path) -> Result<Vec<Secret>, BenchError> {
    let db = Db::open(&format!("sqlite:{}", folder.join("leasehold.db").display())).await?;
    let audit = Audit::new(db.clone(), Clock::start(), Heads::default());
    let identity = Identity::open(db.clone(), audit, Clock::start()).await?;
    let mut tokens = Vec::new();
    for number in 0..VIEWERS_MAX.div_ceil(VIEWERS_OF_TOKEN) {
        let new = NewToken {
            name: format!("soak-{number}"),
            grants: vec![Grant::everywhere(Role::Operator)],
            expires_in: None,
        };
        tokens.push(identity.create_token(&Who::system("bench"), new).await?);
    }
    db.close().await;
    Ok(tokens)
}
