//! Alert rule previews over seven days: time to the first result, CPU time of the whole, and of a repeated preview.

use std::sync::Arc;
use std::time::Duration;

use domain::alerts::{ConditionKind, Rule, builtin};
use domain::notification::Notice;
use futures::future::BoxFuture;
use rusqlite::{Connection, params};
use tokio_util::sync::CancellationToken;

use super::error::BenchError;
use super::metric::Figure;
use super::timer::Stopwatch;
use backends::BackendRegistry;
use inventory::Inventory;
use lease::{LeaseConfig, LeaseService};
use leasehold::alerts::{AlertDeps, Alerts, EvaluatorMonitor, Notices};
use leasehold::audit::{Audit, ChainCheckpoints};
use leasehold::notify::Occasion;
use runtime::clock::Clock;
use runtime::db::{Db, Tx};

/// One week of history.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Week {
    pub locks: i64,
    /// Minutes between acquisitions of each lock.
    pub every_min: i64,
}

/// The goal applies to the first, with 2,300,000 events; the second has as many events of 100,000 locks.
pub(crate) const WEEKS: [Week; 2] = [
    Week {
        locks: 1_000,
        every_min: 10,
    },
    Week {
        locks: 100_000,
        every_min: 16 * 60,
    },
];
const FIRST_GOAL_MS: f64 = 500.0;
const CPU_GOAL_MS: f64 = 2_000.0;
const WEEK_MIN: i64 = 7 * 24 * 60;
/// Two rules that follow each lock, one with windows per prefix.
const RULES: [&str; 3] = ["long_held", "near_expiry", "contention"];

struct DiscardNotices;

impl Notices for DiscardNotices {
    fn enqueue<'a>(
        &'a self,
        _: &'a mut Tx,
        _: &'a Notice,
        _: Occasion,
        _: i64,
    ) -> BoxFuture<'a, Result<(), sqlx::Error>> {
        Box::pin(async { Ok(()) })
    }
}

/// # Errors
/// The temporary folder cannot be written.
pub(crate) async fn measure(weeks: &[Week]) -> Result<Vec<Figure>, BenchError> {
    let mut figures = Vec::new();
    for (place, week) in weeks.iter().enumerate() {
        figures.extend(Box::pin(measure_week(*week, place == 0)).await?);
    }
    Ok(figures)
}

async fn measure_week(week: Week, has_goal: bool) -> Result<Vec<Figure>, BenchError> {
    let folder = tempfile::tempdir().map_err(|source| BenchError::Io {
        what: "temporary folder",
        source,
    })?;
    let store = format!("sqlite:{}", folder.path().join("leasehold.db").display());
    let (clock, stop) = (Clock::start(), CancellationToken::new());
    let leases = LeaseService::open(&store, LeaseConfig::default(), clock.clone(), stop.clone()).await;
    let leases = leases.map_err(|error| server_error(&error))?;
    let db = Db::open(&store).await.map_err(|error| server_error(&error))?;
    let history = db.history(&store).await.map_err(|error| server_error(&error))?;
    let now = clock.now().wall.timestamp_millis();
    let mut file = Connection::open(folder.path().join("leasehold.history.db"))?;
    let filled = fill(&mut file, week, now)?;
    let alerts = Alerts::start(AlertDeps {
        audit: Audit::new(db, clock.clone(), ChainCheckpoints::new(None)),
        history,
        inventory: Inventory::new(Vec::new()),
        leases: leases.clone(),
        notices: Arc::new(DiscardNotices),
        backends: BackendRegistry::new(Vec::new()),
        evaluation: Arc::new(EvaluatorMonitor::new(clock.clone())),
        clock: clock.clone(),
        stop: stop.clone(),
    });
    let alerts = Box::pin(alerts).await.map_err(|error| server_error(&error))?;
    let mut figures = Vec::new();
    for rule in builtin().iter().filter(|rule| RULES.contains(&rule.id.as_str())) {
        figures.extend(preview(&alerts, rule, week.locks, filled, has_goal).await?);
    }
    stop.cancel();
    leases.close().await;
    Ok(figures)
}

/// Number of rows of the week.
#[derive(Debug, Clone, Copy, Default)]
struct Filled {
    holds: i64,
    waits: i64,
}

