//! The load: so many clients, each taking and giving back locks of its own, one after the other, as fast as it can.
//!
//! They run as tasks of this process, so that their work is done on the cores that are measured: what a figure says is
//! what server and clients together get done. Lean on purpose: a client that is slow measures itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::error::BenchError;
use super::stopwatch::{Stopwatch, micros, percentile};
use crate::tasks;

/// Clients of every measurement of pace, ours and the peers'.
pub const CLIENTS: usize = 64;
/// Names that each client uses in turn.
pub(super) const NAMES: u64 = 16;

/// One client with its own connection and its own locks.
pub(super) trait LockClient: Send + 'static {
    /// Takes a lock and gives it back; returns when both are durable.
    fn pair(&mut self, name: u64) -> impl Future<Output = Result<(), BenchError>> + Send;
}

/// For how long: what happens in the warm-up does not count.
#[derive(Debug, Clone, Copy)]
pub struct Span {
    pub warm_up: Duration,
    pub time: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pace {
    pub pairs_per_s: f64,
    /// Of a pair, in milliseconds.
    pub p50_ms: f64,
    pub p99_ms: f64,
}

/// Looked at after each pair, so it costs no lock.
#[derive(Default)]
struct Phase {
    counts: AtomicBool,
    is_over: AtomicBool,
}

/// # Errors
/// The first that any client met.
pub(super) async fn run<C: LockClient>(clients: Vec<C>, span: Span) -> Result<Pace, BenchError> {
    let phase = Arc::new(Phase::default());
    let (to, mut results) = mpsc::channel(clients.len().max(1));
    for client in clients {
        let (to, phase) = (to.clone(), phase.clone());
        tasks::spawn("client of the load", CancellationToken::new(), async move {
            let took = work(client, &phase).await;
            let _ = to.send(took).await;
        });
    }
    drop(to);
    let failed = tokio::time::timeout(span.warm_up, results.recv()).await;
    if let Ok(early) = failed {
        return Err(early.and_then(Result::err).unwrap_or(BenchError::NoClient));
    }
    phase.counts.store(true, Ordering::Relaxed);
    let watch = Stopwatch::start();
    let failed = tokio::time::timeout(span.time, results.recv()).await;
    let elapsed = watch.elapsed();
    phase.is_over.store(true, Ordering::Relaxed);
    if let Ok(early) = failed {
        return Err(early.and_then(Result::err).unwrap_or(BenchError::NoClient));
    }
    let mut took = Vec::new();
    while let Some(one) = results.recv().await {
        took.extend(one?);
    }
    took.sort_unstable();
    let ms = |percent| f64::from(percentile(&took, percent)) / 1_000.0;
    Ok(Pace {
        pairs_per_s: took.len() as f64 / elapsed.as_secs_f64(),
        p50_ms: ms(50),
        p99_ms: ms(99),
    })
}

/// How long each pair took that ended while they counted, in microseconds.
async fn work<C: LockClient>(mut client: C, phase: &Phase) -> Result<Vec<u32>, BenchError> {
    let mut took = Vec::new();
    for round in 0.. {
        let watch = Stopwatch::start();
        client.pair(round % NAMES).await?;
        if phase.is_over.load(Ordering::Relaxed) {
            break;
        }
        if phase.counts.load(Ordering::Relaxed) {
            took.push(micros(watch.elapsed()));
        }
    }
    Ok(took)
}
