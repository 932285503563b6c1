//! History with 1,000 changes a second: throughput, size on disk, and reading a month of roll-ups.

use std::sync::Arc;
use std::time::Duration;

use domain::backend::{BackendKind, BackendTraits};
use domain::contention::{ContentionSort, ROWS_MAX, worst};
use domain::generation::Generation;
use domain::history::histogram::Histogram;
use domain::history::series::HistorySpan;
use domain::names::{BackendName, OwnerId, Resource, Source};
use domain::observation::{Coverage, Lifetime, ObservedLock};
use domain::reported::Reported;
use domain::safety::{Safety, SafetyClass};
use rusqlite::Connection;
use tokio_util::sync::CancellationToken;

use super::error::BenchError;
use super::metric::Figure;
use super::timer::Stopwatch;
use backends::{Batch, Pass, SourcePass};
use config::HistoryConfig;
use inventory::{BackendInfo, Inventory, InventoryWriter};
use lease::{LeaseConfig, LeaseService};
use leasehold::history::History;
use runtime::clock::Clock;
use runtime::db::Db;

pub(crate) const NORMAL: Duration = Duration::from_secs(60);
pub(crate) const LONG: Duration = Duration::from_secs(600);
pub(crate) const PREFIXES: usize = 200;
pub(crate) const DAYS: i64 = 30;
const CHANGES_PER_S: usize = 1_000;
/// Half of the locks of each batch are acquired, half released.
const BATCHES_PER_S: usize = 10;
const READ_MS_GOAL: f64 = 100.0;
/// The last changes are written within this time.
const LATE_MS_GOAL: f64 = 2_000.0;
const DAY_MS: i64 = 86_400_000;
/// Steps that charts of a month can use.
const STEPS_S: [i64; 2] = [21_600, 86_400];

