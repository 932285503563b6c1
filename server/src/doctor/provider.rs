//! The identity provider, as a sign-in would find it.

use super::certificates;
use super::finding::Finding;
use crate::clock::Clock;
use crate::config::Config;
use crate::identity::limits::SKEW_MAX;
use crate::identity::oidc::examine::{self, Examined};

const CHECK: &str = "oidc";

pub(super) async fn examine(config: &Config, clock: &Clock) -> Vec<Finding> {
    let Some(oidc) = &config.access.oidc else {
        return Vec::new();
    };
    let mut findings: Vec<Finding> = certificates::of_provider(oidc, clock.now().wall)
        .into_iter()
        .collect();
    match examine::examine(oidc).await {
        Ok(examined) => {
            let keys = domain::human::counted(examined.keys as u64, "key", "keys");
            findings.push(Finding::ok(
                CHECK,
                format!("{} describes itself, with {keys} that sign", oidc.issuer),
            ));
            findings.extend(clocks(&examined, clock));
        }
        Err(unfit) => findings.push(Finding::fault(CHECK, unfit.why, unfit.mend)),
    }
    findings
}

/// Beyond what a sign-in allows, each of them is refused.
fn clocks(examined: &Examined, clock: &Clock) -> Option<Finding> {
    let apart = examined.now? - clock.now().wall;
    let most = i64::try_from(SKEW_MAX.as_secs()).unwrap_or(i64::MAX);
    let side = if apart.num_seconds() < 0 {
        "behind"
    } else {
        "ahead of"
    };
    let found = format!("its clock is {} s {side} ours", apart.num_seconds().abs());
    let mend = "timedatectl set-ntp true # here and there, whichever clock is wrong";
    Some(match apart.num_seconds().abs() {
        s if s > most => Finding::fault(CHECK, format!("{found}: every sign-in would be refused"), mend),
        s if s > most / 2 => Finding::warning(CHECK, found, mend),
        _ => Finding::ok(CHECK, found),
    })
}
