//! Scenarios: names, numbers, and their distribution over the servers, so that each state is visible at nearly any
//! moment, with any one of the servers alone.

use std::time::Duration;

use super::leases::Leases;
use super::rng;
use super::worker::{self, LeaseTiming};
use super::worker_pool::WorkerPool;

/// Workers on one system, by behaviour.
pub(super) struct Workload {
    /// Renewed continuously: resource, owner, timing.
    pub(super) steady: &'static [(&'static str, &'static str, LeaseTiming)],
    /// Renewed a few times, then silent.
    pub(super) silent: &'static [&'static str],
    /// Never renewed.
    pub(super) unrenewed: &'static [&'static str],
    /// Resources of short jobs.
    pub(super) short_jobs: &'static [&'static str],
}

/// A lease of 30 s renewed every 10 s, as in most libraries.
pub(super) const USUAL: LeaseTiming = LeaseTiming::secs(30, 10);
pub(super) const QUICK: LeaseTiming = LeaseTiming::secs(15, 5);
/// Survives the pauses of its server.
pub(super) const PATIENT: LeaseTiming = LeaseTiming::secs(60, 15);

/// 16 s of renewals, 31.5 s of silence.
pub(super) const SILENT: LeaseTiming = LeaseTiming::secs(30, 4);
const SILENT_CYCLE: Duration = Duration::from_millis(47_500);
pub(super) const UNRENEWED_TTL: Duration = Duration::from_secs(40);
const UNRENEWED_CYCLE: Duration = Duration::from_millis(41_500);
/// Concurrent short jobs per system.
const SHORT_JOB_WORKERS: u32 = 5;

pub(super) const SILENT_OWNERS: [&str; 6] = [
    "worker-7",
    "worker-12",
    "exporter-1",
    "billing-api-2",
    "worker-3",
    "importer-5",
];
pub(super) const SHORT_JOB_OWNERS: [&str; 8] = [
    "worker-1",
    "worker-2",
    "worker-4",
    "billing-api-1",
    "billing-api-3",
    "exporter-2",
    "mailer-1",
    "mailer-2",
];
pub(super) const UNRENEWED_OWNERS: [&str; 4] = ["cron-1", "cron-2", "report-runner-1", "backfill-6"];

/// Starts the workers. `part` of `parts` shifts the phases, so that systems are in different states.
pub(super) fn start_workers<L: Leases>(
    workers: &mut WorkerPool,
    leases: &L,
    workload: &Workload,
    part: u32,
    parts: u32,
) {
    for &(resource, owner, timing) in workload.steady {
        let leases = leases.clone();
        let phase = rng::between(Duration::ZERO, Duration::from_secs(3));
        workers.supervise("steady worker", phase, move || {
            worker::renew_continuously(leases.clone(), resource.to_owned(), owner.to_owned(), timing)
        });
    }
    for (phase, &resource) in phases(SILENT_CYCLE, workload.silent, part, parts) {
        let leases = leases.clone();
        let mut owners = SILENT_OWNERS
            .iter()
            .cycle()
            .skip(resource.len() % SILENT_OWNERS.len());
        workers.supervise("worker that dies", phase, move || {
            let owner = owners.next().copied().unwrap_or_default().to_owned();
            worker::stop_renewing(leases.clone(), resource.to_owned(), owner, SILENT)
        });
    }
    for (phase, &resource) in phases(UNRENEWED_CYCLE, workload.unrenewed, part, parts) {
        let leases = leases.clone();
        workers.supervise("worker without renewals", phase, move || {
            let owner = rng::pick(&UNRENEWED_OWNERS).to_owned();
            worker::never_renew(leases.clone(), resource.to_owned(), owner, UNRENEWED_TTL)
        });
    }
    for _ in 0..SHORT_JOB_WORKERS.min(u32::try_from(workload.short_jobs.len()).unwrap_or_default()) {
        let (leases, names) = (leases.clone(), workload.short_jobs);
        let phase = rng::between(Duration::ZERO, Duration::from_secs(5));
        workers.supervise("short job", phase, move || {
            let (resource, owner) = (rng::pick(names), rng::pick(&SHORT_JOB_OWNERS));
            worker::run_short_job(leases.clone(), resource.to_owned(), owner.to_owned())
        });
    }
}

/// Distributes the starts of equal cycles evenly over jobs and systems.
fn phases<'a>(
    cycle: Duration,
    jobs: &'a [&'static str],
    part: u32,
    parts: u32,
) -> impl Iterator<Item = (Duration, &'a &'static str)> {
    let slots = u32::try_from(jobs.len()).unwrap_or(1).max(1) * parts.max(1);
    jobs.iter()
        .zip(0u32..)
        .map(move |(job, index)| (cycle / slots * (index * parts + part), job))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cycles_begin_evenly_spread_over_jobs_and_systems() {
        // Two jobs on each of three systems in a cycle of six seconds: one starts each second.
        let jobs = ["a", "b"];
        let mut begins: Vec<u64> = (0..3)
            .flat_map(|part| phases(Duration::from_secs(6), &jobs, part, 3).map(|(phase, _)| phase.as_secs()))
            .collect();
        begins.sort_unstable();
        assert_eq!(begins, [0, 1, 2, 3, 4, 5]);
    }
}
