//! Verification status of the hash chain in one line of facts, or the first bad entry.

use domain::format;
use leptos::prelude::*;

use crate::server_pages::settings::ago;

#[derive(Debug, Clone, Default)]
pub struct Chain {
    /// Entries 1 to this one are verified.
    pub rows: i64,
    pub hash: String,
    /// Milliseconds since 1970. `None`: the first verification is not complete.
    pub checked_at: Option<i64>,
    pub walked_at: Option<i64>,
    /// The first bad entry and its error.
    pub fault: Option<(i64, String)>,
    /// The last read failed.
    pub is_blind: bool,
    /// The newest entry.
    pub last: Option<i64>,
    /// Verification intervals for display: `5 s` and `6 h`.
    pub every: (String, String),
}

fn count(rows: i64) -> String {
    format::count(rows.unsigned_abs())
}

impl Chain {
    pub(super) fn title(&self, is_down: bool) -> String {
        match (&self.fault, is_down, self.checked_at) {
            (Some((row, _)), _, _) => format!("Audit log: chain broken at entry {row}"),
            (None, true, _) => "Audit log: unavailable".to_owned(),
            (None, false, Some(_)) if self.rows > 0 => {
                format!("Audit log: chain verified through entry {}", self.rows)
            }
            (None, false, _) => "Audit log: verification in progress".to_owned(),
        }
    }

    pub(super) fn view(&self, now: i64) -> AnyView {
        let (new, all) = &self.every;
        let fault = self.fault.as_ref().map(|(row, why)| {
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
        let behind = self.last.map_or(0, |last| last - self.rows).max(0);
        let up_to = if self.rows == 0 {
            "none yet".to_owned()
        } else {
            format!("1 to {}", self.rows)
        };
        let behind = match (behind, self.checked_at) {
            (0, _) => "the last entry".to_owned(),
            (rows, None) => format!("{} left", count(rows)),
            (rows, Some(_)) => format!(
                "{} since, verified within {new}",
                format::counted(rows.unsigned_abs(), "entry", "entries")
            ),
        };
        let blind = self.is_blind.then_some("the store did not answer the last time");
        let head = if self.rows == 0 {
            "none".to_owned()
        } else {
            self.hash.clone()
        };
        view! {
            {fault}
            <dl class="facts chain" class:is-stale=self.is_blind>
                <div><dt>"verified entries"</dt><dd>{up_to}<small>{behind}</small></dd></div>
                <div><dt>"last verified"</dt><dd>{ago(self.checked_at, now, "not yet")}<small>{blind.map_or_else(|| format!("new entries every {new}"), str::to_owned)}</small></dd></div>
                <div><dt>"full check"</dt><dd>{ago(self.walked_at, now, "under way")}<small>{format!("again every {all}, and at each start")}</small></dd></div>
                <div class="head"><dt>"chain head"</dt><dd class="mono">{head}<small>"hash of the last verified entry"</small></dd></div>
            </dl>
        }
        .into_any()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_title_names_the_worst_finding() {
        // A bad entry takes precedence, then a failing store, then an incomplete verification.
        let whole = Chain {
            rows: 12,
            checked_at: Some(1),
            ..Chain::default()
        };
        assert_eq!(whole.title(false), "Audit log: chain verified through entry 12");
        assert!(whole.title(true).ends_with("unavailable"));
        assert!(Chain::default().title(false).ends_with("in progress"));
        let fault = Chain {
            fault: Some((5, "row 5 was changed".to_owned())),
            ..whole
        };
        assert!(fault.title(true).contains("broken at entry 5"));
    }
}
