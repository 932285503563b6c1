//! `leasehold locks`: the inventory of a running server, as a table or as JSON.

use std::process::ExitCode;

use clap::builder::PossibleValuesParser;
use domain::format;
use domain::query::{Sort, SortKey};
use domain::state::LockState;

use super::api_types::{Backend, Lock, Page};
use super::client::Client;
use super::connection::Connection;
use super::exit_code::Exit;
use super::output::{print, report};
use super::table::{self, RenderOptions};
use super::{terminal, watch};

/// List the locks that a running server sees.
#[derive(Debug, clap::Args)]
#[command(after_help = concat!(
    "Unknown values are shown as `unknown`, a lower bound with ≥, an upper bound with ≤.\n\n",
    "Examples:\n",
    "  leasehold locks --prefix tenant_123: --state not_renewing\n",
    "  leasehold locks --backend cache --sort=-held --limit 20 --watch\n",
    "  leasehold locks --json | jq '.locks[].resource'\n\n",
    "Exit codes: 0 done, 1 failure, 2 wrong usage, 3 server unreachable,\n",
    "4 done, but a backend is stale, down or partly read: standard error says which.",
))]
pub struct Args {
    /// Only resources that begin with this prefix
    #[arg(long, value_name = "PREFIX")]
    pub prefix: Option<String>,
    /// Only this backend; may be given several times
    #[arg(long, value_name = "NAME")]
    pub backend: Vec<String>,
    /// Only this state; may be given several times
    #[arg(long, value_name = "STATE", hide_possible_values = false, value_parser = PossibleValuesParser::new(LockState::ALL.map(LockState::as_str)))]
    pub state: Vec<String>,
    /// Only locks held by this owner; may be given several times
    #[arg(long, value_name = "OWNER")]
    pub owner: Vec<String>,
    /// resource, held, remaining, waiters or state; with - before it, descending [default: -state, worst first]
    #[arg(long, value_name = "ORDER", allow_hyphen_values = true, value_parser = parse_sort)]
    pub sort: Option<Sort>,
    /// Maximum number of rows
    #[arg(long, value_name = "ROWS", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: u32,
    /// Print JSON: {locks, total, complete, backends}; with --watch, one object per line
    #[arg(long)]
    pub json: bool,
    /// Show changes until Ctrl-C
    #[arg(long)]
    pub watch: bool,
    #[command(flatten)]
    pub connection: Connection,
    /// No colours; the variable has this effect with any value except an empty one
    #[arg(long, env = "NO_COLOR", hide_env_values = true, value_name = "ANY", num_args = 0..=1, require_equals = true, default_missing_value = "1")]
    pub no_color: Option<String>,
}

fn parse_sort(text: &str) -> Result<Sort, String> {
    Sort::parse(text).ok_or_else(|| {
        format!(
            "one of {}, with - before it for descending",
            SortKey::ALL.map(SortKey::as_str).join(", ")
        )
    })
}

impl Args {
    pub(super) fn query(&self) -> Vec<(&'static str, String)> {
        let mut pairs = Vec::new();
        pairs.extend(self.backend.iter().map(|name| ("backend", name.clone())));
        pairs.extend(self.prefix.iter().map(|prefix| ("prefix", prefix.clone())));
        pairs.extend(self.owner.iter().map(|owner| ("owner", owner.clone())));
        pairs.extend(self.state.iter().map(|state| ("state", state.clone())));
        pairs.extend(self.sort.iter().map(|sort| ("sort", sort.to_query_value())));
        pairs
    }

    pub(super) fn limit(&self) -> usize {
        self.limit as usize
    }

    pub(super) fn render_options(&self) -> RenderOptions {
        RenderOptions {
            colour: terminal::colour(self.no_color.as_deref()),
            columns: terminal::size().map(|(columns, _)| columns),
            ..RenderOptions::default()
        }
    }
}

/// # Errors
/// Standard output cannot be written.
pub async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let client = match Client::new(&args.connection) {
        Ok(client) => client,
        Err(error) => {
            report(&error.to_string());
            return Ok(error.exit().into());
        }
    };
    if args.watch {
        return watch::run(&args, client).await;
    }
    let page = match client.inventory(&args.query(), args.limit()).await {
        Ok(page) => page,
        Err(error) => {
            report(&error.to_string());
            return Ok(error.exit().into());
        }
    };
    if args.json {
        print(&json(&page))?;
    } else if !page.locks.is_empty() {
        let rows: Vec<Lock> = page.locks.iter().map(Lock::parse).collect();
        print(&(table::locks(&rows, args.render_options()).join("\n") + "\n"))?;
    }
    remarks(&page, args.json).iter().for_each(|remark| report(remark));
    Ok(if page.complete { Exit::Ok } else { Exit::Incomplete }.into())
}

