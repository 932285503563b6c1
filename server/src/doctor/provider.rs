//! Checks of the identity provider, as for a sign-in.

use super::certificates;
use super::check_result::Finding;
use crate::identity::limits::SKEW_MAX;
use crate::identity::oidc::check::{self, ProviderInspection};
use config::Config;
use runtime::clock::Clock;

const CHECK: &str = "oidc";

pub(super) async fn examine(config: &Config, clock: &Clock) -> Vec<Finding> {
    let Some(oidc) = &config.access.oidc else {
        return Vec::new();
    };
    let mut findings: Vec<Finding> = certificates::check_provider(oidc, clock.now().wall)
        .into_iter()
        .collect();
    match check::inspect(oidc).await {
        Ok(inspected) => {
            let keys = domain::format::counted(inspected.keys as u64, "key", "keys");
            findings.push(Finding::ok(
                CHECK,
                format!(
                    "{} serves its discovery document and {keys} for signatures",
                    oidc.issuer
                ),
            ));
            findings.extend(clocks(&inspected, clock));
        }
        Err(unfit) => findings.push(Finding::fault(CHECK, unfit.why, unfit.remedy)),
    }
    findings
}

/// A larger difference makes every sign-in fail.
fn clocks(inspected: &ProviderInspection, clock: &Clock) -> Option<Finding> {
    let apart = inspected.now? - clock.now().wall;
    let most = i64::try_from(SKEW_MAX.as_secs()).unwrap_or(i64::MAX);
    let side = if apart.num_seconds() < 0 {
        "behind"
    } else {
        "ahead of"
    };
    let found = format!(
        "its clock is {} s {side} this server's",
        apart.num_seconds().abs()
    );
    let remedy = "timedatectl set-ntp true # on the machine whose clock is wrong";
    Some(match apart.num_seconds().abs() {
        s if s > most => Finding::fault(CHECK, format!("{found}: every sign-in fails"), remedy),
        s if s > most / 2 => Finding::warning(CHECK, found, remedy),
        _ => Finding::ok(CHECK, found),
    })
}
