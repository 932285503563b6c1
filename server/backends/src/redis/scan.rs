//! One scan over all keys of a server that match the patterns, within its timeout.
//!
//! `SCAN` runs ahead of the reads: while the server reads one page, the next is requested
//! already, with at most [`PAGES_IN_FLIGHT`] concurrent pages. `SCAN` may return a key twice or
//! an empty page; both are harmless here.

use std::borrow::Cow;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use ::redis::{Pipeline, Value};
use domain::duration::millis;
use domain::names::Source;
use domain::observation::Coverage;
use domain::reported::Reported;
use domain::tick::Tick;
use futures::StreamExt;
use futures::future::OptionFuture;
use futures::stream::FuturesUnordered;
use parking_lot::Mutex;

use super::connection::RedisConnection;
use super::error;
use super::limits::{PAGES_IN_FLIGHT, REPLY_BYTES_MAX, SCAN_COUNT, VALUE_BYTES_MAX};
use super::node::Node;
use super::page::{self, Page, RedisKey};
use super::redirect::Redirect;
use super::scan_warnings::Troubles;
use super::server_info::{self, ServerInfo};
use super::settings::Settings;
use crate::{BackendError, Batch, Budget, ClockReading, Pass, Sink, SourcePass};
use config::redis::RedisMode;

/// Digits of a cursor.
const CURSOR_BYTES_MAX: usize = 20;

/// Reads the keys that `SCAN` has found.
pub(super) trait ReadKeys: Sync {
    fn read(&self, keys: Vec<RedisKey>) -> impl Future<Output = Result<Page, BackendError>> + Send;
}

/// From the server that was scanned.
pub(super) struct FromScanned<'a> {
    pub(super) connection: &'a RedisConnection,
    pub(super) settings: &'a Settings,
}

impl ReadKeys for FromScanned<'_> {
    async fn read(&self, keys: Vec<RedisKey>) -> Result<Page, BackendError> {
        page::read(self.connection, &self.settings.rows, &self.settings.clock, keys).await
    }
}

/// Progress of a scan; several servers may be scanned at once.
pub(super) struct Progress<'a> {
    sink: Mutex<&'a mut dyn Sink>,
    ends_at: Tick,
    counts: Mutex<Counts>,
}

#[derive(Default)]
pub(super) struct Counts {
    pub(super) seen: u64,
    pub(super) pages: u64,
    pub(super) troubles: Troubles,
    pub(super) moved: Vec<(RedisKey, Redirect)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    AllSeen,
    BudgetUsed,
}

impl<'a> Progress<'a> {
    pub(super) fn new(settings: &Settings, budget: Budget, sink: &'a mut dyn Sink) -> Self {
        Self {
            sink: Mutex::new(sink),
            ends_at: settings.clock.tick().plus(millis(budget.time_max)),
            counts: Mutex::new(Counts::default()),
        }
    }

    /// Hands over a page.
    pub(super) fn accept(&self, page: Page) {
        let mut counts = self.counts.lock();
        counts.seen += page.locks.len() as u64;
        counts.troubles.merge(page.troubles);
        counts.moved.extend(page.moved);
        drop(counts);
        self.deliver(Batch {
            sent_at: page.sent_at,
            locks: page.locks,
            gone: Vec::new(),
        });
    }

    pub(super) fn deliver(&self, batch: Batch) {
        self.sink.lock().accept(batch);
    }

    /// See [`Sink::read_part`].
    pub(super) fn read_part(&self, source: &Source, covers: crate::NamePredicate) {
        self.sink.lock().read_part(source, covers);
    }

    /// See [`Sink::mark_undecided`].
    pub(super) fn mark_undecided(&self, source: &Source) {
        self.sink.lock().mark_undecided(source);
    }

    /// Reports all names that `is_listed` accepts as read, except those of keys that were not read and may be locks of the
    /// source.
    pub(super) fn read_parts(
        &self,
        settings: &Settings,
        troubles: &Troubles,
        is_listed: impl Fn(&[u8]) -> bool + Clone + Send + Sync + 'static,
    ) {
        let unread = Arc::new(troubles.unread().clone());
        let [key, hash, sorted_set] = settings.rows.sources();
        let sources = [
            (key, false),
            (hash, troubles.hide_hashes()),
            (sorted_set, troubles.hide_sorted_sets()),
        ];
        for (source, has_hidden) in sources {
            let (is_listed, unread) = (is_listed.clone(), unread.clone());
            let covers = move |name: &[u8]| is_listed(name) && !(has_hidden && unread.contains(name));
            self.read_part(source, Arc::new(covers));
        }
    }

