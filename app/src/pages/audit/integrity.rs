//! Verification status of the hash chain in one line of facts, or the first bad entry.

use leptos::prelude::*;

use crate::components::relative_time::age;
use crate::format;
use crate::pages::audit::data::ChainStatus;

fn count(rows: i64) -> String {
    format::count(rows.unsigned_abs())
}

pub(super) fn chain_title(chain: &ChainStatus, is_down: bool) -> String {
    match (&chain.fault, is_down, chain.checked_at) {
        (Some((row, _)), _, _) => format!("Audit log: chain broken at entry {row}"),
        (None, true, _) => "Audit log: unavailable".to_owned(),
        (None, false, Some(_)) if chain.verified > 0 => {
            format!("Audit log: chain verified through entry {}", chain.verified)
        }
        (None, false, _) => "Audit log: verification in progress".to_owned(),
    }
}

pub(super) fn chain_facts(chain: &ChainStatus, now: i64) -> AnyView {
    let (new, all) = &chain.intervals;
    let fault = chain.fault.as_ref().map(|(row, why)| {
        view! {
            <p class="notice critical" role="alert">
                <span>
                    "The chain breaks: "{why.clone()}". Later entries cannot be verified. Keep the store unchanged and compare it "
                    "with the exported checkpoints: "<code>"leasehold audit verify --checkpoints FILE"</code>"."
                </span>
                <a class="link" href=format!("/audit/{row}")>{format!("Entry {row}")}</a>
            </p>
        }
    });
    let unverified = chain.last.map_or(0, |last| last - chain.verified).max(0);
    let up_to = if chain.verified == 0 {
        "none yet".to_owned()
    } else {
        format!("1 to {}", chain.verified)
    };
    let unverified = match (unverified, chain.checked_at) {
        (0, _) => "no entry left to verify".to_owned(),
        (rows, None) => format!("{} not verified yet", count(rows)),
        (rows, Some(_)) => format!(
            "{} added since",
            format::counted(rows.unsigned_abs(), "entry", "entries")
        ),
    };
    let store_fault = chain
        .is_unreadable
        .then_some("the store did not answer at the last check");
    let head = if chain.verified == 0 {
        "none".to_owned()
    } else {
        chain.hash.clone()
    };
    view! {
        {fault}
        <dl class="facts chain" class:is-stale=chain.is_unreadable>
            <div><dt>"verified entries"</dt><dd>{up_to}<small>{unverified}</small></dd></div>
            <div><dt>"last verified"</dt><dd>{age(chain.checked_at, now, "not yet")}<small>{store_fault.map_or_else(|| format!("new entries every {new}"), str::to_owned)}</small></dd></div>
            <div><dt>"full check"</dt><dd>{age(chain.walked_at, now, "under way")}<small>{format!("again every {all}, and at each start")}</small></dd></div>
            <div class="head"><dt>"chain head"</dt><dd class="mono">{head}<small>"hash of the last verified entry"</small></dd></div>
        </dl>
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_title_names_the_worst_finding() {
        // A bad entry takes precedence, then a failing store, then an incomplete verification.
        let intact = ChainStatus {
            verified: 12,
            checked_at: Some(1),
            ..ChainStatus::default()
        };
        assert_eq!(
            chain_title(&intact, false),
            "Audit log: chain verified through entry 12"
        );
        assert!(chain_title(&intact, true).ends_with("unavailable"));
        assert!(chain_title(&ChainStatus::default(), false).ends_with("in progress"));
        let fault = ChainStatus {
            fault: Some((5, "row 5 was changed".to_owned())),
            ..intact
        };
        assert!(chain_title(&fault, true).contains("broken at entry 5"));
    }
}
