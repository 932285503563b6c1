//! What a rule would have done in the last seven days, on the history of 1,000 locks.

use std::sync::Arc;

use domain::alerts::{Rule, builtin};
use domain::notice::Notice;
use futures::future::BoxFuture;
use rusqlite::{Connection, params};
use tokio_util::sync::CancellationToken;

use super::error::BenchError;
use super::figure::Figure;
use super::stopwatch::Stopwatch;
use crate::alerts::{Alerts, Evaluation, Notices, Parts};
use crate::audit::{Audit, Heads};
use crate::backends::Roster;
use crate::clock::Clock;
use crate::db::{Db, Tx};
use crate::inventory::Inventory;
use crate::lease::{LeaseConfig, LeaseService};
use crate::notify::Occasion;

pub const LOCKS: i64 = 1_000;
/// How often each lock is taken, in minutes: the goal is for the first, the second is told beside it.
pub const EVERY_MIN: [i64; 2] = [60, 10];
const GOAL_MS: f64 = 2_000.0;
const WEEK_MIN: i64 = 7 * 24 * 60;
/// One rule that follows each lock, one that looks at windows of prefixes.
const RULES: [&str; 2] = ["long_held", "contention"];

/// Nobody is told.
struct Nobody;

impl Notices for Nobody {
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
pub async fn measure(locks: i64, every_min: &[i64]) -> Result<Vec<Figure>, BenchError> {
    let mut figures = Vec::new();
    for (place, every) in every_min.iter().enumerate() {
        figures.extend(Box::pin(week(locks, *every, place == 0)).await?);
    }
    Ok(figures)
}

async fn week(locks: i64, every_min: i64, has_goal: bool) -> Result<Vec<Figure>, BenchError> {
    let folder = tempfile::tempdir().map_err(|source| BenchError::Io {
        what: "temporary folder",
        source,
    })?;
    let store = format!("sqlite:{}", folder.path().join("leasehold.db").display());
    let (clock, stop) = (Clock::start(), CancellationToken::new());
    let leases = LeaseService::open(&store, LeaseConfig::default(), clock.clone(), stop.clone()).await;
    let leases = leases.map_err(|error| answer(&error))?;
    let db = Db::open(&store).await.map_err(|error| answer(&error))?;
    let history = db.history(&store).await.map_err(|error| answer(&error))?;
    let now = clock.now().wall.timestamp_millis();
    let mut file = Connection::open(folder.path().join("leasehold.history.db"))?;
    let events = fill(&mut file, locks, every_min, now)?;
    let alerts = Alerts::start(Parts {
        audit: Audit::new(db, clock.clone(), Heads::new(None)),
        history,
        inventory: Inventory::new(Vec::new()),
        leases: leases.clone(),
        notices: Arc::new(Nobody),
        backends: Roster::new(Vec::new()),
        evaluation: Arc::new(Evaluation::new(clock.clone())),
        clock: clock.clone(),
        stop: stop.clone(),
    });
    let alerts = Box::pin(alerts).await.map_err(|error| answer(&error))?;
    let mut figures = Vec::new();
    for rule in builtin().iter().filter(|rule| RULES.contains(&rule.id.as_str())) {
        figures.push(one(&alerts, rule, (locks, events), has_goal).await?);
    }
    stop.cancel();
    leases.close().await;
    Ok(figures)
}

async fn one(
    alerts: &Alerts,
    rule: &Rule,
    (locks, events): (i64, i64),
    has_goal: bool,
) -> Result<Figure, BenchError> {
    let watch = Stopwatch::start();
    let seen = alerts.preview(rule).await.map_err(|error| answer(&error))?;
    let ms = watch.ms();
    // A preview that read less, or that found no lock, would be fast.
    if i64::try_from(seen.events).ok() != Some(events) || i64::try_from(seen.locks).ok() != Some(locks) {
        let read = format!("{} events of {} locks", seen.events, seen.locks);
        return Err(BenchError::Answer {
            what: "a preview",
            answer: format!("it read {read} instead of {events} of {locks}"),
        });
    }
    let name = format!("{}: {events} events of {locks} locks", rule.name);
    Ok(if has_goal {
        Figure::at_most(&name, ms, GOAL_MS, "ms")
    } else {
        Figure::plain(&name, ms, "ms")
    })
}

/// Each lock is taken again and again and held for a tenth of the time; every fourth time somebody waits. Answers how many
/// events that are.
fn fill(file: &mut Connection, locks: i64, every_min: i64, now: i64) -> Result<i64, rusqlite::Error> {
    const MINUTE_MS: i64 = 60_000;
    let (from, rounds) = (now - (WEEK_MIN - 1) * MINUTE_MS, WEEK_MIN / every_min - 1);
    let held_ms = every_min * MINUTE_MS / 10;
    let insert = "INSERT INTO lock_events (at, kind, backend, source, resource, owner_id, ttl_ms, waiters)
        VALUES (?1, ?2, 'builtin', 'lease', ?3, 'worker-1', 30000, ?4)";
    let tx = file.transaction()?;
    let mut count = 0;
    {
        let mut row = tx.prepare(insert)?;
        for round in 0..rounds {
            let at = from + round * every_min * MINUTE_MS;
            let name = |lock: i64| {
                let kind =
                    ["close", "import", "post", "reindex", "export"][usize::try_from(lock % 5).unwrap_or(0)];
                format!("tenant_{}:{kind}:{lock}", lock % 50).into_bytes()
            };
            for lock in 0..locks {
                count += row.execute(params![at + lock, "acquired", name(lock), 0])?;
            }
            if round % 4 == 0 {
                for lock in 0..locks {
                    count += row.execute(params![at + held_ms / 2 + lock, "waiting", name(lock), 1])?;
                }
            }
            for lock in 0..locks {
                count += row.execute(params![at + held_ms + lock, "released", name(lock), None::<i64>])?;
            }
        }
    }
    tx.commit()?;
    Ok(i64::try_from(count).unwrap_or(i64::MAX))
}

fn answer(error: &dyn std::fmt::Display) -> BenchError {
    BenchError::Answer {
        what: "history",
        answer: error.to_string(),
    }
}
