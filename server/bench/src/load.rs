//! The load: concurrent clients, each acquiring and releasing locks of its own in a loop, as fast as possible.
//!
//! Clients run as tasks of this process and share the measured cores: a figure is the throughput of server and
//! clients together. They are minimal, because a slow client would measure itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::error::BenchError;
use super::machine_cpu::MachineCpu;
use super::thread_cpu::{ThreadCpu, ThreadCpuSnapshot};
use super::timer::{Stopwatch, micros, percentile};
use runtime::tasks;

/// Clients of every throughput measurement, ours and the peers'.
pub(crate) const CLIENTS: usize = 64;
/// Names per client, used in turn.
pub(super) const NAMES: u64 = 16;

/// A client with its own connection and locks.
pub(super) trait LockClient: Send + 'static {
    /// Pairs of one call of [`pair`](Self::pair).
    const PAIRS: u32 = 1;

    /// Acquires and releases a lock; returns when both are durable.
    fn pair(&mut self, name: u64) -> impl Future<Output = Result<(), BenchError>> + Send;
}

/// Duration; the warm-up does not count.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LoadSpan {
    pub warm_up: Duration,
    pub time: Duration,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Pace {
    pub pairs_per_s: f64,
    /// Milliseconds per pair.
    pub p50_ms: f64,
    pub p99_ms: f64,
    /// CPU time of all processes of the machine, the clients included, in microseconds.
    pub cpu_us: f64,
    /// The same by process and thread.
    pub threads: Vec<ThreadCpu>,
}

/// Checked after each pair; atomic, so it needs no lock.
#[derive(Default)]
struct Phase {
    counts: AtomicBool,
    is_over: AtomicBool,
}

/// # Errors
/// The first error of any client.
pub(super) async fn run<C: LockClient>(clients: Vec<C>, span: LoadSpan) -> Result<Pace, BenchError> {
    let phase = Arc::new(Phase::default());
    let (sender, mut results) = mpsc::channel(clients.len().max(1));
    for client in clients {
        let (sender, phase) = (sender.clone(), phase.clone());
        tasks::spawn("load client", CancellationToken::new(), async move {
            let result = work(client, &phase).await;
            let _ = sender.send(result).await;
        });
    }
    drop(sender);
    let failed = tokio::time::timeout(span.warm_up, results.recv()).await;
    if let Ok(early) = failed {
        return Err(early.and_then(Result::err).unwrap_or(BenchError::NoClient));
    }
    phase.counts.store(true, Ordering::Relaxed);
    let (watch, cpu, threads) = (Stopwatch::start(), MachineCpu::read()?, ThreadCpuSnapshot::read());
    let failed = tokio::time::timeout(span.time, results.recv()).await;
    let (elapsed, cpu_us) = (watch.elapsed(), cpu.elapsed_us()?);
    let mut threads = threads.elapsed();
    phase.is_over.store(true, Ordering::Relaxed);
    if let Ok(early) = failed {
        return Err(early.and_then(Result::err).unwrap_or(BenchError::NoClient));
    }
    let mut latencies_us = Vec::new();
    while let Some(result) = results.recv().await {
        latencies_us.extend(result?);
    }
    latencies_us.sort_unstable();
    let ms = |percent| f64::from(percentile(&latencies_us, percent)) / 1_000.0;
    let pairs = latencies_us.len() as f64 * f64::from(C::PAIRS);
    for cpu in &mut threads {
        cpu.user_us /= pairs.max(1.0);
        cpu.system_us /= pairs.max(1.0);
    }
    Ok(Pace {
        pairs_per_s: pairs / elapsed.as_secs_f64(),
        p50_ms: ms(50),
        p99_ms: ms(99),
        cpu_us: cpu_us / pairs.max(1.0),
        threads,
    })
}

/// Durations in microseconds of the pairs that ended in the counted phase.
async fn work<C: LockClient>(mut client: C, phase: &Phase) -> Result<Vec<u32>, BenchError> {
    let mut latencies_us = Vec::new();
    for round in 0.. {
        let watch = Stopwatch::start();
        client.pair(round % NAMES).await?;
        if phase.is_over.load(Ordering::Relaxed) {
            break;
        }
        if phase.counts.load(Ordering::Relaxed) {
            latencies_us.push(micros(watch.elapsed()));
        }
    }
    Ok(latencies_us)
}