    /// Time that is left; `None`: none.
    pub(super) fn left(&self, settings: &Settings) -> Option<Duration> {
        let left_ms = self.ends_at.since(settings.clock.tick());
        u64::try_from(left_ms)
            .ok()
            .filter(|ms| *ms > 0)
            .map(Duration::from_millis)
    }

    pub(super) fn counts(&self) -> parking_lot::MutexGuard<'_, Counts> {
        self.counts.lock()
    }
}

/// A scan of one server.
pub(super) async fn run(
    settings: &Settings,
    node: &Node,
    mode: RedisMode,
    budget: Budget,
    sink: &mut dyn Sink,
) -> Result<Pass, BackendError> {
    let progress = Progress::new(settings, budget, sink);
    let connection = node.scan_link.connection().await?;
    let read = read_all(settings, &connection, mode, &progress).await;
    if read.is_err() {
        node.scan_link.discard(&connection).await;
    }
    read
}

async fn read_all(
    settings: &Settings,
    connection: &RedisConnection,
    mode: RedisMode,
    progress: &Progress<'_>,
) -> Result<Pass, BackendError> {
    let (clock, info) = probe_server(settings, connection, mode).await?;
    let reader = FromScanned { connection, settings };
    let end = scan_patterns(settings, connection, &reader, progress).await?;
    let counts = std::mem::take(&mut *progress.counts());
    if counts.pages == 0 && end == End::BudgetUsed {
        return Err(error::no_answer(settings.timeout));
    }
    if !counts.moved.is_empty() {
        return Err(error::other_mode("cluster", mode));
    }
    if lists_every_lock(end, &counts) {
        progress.read_parts(settings, &counts.troubles, |_| true);
    }
    let replica = info.replica.as_ref().map(server_info::Replica::fault);
    Ok(Pass {
        sources: sources(settings, &end_coverage(end, &counts), &counts, replica.as_deref()),
        clock,
    })
}

/// The server's clock and its `INFO`. An error if the server does not run in the mode that the
/// configuration names.
pub(super) async fn probe_server(
    settings: &Settings,
    connection: &RedisConnection,
    mode: RedisMode,
) -> Result<(Reported<ClockReading>, ServerInfo), BackendError> {
    let mut commands = Pipeline::with_capacity(2);
    commands.cmd("TIME");
    commands.cmd("INFO");
    let before = settings.clock.now();
    let answers = connection.query_all(&commands).await?;
    let after = settings.clock.now();
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
    let info = answers.get(1).and_then(server_info::text).map(ServerInfo::parse);
    if let Some(info) = &info {
        info.check_mode(mode)?;
    }
    Ok((clock, info.unwrap_or_default()))
}

/// All patterns in turn.
pub(super) async fn scan_patterns(
    settings: &Settings,
    connection: &RedisConnection,
    reader: &impl ReadKeys,
    progress: &Progress<'_>,
) -> Result<End, BackendError> {
    for pattern in &settings.patterns {
        if scan(settings, connection, pattern, reader, progress).await? == End::BudgetUsed {
            return Ok(End::BudgetUsed);
        }
    }
    Ok(End::AllSeen)
}

async fn scan(
    settings: &Settings,
    connection: &RedisConnection,
    pattern: &str,
    reader: &impl ReadKeys,
    progress: &Progress<'_>,
) -> Result<End, BackendError> {
    let mut reads = FuturesUnordered::new();
    let mut next = pin!(OptionFuture::from(Some(step(connection, pattern, 0))));
    let mut scanning = true;
    while scanning || !reads.is_empty() {
        let Some(left) = progress.left(settings) else {
            return Ok(End::BudgetUsed);
        };
        tokio::select! {
            biased;
            Some(found) = &mut next, if scanning && reads.len() < PAGES_IN_FLIGHT => {
                let Step { cursor, keys, omitted_names, is_full } = found?;
                let mut counts = progress.counts();
                counts.troubles.omitted_names(omitted_names, is_full);
                counts.pages += 1;
                drop(counts);
                scanning = cursor != 0;
                next.set(OptionFuture::from(scanning.then(|| step(connection, pattern, cursor))));
                if !keys.is_empty() {
                    reads.push(reader.read(keys));
                }
            }
            Some(read) = reads.next(), if !reads.is_empty() => progress.accept(read?),
            () = tokio::time::sleep(left) => return Ok(End::BudgetUsed),
        }
    }
    Ok(End::AllSeen)
}

