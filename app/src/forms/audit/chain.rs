//! How far the record is known to be as it was written, in one line of facts; or the first row that is not.

use domain::human;
use leptos::prelude::*;

use crate::forms::settings::ago;

#[derive(Debug, Clone, Default)]
pub struct Chain {
    /// Rows 1 to this one are verified.
    pub rows: i64,
    pub hash: String,
    /// Milliseconds since 1970. None: the first walk over the record is not over.
    pub checked_at: Option<i64>,
    pub walked_at: Option<i64>,
    /// The first bad row, and what is wrong with it.
    pub fault: Option<(i64, String)>,
    /// It could not be read the last time.
    pub is_blind: bool,
    /// Row that was written last.
    pub last: Option<i64>,
    /// How often, for people: `5 s` and `6 h`.
    pub every: (String, String),
}

fn count(rows: i64) -> String {
    human::count(rows.unsigned_abs())
}

impl Chain {
    pub(super) fn title(&self, is_down: bool) -> String {
        match (&self.fault, is_down, self.checked_at) {
            (Some((row, _)), _, _) => format!("Audit: row {row} is not as it was written"),
            (None, true, _) => "Audit: the record cannot be read".to_owned(),
            (None, false, Some(_)) if self.rows > 0 => {
                format!("Audit: as it was written, up to row {}", self.rows)
            }
            (None, false, _) => "Audit: the record is being verified".to_owned(),
        }
    }

    pub(super) fn view(&self, now: i64) -> AnyView {
        let (new, all) = &self.every;
        let fault = self.fault.as_ref().map(|(row, why)| {
            view! {
                <p class="notice critical" role="alert">
                    <span>
                        "The chain breaks: "{why.clone()}". From there on nothing in the record proves itself. Keep the store as it is, and compare it "
                        "with the heads that were exported: "<code>"leasehold audit verify --heads FILE"</code>"."
                    </span>
                    <a class="link" href=format!("/audit/{row}")>{format!("Row {row}")}</a>
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
            (0, _) => "which is the last one".to_owned(),
            (rows, None) => format!("{} to go", count(rows)),
            (rows, Some(_)) => format!(
                "{} since, verified within {new}",
                human::counted(rows.unsigned_abs(), "row", "rows")
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
                <div><dt>"verified rows"</dt><dd>{up_to}<small>{behind}</small></dd></div>
                <div><dt>"last verified"</dt><dd>{ago(self.checked_at, now, "not yet")}<small>{blind.map_or_else(|| format!("new rows every {new}"), str::to_owned)}</small></dd></div>
                <div><dt>"every row"</dt><dd>{ago(self.walked_at, now, "under way")}<small>{format!("again every {all}, and at each start")}</small></dd></div>
                <div class="head"><dt>"head of the chain"</dt><dd class="mono">{head}<small>"the hash of the last verified row"</small></dd></div>
            </dl>
        }
        .into_any()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_title_says_the_worst_first() {
        // A fault before all, then a store that is down, then a walk that is not over.
        let whole = Chain {
            rows: 12,
            checked_at: Some(1),
            ..Chain::default()
        };
        assert_eq!(whole.title(false), "Audit: as it was written, up to row 12");
        assert!(whole.title(true).ends_with("cannot be read"));
        assert!(Chain::default().title(false).ends_with("being verified"));
        let fault = Chain {
            fault: Some((5, "row 5 was changed".to_owned())),
            ..whole
        };
        assert!(fault.title(true).contains("row 5 is not"));
    }
}