/// # Errors
/// The temporary folder cannot be written.
pub(crate) async fn measure(time: Duration, prefixes: usize) -> Result<Vec<Figure>, BenchError> {
    let folder = tempfile::tempdir().map_err(|source| BenchError::Io {
        what: "temporary folder",
        source,
    })?;
    let store = format!("sqlite:{}", folder.path().join("leasehold.db").display());
    let file = folder.path().join("leasehold.history.db");
    let (clock, stop) = (Clock::start(), CancellationToken::new());
    let leases = LeaseService::open(&store, LeaseConfig::default(), clock.clone(), stop.clone()).await;
    let leases = leases.map_err(|error| server_error(&error))?;
    let db = Db::open(&store).await.map_err(|error| server_error(&error))?;
    let db = db.history(&store).await.map_err(|error| server_error(&error))?;
    let inventory = Inventory::new(vec![info()]);
    let feed = feed(&inventory, &clock)?;
    let (history, recording) = History::start(
        db,
        &inventory,
        &leases,
        HistoryConfig::default(),
        clock.clone(),
        stop.clone(),
    );
    let (changes, busy_ms) = drive(&feed, &clock, time).await;
    let watch = Stopwatch::start();
    let reader = Connection::open(&file)?;
    let mut rows = 0;
    while rows < changes && watch.ms() < 60_000.0 {
        rows = reader.query_row("SELECT count(*) FROM lock_events", [], |row| row.get::<_, i64>(0))?;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let flush_ms = watch.ms();
    let bytes: i64 = reader.query_row(
        "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()",
        [],
        |row| row.get(0),
    )?;
    let now = clock.now().wall.timestamp_millis();
    fill(&reader, prefixes, now)?;
    let read_ms = read_month(&history, now).await?;
    stop.cancel();
    recording.ended().await;
    leases.close().await;
    let per_s = changes as f64 / time.as_secs_f64();
    Ok(vec![
        Figure::at_least(
            "changes recorded, each second",
            per_s,
            CHANGES_PER_S as f64 * 0.98,
            "/s",
        ),
        Figure::at_most("all of them on disk after the last", flush_ms, LATE_MS_GOAL, "ms"),
        Figure::at_least("changes in the store", rows as f64, changes as f64, ""),
        Figure::plain("time for which they held the inventory lock", busy_ms, "ms"),
        Figure::plain(
            "size of a million events in SQLite",
            bytes as f64 / rows.max(1) as f64,
            "MB",
        ),
        Figure::at_most(
            &format!("{DAYS} days of sums of {prefixes} prefixes, with the histograms of the worst"),
            read_ms,
            READ_MS_GOAL,
            "ms",
        ),
    ])
}

fn server_error(error: &dyn std::fmt::Display) -> BenchError {
    BenchError::Answer {
        what: "history",
        answer: error.to_string(),
    }
}

fn backend() -> BackendName {
    BackendName::builtin()
}

fn info() -> BackendInfo {
    BackendInfo {
        name: backend(),
        kind: BackendKind::Redis,
        address: String::new(),
        poll_interval_ms: 1_000,
        capabilities: Vec::new(),
        traits: BackendTraits::default(),
    }
}

fn feed(inventory: &Arc<Inventory>, clock: &Clock) -> Result<InventoryWriter, BenchError> {
    let safety = Safety {
        class: SafetyClass::Efficiency,
        why: "no token".into(),
    };
    let feed = inventory.feed(&backend(), clock.now(), move |_| (safety.clone(), 1));
    let feed = feed.ok_or_else(|| server_error(&"no such backend"))?;
    // The first scan is not recorded as changes.
    feed.begin(clock.now());
    let part = SourcePass {
        source: Source::fixed("key"),
        coverage: Coverage::Complete,
        fault: None,
    };
    let pass = Pass {
        sources: vec![part],
        clock: Reported::unknown("no clock"),
    };
    feed.end(pass, clock.now());
    Ok(feed)
}

/// Applies changes evenly; returns their number, and the time spent in the inventory in milliseconds.
async fn drive(feed: &InventoryWriter, clock: &Clock, time: Duration) -> (i64, f64) {
    let half = CHANGES_PER_S / BATCHES_PER_S / 2;
    let mut ticks = tokio::time::interval(Duration::from_secs(1) / u32::try_from(BATCHES_PER_S).unwrap_or(1));
    let batches = time.as_secs() * BATCHES_PER_S as u64;
    let (mut removed, mut next, mut changes, mut busy_ms) = (Vec::new(), 0_usize, 0, 0.0);
    for _ in 0..batches {
        ticks.tick().await;
        let names: Vec<Resource> = (next..next + half).map(name).collect();
        next += half;
        changes += i64::try_from(names.len() + removed.len()).unwrap_or(0);
        let next_removed = names
            .iter()
            .map(|name| (Source::fixed("key"), name.clone()))
            .collect();
        let batch = Batch {
            sent_at: clock.tick(),
            locks: names.into_iter().map(lock).collect(),
            gone: std::mem::replace(&mut removed, next_removed),
        };
        let watch = Stopwatch::start();
        feed.accept(batch);
        busy_ms += watch.ms();
    }
    (changes, busy_ms)
}

fn name(number: usize) -> Resource {
    Resource::from(format!("tenant_{}:billing-close:{number}", number % 97).as_str())
}

fn lock(resource: Resource) -> ObservedLock {
    ObservedLock {
        source: Source::fixed("key"),
        resource,
        owner: Reported::Value(OwnerId::new("worker-7.eu-1.example.com")),
        owner_count: 1,
        sharers: Vec::new(),
        lease_id: Reported::absent("none here"),
        generation: Reported::Value(Generation::new("g")),
        fencing_token: Reported::absent("none here"),
        acquired_at: Reported::unknown("not reported"),
        renewed_at: Reported::unknown("not reported"),
        lifetime: Lifetime::Leased {
            remaining_ms: 30_000,
            ttl_ms: Reported::Value(30_000),
        },
        waiter_count: Reported::Value(1),
        oldest_waiter_ms: None,
        line: Vec::new(),
        condition: None,
    }
}

/// A month of the roll-ups of a monthly chart, with every prefix continuously busy.
fn fill(connection: &Connection, prefixes: usize, now: i64) -> Result<(), BenchError> {
    let mut histogram = Histogram::default();
    for number in 0..400_i64 {
        histogram.add(number * number + 5);
    }
    let bytes = histogram.encode();
    connection.execute_batch("BEGIN")?;
    {
        let mut insert = connection.prepare(
            "INSERT INTO history_rollups VALUES (?1, ?2, 'builtin', ?3, 'bench', 1000, ?4, 5, 1, 0, 0, 0, 0, 0, 0, 0,
             ?5, ?5, ?5, ?5, NULL, '[[\"tenant_1:close\",500]]')",
        )?;
        for step_s in STEPS_S {
            let newest = now - now.rem_euclid(step_s * 1_000);
            for step in 0..DAYS * 86_400 / step_s {
                for prefix in 0..prefixes {
                    let at = newest - step * step_s * 1_000;
                    let name = format!("tenant_*:job-{prefix}:*");
                    insert.execute((step_s, at, name, prefix as i64 * 100, &bytes))?;
                }
            }
        }
    }
    connection.execute_batch("COMMIT")?;
    Ok(())
}

/// The median of five runs, in milliseconds.
async fn read_month(history: &History, now: i64) -> Result<f64, BenchError> {
    let mut all = Vec::new();
    for _ in 0..5 {
        let watch = Stopwatch::start();
        let mut series = history
            .series(HistorySpan::new(now - DAYS * DAY_MS, now, now))
            .await?;
        let places = worst(&series, ContentionSort::Wait, ROWS_MAX);
        history.load_histograms(&mut series, &places).await?;
        all.push(watch.ms());
    }
    all.sort_by(f64::total_cmp);
    Ok(all[all.len() / 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn two_seconds_of_changes_are_all_recorded() {
        // The bench does the same for a minute.
        let figures = measure(Duration::from_secs(2), 10).await.unwrap();
        let of = |name: &str| figures.iter().find(|figure| figure.name.contains(name)).unwrap();
        assert_eq!(of("in the store").meets_goal(), Some(true), "{figures:?}");
        assert_eq!(of("on disk").meets_goal(), Some(true), "{figures:?}");
    }
}