/// Result of one `SCAN`.
struct Step {
    /// Next cursor; 0: done.
    cursor: u64,
    keys: Vec<RedisKey>,
    /// Keys whose names the reply left out.
    omitted_names: u64,
    /// Another name of the longest length would not have fit into the reply.
    is_full: bool,
}

async fn step(connection: &RedisConnection, pattern: &str, cursor: u64) -> Result<Step, BackendError> {
    let mut scan = ::redis::cmd("SCAN");
    scan.arg(cursor)
        .arg("MATCH")
        .arg(pattern)
        .arg("COUNT")
        .arg(SCAN_COUNT);
    let Value::Array(answer) = connection.query(&scan).await? else {
        return Err(error::unexpected("SCAN"));
    };
    let Ok([cursor, Value::Array(found)]) = <[Value; 2]>::try_from(answer) else {
        return Err(error::unexpected("SCAN"));
    };
    let cursor = server_info::text(&cursor).and_then(|text| text.parse().ok());
    let mut step = Step {
        cursor: cursor.ok_or_else(|| error::unexpected("SCAN"))?,
        keys: Vec::with_capacity(found.len()),
        omitted_names: 0,
        is_full: false,
    };
    for key in found {
        match key {
            Value::BulkString(key) => step.keys.push(key),
            Value::Nil => step.omitted_names += 1,
            _ => return Err(error::unexpected("SCAN")),
        }
    }
    let bytes: usize = step.keys.iter().map(Vec::len).sum();
    step.is_full = (bytes + CURSOR_BYTES_MAX + VALUE_BYTES_MAX) as u64 > REPLY_BYTES_MAX;
    Ok(step)
}

/// Whether every key that can be a lock was listed, also if longer names make the coverage partial: then locks that
/// were not found are gone.
pub(super) fn lists_every_lock(end: End, counts: &Counts) -> bool {
    end == End::AllSeen && counts.troubles.lists_every_lock()
}

pub(super) fn end_coverage(end: End, counts: &Counts) -> Coverage {
    match end {
        End::AllSeen => counts.troubles.coverage(counts.seen),
        End::BudgetUsed => Coverage::Partial {
            seen: counts.seen,
            of: None,
            why: Cow::Borrowed("the scan timed out; raise `scan_timeout` or narrow `patterns`"),
        },
    }
}

/// Strings, hashes and sorted sets; `fault` is that of the servers.
pub(super) fn sources(
    settings: &Settings,
    coverage: &Coverage,
    counts: &Counts,
    fault: Option<&str>,
) -> Vec<SourcePass> {
    let troubles = &counts.troubles;
    let source = |source: &Source, has_hidden: bool, own: Option<String>| SourcePass {
        source: source.clone(),
        coverage: match coverage {
            Coverage::Complete if has_hidden => troubles.hidden_coverage(counts.seen),
            coverage => coverage.clone(),
        },
        fault: joined(own, fault),
    };
    let [key, hash, sorted_set] = settings.rows.sources();
    vec![
        source(key, false, troubles.of_keys()),
        source(hash, troubles.hide_hashes(), troubles.of_hashes()),
        source(sorted_set, troubles.hide_sorted_sets(), troubles.of_sorted_sets()),
    ]
}

/// Of two readings of servers' clocks, the one that is further from ours.
pub(super) fn larger_offset(
    known: Option<ClockReading>,
    reading: Reported<ClockReading>,
) -> Option<ClockReading> {
    let Reported::Value(reading) = reading else {
        return known;
    };
    let is_kept = known.is_some_and(|known| known.offset_ms().abs() >= reading.offset_ms().abs());
    if is_kept { known } else { Some(reading) }
}

pub(super) fn joined(own: Option<String>, other: Option<&str>) -> Option<String> {
    match (own, other) {
        (Some(own), Some(other)) => Some(format!("{own}. {other}")),
        (own, other) => own.or_else(|| other.map(str::to_owned)),
    }
}
