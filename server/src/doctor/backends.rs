//! Each backend as its adapter finds it: reached, its version, what the account may and may not do, its clock, what is seen.

use domain::known::Known;
use domain::observation::Coverage;

use super::certificates;
use super::finding::{self, Finding};
use crate::backends::connect::connect;
use crate::backends::{Backend, BackendError, Batch, Budget, Pass, Probe, Sink};
use crate::clock::Clock;
use crate::config::BackendConfig;

/// Counts what a pass hands over, and keeps nothing.
#[derive(Default)]
struct Counted(usize);

impl Sink for Counted {
    fn accept(&mut self, batch: Batch) {
        self.0 += batch.locks.len();
    }
}

pub(super) async fn examine(config: &BackendConfig, clock: &Clock) -> Vec<Finding> {
    let check = format!("backend {}", config.name);
    let mut findings = certificates::of_backend(config, clock.now().wall);
    let backend = connect(config, clock);
    let probed = tokio::time::timeout(config.timeout, backend.probe()).await;
    let probe = match probed.unwrap_or_else(|_| Err(late(config.timeout))) {
        Ok(probe) => probe,
        Err(error) => {
            findings.push(Finding::fault(&check, error.to_string(), error.mend()));
            return findings;
        }
    };
    findings.push(reached(&check, &*backend, &probe));
    findings.extend(rights(&check, &probe));
    let mut counted = Counted::default();
    let budget = Budget {
        time_max: config.budget,
    };
    let patience = config.budget + config.timeout;
    let passed = tokio::time::timeout(patience, backend.observe(budget, &mut counted)).await;
    match passed.unwrap_or_else(|_| Err(late(patience))) {
        Ok(pass) => findings.extend(seen(&check, &pass, counted.0)),
        Err(error) => findings.push(Finding::fault(&check, error.to_string(), error.mend())),
    }
    findings
}

fn late(after: std::time::Duration) -> BackendError {
    BackendError::NoAnswer {
        after_ms: u64::try_from(after.as_millis()).unwrap_or(u64::MAX),
    }
}

fn reached(check: &str, backend: &dyn Backend, probe: &Probe) -> Finding {
    let version = match &probe.version {
        Known::Known(version) => version.clone(),
        Known::Unknown(why) | Known::Absent(why) => format!("version unknown: {why}"),
    };
    Finding::ok(check, format!("reached at {}: {version}", backend.address()))
}

fn rights(check: &str, probe: &Probe) -> Vec<Finding> {
    let judged = probe
        .rights
        .iter()
        .map(|right| match (&right.allowed, right.wanted) {
            (Known::Known(true), true) => Finding::ok(check, format!("may {}", right.what)),
            (Known::Known(false), false) => {
                Finding::ok(check, format!("may not, as it should be: {}", right.what))
            }
            (Known::Known(false), true) => {
                Finding::fault(check, format!("may not, but must: {}", right.what), &right.mend)
            }
            (Known::Known(true), false) => Finding::warning(
                check,
                format!("may, but a watcher should not: {}", right.what),
                &right.mend,
            ),
            (Known::Unknown(why) | Known::Absent(why), true) => {
                Finding::fault(check, format!("{}: not known, {why}", right.what), &right.mend)
            }
            (Known::Unknown(why) | Known::Absent(why), false) => {
                Finding::warning(check, format!("{}: not known, {why}", right.what), &right.mend)
            }
        });
    judged.collect()
}

fn seen(check: &str, pass: &Pass, locks: usize) -> Vec<Finding> {
    let sources = pass.sources.len();
    let mut findings = vec![Finding::ok(
        check,
        format!(
            "{} seen in {}",
            domain::human::counted(locks as u64, "lock", "locks"),
            domain::human::counted(sources as u64, "source", "sources")
        ),
    )];
    for source in &pass.sources {
        if let Some(fault) = &source.fault {
            let found = format!("{} cannot be read whole", source.source);
            findings.push(Finding::fault(check, found, fault));
        } else if source.coverage != Coverage::Complete {
            findings.push(Finding::warning(
                check,
                format!("{} was seen in part within the budget", source.source),
                "raise `budget` of this backend, or narrow what it lists",
            ));
        }
    }
    if let Known::Known(reading) = &pass.clock {
        findings.push(finding::clock(check, reading.offset_ms(), reading.error_ms));
    }
    findings
}
