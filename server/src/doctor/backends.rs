//! Checks of each backend through its adapter: connection, version, permissions of the account, clock, scan.

use domain::duration::millis;
use domain::observation::Coverage;
use domain::reported::Reported;

use super::certificates;
use super::check_result::{self, Finding};
use backends::factory::connect;
use backends::{Backend, BackendError, Batch, Budget, Pass, Probe, Sink};
use config::BackendConfig;
use runtime::clock::Clock;

/// Counts the locks of a scan.
#[derive(Default)]
struct Counted(usize);

impl Sink for Counted {
    fn accept(&mut self, batch: Batch) {
        self.0 += batch.locks.len();
    }
}

pub(super) async fn examine(config: &BackendConfig, clock: &Clock) -> Vec<Finding> {
    let check = format!("backend {}", config.name);
    let mut findings = certificates::check_backend(config, clock.now().wall);
    let backend = connect(config, clock);
    let probed = tokio::time::timeout(config.timeout, backend.probe()).await;
    let probe = match probed.unwrap_or_else(|_| Err(timeout_error(config.timeout))) {
        Ok(probe) => probe,
        Err(error) => {
            findings.push(Finding::fault(&check, error.to_string(), error.remedy()));
            return findings;
        }
    };
    findings.push(reached_finding(&check, &*backend, &probe));
    findings.extend(permission_findings(&check, &probe));
    let mut counted = Counted::default();
    let budget = Budget {
        time_max: config.scan_timeout,
    };
    let timeout = config.scan_timeout + config.timeout;
    let passed = tokio::time::timeout(timeout, backend.observe(budget, &mut counted)).await;
    match passed.unwrap_or_else(|_| Err(timeout_error(timeout))) {
        Ok(pass) => findings.extend(scan_findings(&check, &pass, counted.0)),
        Err(error) => findings.push(Finding::fault(&check, error.to_string(), error.remedy())),
    }
    findings
}

fn timeout_error(after: std::time::Duration) -> BackendError {
    BackendError::NoAnswer {
        after_ms: millis(after).unsigned_abs(),
    }
}

fn reached_finding(check: &str, backend: &dyn Backend, probe: &Probe) -> Finding {
    let version = match &probe.version {
        Reported::Value(version) => version.clone(),
        Reported::Unknown(why) | Reported::NotApplicable(why) => format!("version unknown: {why}"),
    };
    Finding::ok(check, format!("reached at {}: {version}", backend.address()))
}

fn permission_findings(check: &str, probe: &Probe) -> Vec<Finding> {
    let findings = probe
        .rights
        .iter()
        .map(|right| match (&right.allowed, right.wanted) {
            (Reported::Value(true), true) => Finding::ok(check, format!("may {}", right.what)),
            (Reported::Value(false), false) => {
                Finding::ok(check, format!("denied, as intended: {}", right.what))
            }
            (Reported::Value(false), true) => Finding::fault(
                check,
                format!("missing permission: {}", right.what),
                &right.remedy,
            ),
            (Reported::Value(true), false) => Finding::warning(
                check,
                format!("excess permission for a read-only account: {}", right.what),
                &right.remedy,
            ),
            (Reported::Unknown(why) | Reported::NotApplicable(why), true) => {
                Finding::fault(check, format!("{}: unknown, {why}", right.what), &right.remedy)
            }
            (Reported::Unknown(why) | Reported::NotApplicable(why), false) => {
                Finding::warning(check, format!("{}: unknown, {why}", right.what), &right.remedy)
            }
        });
    findings.collect()
}

fn scan_findings(check: &str, pass: &Pass, locks: usize) -> Vec<Finding> {
    let sources = pass.sources.len();
    let mut findings = vec![Finding::ok(
        check,
        format!(
            "{} seen in {}",
            domain::format::counted(locks as u64, "lock", "locks"),
            domain::format::counted(sources as u64, "source", "sources")
        ),
    )];
    for source in &pass.sources {
        if let Some(fault) = &source.fault {
            let found = format!("{} cannot be read completely", source.source);
            findings.push(Finding::fault(check, found, fault));
        } else if source.coverage != Coverage::Complete {
            findings.push(Finding::warning(
                check,
                format!("{} was read only partly within `scan_timeout`", source.source),
                "raise `scan_timeout` of this backend, or narrow its `patterns`, `prefixes` or lease tables",
            ));
        }
    }
    if let Reported::Value(reading) = &pass.clock {
        findings.push(check_result::clock(check, reading.offset_ms(), reading.error_ms));
    }
    findings
}