/// All pages as one object, on one line.
pub(super) fn json(page: &Page) -> String {
    let Page {
        locks,
        total,
        complete,
        backends,
        ..
    } = page;
    let answer =
        serde_json::json!({"locks": locks, "total": total, "complete": complete, "backends": backends});
    format!("{answer}\n")
}

/// Remarks below the table: no match, more rows, or incomplete data.
fn remarks(page: &Page, json: bool) -> Vec<String> {
    let mut remarks = Vec::new();
    let shown = page.locks.len() as u64;
    if !json && shown == 0 && page.complete {
        remarks.push("no lock matches".to_owned());
    } else if !json && shown == 0 {
        remarks.push("no matching lock was found, but the view is incomplete".to_owned());
    } else if !json && shown < page.total {
        remarks.push(format!(
            "{} of {} shown; --limit shows more",
            format::count(shown),
            format::counted(page.total, "lock", "locks")
        ));
    }
    remarks.extend(incomplete(page));
    remarks
}

/// One sentence for each backend that is not live; at least one if the data is incomplete.
pub(super) fn incomplete(page: &Page) -> Vec<String> {
    if page.complete {
        return Vec::new();
    }
    let backends: Vec<Backend> = page.backends.iter().map(Backend::parse).collect();
    let mut sentences: Vec<String> = backends
        .iter()
        .filter(|backend| !backend.is_live())
        .map(sentence)
        .collect();
    if sentences.is_empty() {
        sentences
            .push("the view is incomplete; the server does not report which backend is missing".to_owned());
    }
    sentences
}

fn sentence(backend: &Backend) -> String {
    let status = backend.status.as_deref().unwrap_or("unknown");
    let mut text = match status {
        "partial" => format!("{} was read only partly", backend.name),
        "starting" => format!("{} has not been read yet", backend.name),
        _ => format!("{} is {status}", backend.name),
    };
    if let Some(why) = backend.why() {
        text.push_str(&format!(": {why}"));
    }
    if let Some(age) = backend.age_ms {
        text.push_str(&format!(" (last seen {} ago)", format::duration(age)));
    }
    if let Some(remedy) = backend.remedy() {
        text.push_str(&format!(". Remedy: {remedy}"));
    }
    domain::escape::visible(&text).into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn page(locks: usize, total: u64, complete: bool, backends: &serde_json::Value) -> Page {
        let locks = vec![json!({"resource": "a"}); locks];
        serde_json::from_value(
            json!({"locks": locks, "total": total, "complete": complete, "backends": backends}),
        )
        .unwrap()
    }

    #[test]
    fn an_empty_table_never_hides_a_backend_that_is_down() {
        // An empty result, with all backends live and with one down: only the first states that no lock matches.
        let live = json!([{"name": "cache", "status": "live", "ageMs": 200}]);
        assert_eq!(remarks(&page(0, 0, true, &live), false), ["no lock matches"]);
        let down = json!([{"name": "cache", "status": "live"},
            {"name": "coord", "status": "down", "ageMs": 14_000,
                "error": {"message": "cannot connect", "remedy": "start it"}}]);
        let expected = [
            "no matching lock was found, but the view is incomplete",
            "coord is down: cannot connect (last seen 14.0 s ago). Remedy: start it",
        ];
        assert_eq!(remarks(&page(0, 0, false, &down), false), expected);
    }

    #[test]
    fn omitted_rows_and_partial_backends_are_reported() {
        // One of two thousand shown; the coverage has the reason; a hostile reason cannot move the cursor.
        let part = json!([{"name": "cache", "status": "partial",
            "coverage": {"partial": {"seen": 5, "of": 10, "why": "the scan timed out\u{1b}[2J"}}}]);
        let printed = remarks(&page(1, 2000, false, &part), false);
        assert_eq!(printed[0], "1 of 2,000 locks shown; --limit shows more");
        assert_eq!(
            printed[1],
            "cache was read only partly: the scan timed out\\u{1b}[2J"
        );
        assert_eq!(remarks(&page(1, 2000, true, &part), true), Vec::<String>::new());
    }

    #[test]
    fn an_incomplete_view_without_a_reason_is_reported() {
        // `complete` is false, and no backend is named.
        assert_eq!(incomplete(&page(0, 0, false, &json!([]))).len(), 1);
    }
}
