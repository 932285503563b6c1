//! Cost of open pages: 200 browsers with the same page open while locks change. Each has its event stream, and fetches the
//! page's data again when an event announces a change of what the page shows, as the app does.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use runtime::tasks;
use serde_json::Value;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::child_server::{ChildServer, Counts, WORKERS};
use super::error::BenchError;
use super::metric::Figure;
use super::timer::Stopwatch;

const VIEWERS: usize = 200;
const CHANGES_PER_S: u32 = 50;
const LOCKS: usize = 1_000;
const CORES_GOAL: f64 = 0.5;
const WARM_UP: Duration = Duration::from_secs(4);
const SPAN: Duration = Duration::from_secs(10);
const LISTED_MAX: Duration = Duration::from_secs(30);
/// What browsers send.
const ENCODINGS: &str = "gzip, deflate, br, zstd";

/// A page: the data that it fetches, and the revisions of an event that make it fetch again.
#[derive(Debug, Clone, Copy)]
struct Page {
    path: &'static str,
    data: &'static [&'static str],
    revisions: &'static [&'static str],
}

const INVENTORY: &[&str] = &["revision"];
const ALERTS: &[&str] = &["alertsRevision"];
const ACTIVITY: &[&str] = &["activityRevision"];
const ALL: &[&str] = &["revision", "alertsRevision", "activityRevision"];

const PAGES: [Page; 9] = [
    Page {
        path: "/",
        data: &["/api/overview?search="],
        revisions: ALL,
    },
    Page {
        path: "/locks",
        data: &["/api/inventory?query=limit%3D100", "/api/prefixes?prefix="],
        revisions: INVENTORY,
    },
    Page {
        path: "/locks/…",
        data: &["/api/lock?backend=builtin&source=lease&resource=tenant_1%3Ajob%3A000001&search="],
        revisions: INVENTORY,
    },
    Page {
        path: "/contention",
        data: &["/api/contention?search="],
        revisions: INVENTORY,
    },
    Page {
        path: "/waits",
        data: &["/api/waits"],
        revisions: INVENTORY,
    },
    Page {
        path: "/backends",
        data: &["/api/backends"],
        revisions: INVENTORY,
    },
    Page {
        path: "/alerts",
        data: &["/api/alerts?search="],
        revisions: ALERTS,
    },
    Page {
        path: "/fencing",
        data: &["/api/fencing?search="],
        revisions: ACTIVITY,
    },
    Page {
        path: "/audit",
        data: &["/api/audit?search="],
        revisions: ACTIVITY,
    },
];

/// # Errors
/// The server does not start, or a page has no data.
pub(crate) async fn measure() -> Result<Vec<Figure>, BenchError> {
    let server = ChildServer::start("open-pages").await?;
    server.hold(LOCKS).await?;
    let counts = Arc::new(Counts::default());
    let stop = CancellationToken::new();
    let _ends_with_this: DropGuard = stop.clone().drop_guard();
    for number in 0..WORKERS {
        server.change(number, CHANGES_PER_S, &counts, &stop);
    }
    until_listed(&server).await?;
    let idle_cores = cores(&server).await?;
    let mut figures = vec![Figure::plain(
        &format!("the server without pages, {CHANGES_PER_S} changes a second among {LOCKS} locks"),
        idle_cores,
        "cores",
    )];
    for page in PAGES {
        let viewing = stop.child_token();
        let before = counts.page_loads.load(Ordering::Relaxed);
        for number in 0..VIEWERS {
            open(&server, number, page, &counts, &viewing);
        }
        let pages = cores(&server).await? - idle_cores;
        let page_loads = counts.page_loads.load(Ordering::Relaxed) - before;
        viewing.cancel();
        if page_loads < VIEWERS as u64 {
            return Err(BenchError::bad_answer(
                "our server",
                format!("{page_loads} answers of {}", page.path),
            ));
        }
        figures.push(Figure::at_most(
            &format!("{VIEWERS} open pages of {}", page.path),
            pages,
            CORES_GOAL,
            "cores",
        ));
        // Their connections end before the next page's begin.
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let failures = counts.failures.load(Ordering::Relaxed);
    figures.push(Figure::at_most(
        "requests and streams that failed",
        failures as f64,
        0.0,
        "",
    ));
    Ok(figures)
}

/// CPU time of the server per second, once the load is at its pace.
async fn cores(server: &ChildServer) -> Result<f64, BenchError> {
    tokio::time::sleep(WARM_UP).await;
    let (watch, before) = (Stopwatch::start(), server.cpu_s()?);
    tokio::time::sleep(SPAN).await;
    Ok((server.cpu_s()? - before) / watch.elapsed().as_secs_f64())
}

async fn until_listed(server: &ChildServer) -> Result<(), BenchError> {
    let watch = Stopwatch::start();
    loop {
        let page: Value = server.get("/v1/inventory?limit=1").await?.json().await?;
        if page["total"].as_u64() >= Some(LOCKS as u64) {
            return Ok(());
        }
        if watch.elapsed() > LISTED_MAX {
            return Err(BenchError::bad_answer("our server", page.to_string()));
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

fn open(server: &ChildServer, number: usize, page: Page, counts: &Arc<Counts>, stop: &CancellationToken) {
    let (cookie, http, counts) = (server.cookie_of(number), server.http(), counts.clone());
    let events = server.url("/v1/events");
    let data: Vec<String> = page.data.iter().map(|data| server.url(data)).collect();
    // Browsers do not open at once.
    let delay = Duration::from_millis(10 * number as u64);
    tasks::spawn("bench page", stop.clone(), async move {
        tokio::time::sleep(delay).await;
        let viewer = Viewer {
            http,
            cookie,
            data,
            counts,
        };
        if viewer.follow(&events, page.revisions).await.is_err() {
            viewer.counts.failures.fetch_add(1, Ordering::Relaxed);
        }
    });
}

struct Viewer {
    http: reqwest::Client,
    cookie: String,
    data: Vec<String>,
    counts: Arc<Counts>,
}

impl Viewer {
    async fn follow(&self, events: &str, revisions: &[&str]) -> reqwest::Result<()> {
        let mut stream = self.request(events).await?;
        let (mut text, mut seen) = (String::new(), Vec::new());
        while let Some(part) = stream.chunk().await? {
            text.push_str(&String::from_utf8_lossy(&part));
            while let Some((event, rest)) = text.split_once("\n\n") {
                let now = event_revisions(event, revisions);
                let rest = rest.to_owned();
                text = rest;
                if now != seen {
                    seen = now;
                    self.fetch().await?;
                }
            }
        }
        Ok(())
    }

    async fn fetch(&self) -> reqwest::Result<()> {
        for url in &self.data {
            self.request(url).await?.bytes().await?;
        }
        self.counts.page_loads.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    async fn request(&self, url: &str) -> reqwest::Result<reqwest::Response> {
        let request = self.http.get(url).header("cookie", &self.cookie);
        let request = request.header("accept-encoding", ENCODINGS);
        request.send().await?.error_for_status()
    }
}

/// The revisions in an event that the page shows.
fn event_revisions(event: &str, revisions: &[&str]) -> Vec<u64> {
    let data = event.lines().find_map(|line| line.strip_prefix("data: "));
    let hint: Value = data
        .and_then(|data| serde_json::from_str(data).ok())
        .unwrap_or_default();
    let revision = |name: &&str| hint[*name].as_u64().unwrap_or_default();
    revisions.iter().map(revision).collect()
}
