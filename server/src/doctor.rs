//! Looks at everything that this server stands on and says what is wrong with it, each fault with the line that mends it.
//!
//! **Invariant:** it changes nothing: no table, no file, no lock. A healthy installation may be looked at while it serves.

mod backends;
mod certificates;
mod disk;
mod door;
pub mod finding;
mod provider;
mod receivers;
mod secrets;
mod store;
mod x509;

use std::collections::BTreeSet;

use crate::clock::Clock;
use crate::config::{Config, otel};

pub use finding::{Finding, Level};

/// Everything, in the order in which a server starts.
pub async fn examine(config: &Config, clock: &Clock) -> Vec<Finding> {
    let now = clock.now().wall;
    let mut findings = door::examine(config).await;
    findings.extend(certificates::own(config, now));
    findings.extend(Box::pin(store::examine(config, clock)).await);
    findings.extend(Box::pin(secrets::examine(config)).await);
    findings.extend(Box::pin(provider::examine(config, clock)).await);
    findings.extend(Box::pin(receivers::examine(config)).await);
    findings.extend(telemetry(now));
    let asked = config.backends.iter().map(|one| backends::examine(one, clock));
    for of_one in futures::future::join_all(asked).await {
        findings.extend(of_one);
    }
    if config.backends.is_empty() {
        findings.push(Finding::warning(
            "backends",
            "no [[backend]] is configured: the console will show its own leases alone",
            "add a [[backend]]; docs/configuration.md shows one of each kind",
        ));
    }
    findings
}

fn telemetry(now: chrono::DateTime<chrono::Utc>) -> Vec<Finding> {
    match otel::of_process() {
        Ok(otel) => certificates::of_collectors(&otel, now),
        Err(error) => vec![Finding::fault(
            "telemetry",
            format!("{}: {}", error.variable, error.why),
            error.mend,
        )],
    }
}

/// What was looked at, for a closing line.
pub fn subjects(findings: &[Finding]) -> usize {
    findings
        .iter()
        .map(|one| &one.check)
        .collect::<BTreeSet<_>>()
        .len()
}
