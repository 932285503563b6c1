//! One run: load, faults one after the other, the end, and the checker's verdict.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use tokio::time::sleep;

use super::checker;
use super::cluster::{Cluster, StoreKind, summary};
use super::fault::InjectedFault;
use super::history::{History, now};
use crate::support::rng::Dice;

/// A fault counts only with at least this number of answers per second before it. On etcd an expired lock is free later, by the
/// margin.
const fn rate_min(kind: StoreKind) -> u64 {
    match kind {
        StoreKind::Etcd => 50,
        _ => 100,
    }
}
const WARM_MAX_S: u64 = 40;

/// Counts over all histories of a run.
#[derive(Default)]
pub(super) struct RunCounts {
    pub(super) histories: u32,
    pub(super) faults: BTreeMap<(String, InjectedFault), u32>,
    pub(super) slowest: Option<u64>,
    /// Updates lost by registers that do not compare tokens.
    pub(super) lost_without_tokens: usize,
    calls: usize,
    grants: usize,
}

impl fmt::Display for RunCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} histories, {} calls, {} leases; at least {} answers/s before each fault; {} updates lost where tokens \
             are not compared, 0 where they are",
            self.histories,
            self.calls,
            self.grants,
            self.slowest.unwrap_or(0),
            self.lost_without_tokens
        )?;
        for ((store, fault), count) in &self.faults {
            writeln!(f, "{store}: {fault:?} {count} times")?;
        }
        Ok(())
    }
}

impl RunCounts {
    /// Plays a history with these faults. Panics with every violation that the checker finds.
    pub(super) async fn play(
        &mut self,
        (kind, servers): (StoreKind, usize),
        faults: &[InjectedFault],
        seed: u64,
    ) {
        println!("{kind:?}, servers: {servers}, seed {seed}: {faults:?}");
        let mut dice = Dice::new(seed);
        let mut cluster = Box::pin(Cluster::start((kind, servers), seed)).await;
        for fault in faults {
            let rate = rate(&cluster).await;
            self.slowest = Some(self.slowest.map_or(rate, |slowest| slowest.min(rate)));
            let seen = Box::pin(fault.strike(&mut cluster, &mut dice)).await;
            println!("{kind:?}: {fault:?} at {rate} answers/s: {seen}");
            cluster.all_served_again().await;
            *self
                .faults
                .entry((format!("{kind:?}, servers: {servers}"), *fault))
                .or_insert(0) += 1;
        }
        // Calls after the last fault are checked too.
        sleep(Duration::from_secs(1)).await;
        let history = Box::pin(cluster.finish()).await;
        println!("{kind:?}: {}", summary(&history));
        self.judge(&history);
    }

    fn judge(&mut self, history: &History) {
        let violations = checker::check(history);
        let texts: Vec<String> = violations.iter().take(20).map(ToString::to_string).collect();
        assert!(
            violations.is_empty(),
            "{} violations:\n{}",
            violations.len(),
            texts.join("\n")
        );
        self.histories += 1;
        self.calls += history.calls.len();
        self.grants += history.rows.len();
        self.lost_without_tokens += checker::lost_without_tokens(history);
    }
}

/// Answers per second, once there are enough of them. On a machine that is too slow for them, the run proves nothing.
async fn rate(cluster: &Cluster) -> u64 {
    let mut best = 0;
    for _ in 0..WARM_MAX_S {
        let (before, began) = (cluster.known(), now());
        sleep(Duration::from_secs(1)).await;
        let took_us = u64::try_from(now() - began).unwrap();
        best = best.max((cluster.known() - before) * 1_000_000 / took_us);
        if best >= rate_min(cluster.kind) {
            return best;
        }
    }
    panic!("only {best} answers/s: too little load for a fault run to count");
}
