//! Page latency: the list of 100 and of 1,000 locks as HTML, and the delay of change events.

use std::time::Duration;

use futures::StreamExt as _;

use super::error::BenchError;
use super::http::member;
use super::metric::Figure;
use super::seed::fill;
use super::test_server::Served;
use super::timer::Stopwatch;

pub(crate) const LOCKS: usize = 1_000;
const PAGES: usize = 21;
const CHANGES: usize = 20;
/// A first page of the list, and its goal.
const FIRST_PAGE: usize = 100;
const FIRST_PAGE_MS_GOAL: f64 = 10.0;
const HTML_MS_GOAL: f64 = 60.0;
const EVENT_MS_GOAL: f64 = 500.0;
/// Not a multiple of the stream's interval, so that changes are distributed over it.
const CHANGE_EVERY: Duration = Duration::from_millis(1_370);
const TIMEOUT: Duration = Duration::from_secs(20);

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Pages {
    pub locks: usize,
    /// The median of a first page.
    pub first_page_ms: f64,
    /// The median of all locks on one page.
    pub html_ms: f64,
    pub html_kb: f64,
    pub event_p50_ms: f64,
    pub event_longest_ms: f64,
}

impl Pages {
    pub(crate) fn figures(&self) -> Vec<Figure> {
        let locks = self.locks;
        vec![
            Figure::at_most(
                &format!("/locks as HTML, a first page of {FIRST_PAGE} locks"),
                self.first_page_ms,
                FIRST_PAGE_MS_GOAL,
                "ms",
            ),
            Figure::at_most(
                &format!("/locks as HTML with {locks} locks"),
                self.html_ms,
                HTML_MS_GOAL,
                "ms",
            ),
            Figure::plain("its size, uncompressed", self.html_kb, "kB"),
            Figure::at_most(
                &format!("from a change to its hint in the event stream, the longest of {CHANGES}"),
                self.event_longest_ms,
                EVENT_MS_GOAL,
                "ms",
            ),
            Figure::plain("the median of them", self.event_p50_ms, "ms"),
        ]
    }
}

/// # Errors
/// The server does not start, or a page has unexpected content.
pub(crate) async fn measure(locks: usize) -> Result<Pages, BenchError> {
    let (served, _folder) = Served::on_sqlite().await?;
    fill(&served, "tenant_1:job", locks, || 3_600).await?;
    wait_until_listed(&served, locks).await?;
    let (first_page_ms, _) = html(&served, FIRST_PAGE.min(locks)).await?;
    let (html_ms, html_kb) = html(&served, locks).await?;
    let mut samples = measure_once(&served).await?;
    served.end().await;
    samples.sort_by(f64::total_cmp);
    Ok(Pages {
        locks,
        first_page_ms,
        html_ms,
        html_kb,
        event_p50_ms: samples.get(samples.len() / 2).copied().unwrap_or(f64::NAN),
        event_longest_ms: samples.last().copied().unwrap_or(f64::NAN),
    })
}

/// Until the console has scanned all locks.
async fn wait_until_listed(served: &Served, locks: usize) -> Result<(), BenchError> {
    let url = format!("/locks?limit={locks}");
    let last = format!("tenant_1:job:{:06}", locks - 1);
    let started = Stopwatch::start();
    loop {
        let page = served.get(&url).await?.text().await?;
        if page.contains(&last) {
            return Ok(());
        }
        if started.elapsed() > TIMEOUT {
            return Err(BenchError::bad_answer("/locks", format!("no {last} on the page")));
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Median time and size of a page with `limit` rows.
async fn html(served: &Served, limit: usize) -> Result<(f64, f64), BenchError> {
    let url = format!("/locks?limit={limit}");
    let (mut times, mut bytes) = (Vec::new(), 0);
    for _ in 0..PAGES {
        let watch = Stopwatch::start();
        bytes = served.get(&url).await?.bytes().await?.len();
        times.push(watch.ms());
    }
    times.sort_by(f64::total_cmp);
    Ok((times[PAGES / 2], bytes as f64 / 1_000.0))
}

/// Acquires locks while a stream is open; returns the delays of their events after the response, in milliseconds.
async fn measure_once(served: &Served) -> Result<Vec<f64>, BenchError> {
    let mut stream = served.get("/v1/events").await?.bytes_stream();
    let mut http = served.connect().await?;
    let mut samples = Vec::new();
    for number in 0..CHANGES {
        let pause = tokio::time::sleep(CHANGE_EVERY);
        tokio::pin!(pause);
        // Skips earlier events.
        loop {
            tokio::select! {
                () = &mut pause => break,
                event = stream.next() => drop(event),
            }
        }
        let body = format!(r#"{{"resource":"bench:samples:{number}","ownerId":"bench","ttlSeconds":600}}"#);
        let answer = http.post("/v1/locks/acquire", &body).await?;
        if member(answer, "leaseId").is_none() {
            return Err(BenchError::bad_answer("our server", answer));
        }
        let watch = Stopwatch::start();
        loop {
            let event = tokio::time::timeout(TIMEOUT, stream.next()).await;
            let Ok(Some(event)) = event else {
                return Err(BenchError::bad_answer(
                    "the event stream",
                    "nothing of the change",
                ));
            };
            let event = event?;
            let text = String::from_utf8_lossy(&event);
            if text.contains("\"changes\":") && !text.contains("\"changes\":0") {
                break;
            }
        }
        samples.push(watch.ms());
    }
    Ok(samples)
}
