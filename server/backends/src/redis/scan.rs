//! One scan over all keys that match the patterns, within its timeout.
//!
//! `SCAN` runs ahead of the reads: while the server reads one page, the next is requested
//! already, with at most [`PAGES_IN_FLIGHT`] concurrent pages. `SCAN` may return a key twice or
//! an empty page; both are harmless here.

use std::borrow::Cow;
use std::pin::pin;
use std::time::Duration;

use ::redis::{Pipeline, Value};
use domain::duration::millis;
use domain::observation::Coverage;
use domain::reported::Reported;
use domain::tick::Tick;
use futures::StreamExt;
use futures::future::OptionFuture;
use futures::stream::FuturesUnordered;

use super::connection::RedisConnection;
use super::limits::{PAGES_IN_FLIGHT, SCAN_COUNT};
use super::page::{self, RedisKey};
use super::scan_warnings::Troubles;
use super::server_info::{self, ServerInfo};
use super::{RedisBackend, error};
use crate::{BackendError, Batch, Budget, ClockReading, Pass, Sink, SourcePass};

/// Progress of a scan.
struct Progress<'a> {
    sink: &'a mut dyn Sink,
    ends_at: Tick,
    seen: u64,
    pages: u64,
    troubles: Troubles,
}

enum End {
    AllSeen,
    BudgetUsed,
}

pub(super) async fn run(
    backend: &RedisBackend,
    budget: Budget,
    sink: &mut dyn Sink,
) -> Result<Pass, BackendError> {
    let started = backend.clock.tick();
    let budget_ms = millis(budget.time_max);
    let line = backend.passes.line().await?;
    let read = read_all(backend, &line, started.plus(budget_ms), sink).await;
    if read.is_err() {
        backend.passes.discard(&line).await;
    }
    read
}

async fn read_all(
    backend: &RedisBackend,
    line: &RedisConnection,
    ends_at: Tick,
    sink: &mut dyn Sink,
) -> Result<Pass, BackendError> {
    let (clock, info) = probe_server(backend, line).await?;
    let mut progress = Progress {
        sink,
        ends_at,
        seen: 0,
        pages: 0,
        troubles: Troubles::default(),
    };
    let mut end = End::AllSeen;
    for pattern in &backend.patterns {
        if let End::BudgetUsed = scan(backend, line, pattern, &mut progress).await? {
            end = End::BudgetUsed;
            break;
        }
    }
    if progress.pages == 0 && matches!(end, End::BudgetUsed) {
        return Err(error::no_answer(backend.target.timeout));
    }
    Ok(Pass {
        sources: sources(backend, &end, &progress, &info),
        clock,
    })
}

/// The server's clock, and whether it is plausible.
async fn probe_server(
    backend: &RedisBackend,
    line: &RedisConnection,
) -> Result<(Reported<ClockReading>, ServerInfo), BackendError> {
    let mut commands = Pipeline::with_capacity(2);
    commands.cmd("TIME");
    commands.cmd("INFO");
    let before = backend.clock.now();
    let answers = line.query_all(&commands).await?;
    let after = backend.clock.now();
    let clock = match answers.first().and_then(server_info::time) {
        Some(backend_now) => {
            let half_ms = after.tick.since(before.tick) / 2;
            let our_now = before.wall + chrono::TimeDelta::milliseconds(half_ms);
            Reported::Value(ClockReading {
                backend_now,
                our_now,
                error_ms: half_ms.max(1),
            })
        }
        None => Reported::unknown("this account may not read the server's clock (TIME)"),
    };
    let info = answers
        .get(1)
        .and_then(server_info::text)
        .map(ServerInfo::parse)
        .unwrap_or_default();
    if let Some(mode) = &info.other_mode {
        return Err(error::other_mode(mode));
    }
    Ok((clock, info))
}

async fn scan(
    backend: &RedisBackend,
    line: &RedisConnection,
    pattern: &str,
    progress: &mut Progress<'_>,
) -> Result<End, BackendError> {
    let mut reads = FuturesUnordered::new();
    let mut next = pin!(OptionFuture::from(Some(step(line, pattern, 0))));
    let mut scanning = true;
    while scanning || !reads.is_empty() {
        let left_ms = progress.ends_at.since(backend.clock.tick());
        let Ok(left_ms @ 1..) = u64::try_from(left_ms) else {
            return Ok(End::BudgetUsed);
        };
        tokio::select! {
            biased;
            Some(found) = &mut next, if scanning && reads.len() < PAGES_IN_FLIGHT => {
                let Step { cursor, keys, long_names } = found?;
                progress.troubles.long_names(long_names);
                progress.pages += 1;
                scanning = cursor != 0;
                next.set(OptionFuture::from(scanning.then(|| step(line, pattern, cursor))));
                if !keys.is_empty() {
                    reads.push(page::read(line, &backend.rows, &backend.clock, keys));
                }
            }
            Some(read) = reads.next(), if !reads.is_empty() => {
                let page = read?;
                progress.seen += page.locks.len() as u64;
                progress.troubles.merge(page.troubles);
                progress.sink.accept(Batch { sent_at: page.sent_at, locks: page.locks, gone: Vec::new() });
            }
            () = tokio::time::sleep(Duration::from_millis(left_ms)) => return Ok(End::BudgetUsed),
        }
    }
    Ok(End::AllSeen)
}

/// Result of one `SCAN`.
struct Step {
    /// Next cursor; 0: done.
    cursor: u64,
    keys: Vec<RedisKey>,
    /// Keys whose names exceeded the limit.
    long_names: u64,
}

async fn step(line: &RedisConnection, pattern: &str, cursor: u64) -> Result<Step, BackendError> {
    let mut scan = ::redis::cmd("SCAN");
    scan.arg(cursor)
        .arg("MATCH")
        .arg(pattern)
        .arg("COUNT")
        .arg(SCAN_COUNT);
    let Value::Array(answer) = line.query(&scan).await? else {
        return Err(error::unexpected("SCAN"));
    };
    let Ok([cursor, Value::Array(found)]) = <[Value; 2]>::try_from(answer) else {
        return Err(error::unexpected("SCAN"));
    };
    let cursor = server_info::text(&cursor).and_then(|text| text.parse().ok());
    let mut step = Step {
        cursor: cursor.ok_or_else(|| error::unexpected("SCAN"))?,
        keys: Vec::with_capacity(found.len()),
        long_names: 0,
    };
    for key in found {
        match key {
            Value::BulkString(key) => step.keys.push(key),
            Value::Nil => step.long_names += 1,
            _ => return Err(error::unexpected("SCAN")),
        }
    }
    Ok(step)
}

fn sources(backend: &RedisBackend, end: &End, progress: &Progress<'_>, info: &ServerInfo) -> Vec<SourcePass> {
    let coverage = match end {
        End::AllSeen => progress.troubles.coverage(progress.seen),
        End::BudgetUsed => Coverage::Partial {
            seen: progress.seen,
            of: None,
            why: Cow::Borrowed("the scan timed out; raise `scan_timeout` or narrow `patterns`"),
        },
    };
    let replica = info.replica.as_ref().map(server_info::Replica::fault);
    let joined = |own: Option<String>| match (own, replica.clone()) {
        (Some(own), Some(replica)) => Some(format!("{own}. {replica}")),
        (own, replica) => own.or(replica),
    };
    vec![
        SourcePass {
            source: backend.rows.key.clone(),
            coverage: coverage.clone(),
            fault: joined(progress.troubles.of_keys()),
        },
        SourcePass {
            source: backend.rows.hash.clone(),
            coverage,
            fault: joined(progress.troubles.of_hashes()),
        },
    ]
}