async fn preview(
    alerts: &Arc<Alerts>,
    rule: &Rule,
    locks: i64,
    filled: Filled,
    has_goal: bool,
) -> Result<[Figure; 4], BenchError> {
    let (watch, cpu) = (Stopwatch::start(), cpu_ms());
    let mut run = alerts.preview_run(vec![rule.clone()]);
    let (mut first_ms, mut last_preview) = (None, None);
    while let Some(previews) = run.next().await {
        last_preview = previews.map_err(|error| server_error(&error))?.pop();
        first_ms.get_or_insert_with(|| watch.ms());
    }
    let (ms, cpu) = (watch.ms(), cpu_ms() - cpu);
    // A preview that read less or found no lock would be faster.
    let waits = if rule.condition.kind == ConditionKind::Contention {
        filled.waits
    } else {
        0
    };
    let expected = (filled.holds + waits, locks);
    let seen = last_preview.map_or((0, 0), |it| (it.events.cast_signed(), it.locks.cast_signed()));
    if seen != expected {
        return Err(BenchError::Answer {
            what: "a preview",
            answer: format!("it read {seen:?} events and locks instead of {expected:?}"),
        });
    }
    let repeated_cpu_ms = cpu_ms();
    let repeated = alerts.preview(rule).await.map_err(|error| server_error(&error))?;
    let repeated_cpu_ms = cpu_ms() - repeated_cpu_ms;
    if repeated.events != seen.0.unsigned_abs() {
        return Err(BenchError::Answer {
            what: "a repeated preview",
            answer: format!("it has {} events instead of {}", repeated.events, seen.0),
        });
    }
    let all = filled.holds + filled.waits;
    let name = |what| format!("{}, {what}: {all} events of {locks} locks", rule.name);
    let figure = |what, ms, goal: f64| match has_goal {
        true => Figure::at_most(&name(what), ms, goal, "ms"),
        false => Figure::plain(&name(what), ms, "ms"),
    };
    Ok([
        figure("first figure", first_ms.unwrap_or(ms), FIRST_GOAL_MS),
        figure("CPU", cpu, CPU_GOAL_MS),
        Figure::plain(&name("whole"), ms, "ms"),
        Figure::plain(&name("CPU of a repeated preview"), repeated_cpu_ms, "ms"),
    ])
}

/// CPU time of this process so far.
fn cpu_ms() -> f64 {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    let used = Duration::new(
        used.tv_sec.unsigned_abs(),
        u32::try_from(used.tv_nsec).unwrap_or(0),
    );
    used.as_secs_f64() * 1_000.0
}

/// Each lock is acquired repeatedly and held for a tenth of the time; every fourth time with a waiter.
fn fill(file: &mut Connection, Week { locks, every_min }: Week, now: i64) -> Result<Filled, rusqlite::Error> {
    const MINUTE_MS: i64 = 60_000;
    let (from, rounds) = (now - (WEEK_MIN - 1) * MINUTE_MS, WEEK_MIN / every_min - 1);
    let held_ms = every_min * MINUTE_MS / 10;
    let insert = "INSERT INTO lock_events (at, kind, backend, source, resource, owner_id, fencing_token, ttl_ms, waiters)
        VALUES (?1, ?2, 'builtin', 'lease', ?3, 'worker-1', ?4, 3600000, ?5)";
    let tx = file.transaction()?;
    let mut filled = Filled::default();
    {
        let mut row = tx.prepare(insert)?;
        for round in 0..rounds {
            let at = from + round * every_min * MINUTE_MS;
            let name = |lock: i64| {
                let kind =
                    ["close", "import", "post", "reindex", "export"][usize::try_from(lock % 5).unwrap_or(0)];
                format!("tenant_{}:{kind}:{lock}", lock % 50).into_bytes()
            };
            let token = (round + 1).to_string();
            for lock in 0..locks {
                row.execute(params![at + lock, "acquired", name(lock), token, 0])?;
            }
            if round % 4 == 0 {
                for lock in 0..locks {
                    row.execute(params![at + held_ms / 2 + lock, "waiting", name(lock), token, 1])?;
                }
                filled.waits += locks;
            }
            for lock in 0..locks {
                row.execute(params![
                    at + held_ms + lock,
                    "released",
                    name(lock),
                    token,
                    None::<i64>
                ])?;
            }
            filled.holds += 2 * locks;
        }
    }
    tx.commit()?;
    Ok(filled)
}

fn server_error(error: &dyn std::fmt::Display) -> BenchError {
    BenchError::Answer {
        what: "history",
        answer: error.to_string(),
    }
}
