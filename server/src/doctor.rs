//! Checks everything that a server depends on and reports problems, each with a remedy.
//!
//! **Invariant:** it changes nothing: no table, no file, no lock. It can run next to a serving installation.

mod backends;
mod certificates;
pub mod check_result;
mod disk;
mod ingress;
mod lease_store;
mod provider;
mod receivers;
mod secrets;
mod store;
mod x509;

use std::collections::BTreeSet;

use config::{Config, otel};
use runtime::clock::Clock;

pub use check_result::{Finding, Level};

/// All checks, in the order in which a server starts.
pub async fn examine(config: &Config, clock: &Clock) -> Vec<Finding> {
    let now = clock.now().wall;
    let mut findings = ingress::examine(config).await;
    findings.extend(certificates::check_server(config, now));
    findings.extend(Box::pin(store::examine(config, clock)).await);
    findings.extend(Box::pin(lease_store::examine_lease_store(config, clock)).await);
    findings.extend(Box::pin(secrets::examine(config)).await);
    findings.extend(Box::pin(provider::examine(config, clock)).await);
    findings.extend(Box::pin(receivers::examine(config)).await);
    findings.extend(telemetry(now));
    let checks = config
        .backends
        .iter()
        .map(|backend| backends::examine(backend, clock));
    for of_one in futures::future::join_all(checks).await {
        findings.extend(of_one);
    }
    if config.backends.is_empty() {
        findings.push(Finding::warning(
            "backends",
            "no [[backend]] is configured: the console will show only its own leases",
            "add a [[backend]]; docs/configuration.md shows one of each kind",
        ));
    }
    findings
}

fn telemetry(now: chrono::DateTime<chrono::Utc>) -> Vec<Finding> {
    match otel::from_process() {
        Ok(otel) => certificates::check_collectors(&otel, now),
        Err(error) => vec![Finding::fault(
            "telemetry",
            format!("{}: {}", error.variable, error.why),
            error.remedy,
        )],
    }
}

/// Number of checked subjects, for the closing line.
pub fn subjects(findings: &[Finding]) -> usize {
    findings
        .iter()
        .map(|finding| &finding.check)
        .collect::<BTreeSet<_>>()
        .len()
}
