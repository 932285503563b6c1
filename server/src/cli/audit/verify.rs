//! `leasehold audit verify`

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use super::super::exit_code::Exit;
use super::super::output::{print, report};
use super::super::terminal;
use super::Place;
use crate::audit::checkpoints;

/// Verify every entry of the audit log and report the first invalid one.
#[derive(Debug, clap::Args)]
#[command(after_help = concat!(
    "Without --heads a record that was cut at its end, or rewritten as a whole, looks the same as an intact one.\n\n",
    "Example:\n  leasehold audit verify --config leasehold.toml --heads audit-heads.copy\n\n",
    "Exit codes: 0 intact, 1 failure or a fault was found, 2 wrong usage or configuration.",
))]
pub(super) struct Args {
    #[command(flatten)]
    place: Place,
    /// Copy of the checkpoint file, `row hash` per line, from a place that writers of the store cannot change
    #[arg(long, value_name = "FILE")]
    heads: Option<PathBuf>,
    /// Print JSON: {ok, rows, head, heads, fault: {row, kind, why}}
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let heads = match args.heads.as_deref().map(checkpoints::read).transpose() {
        Ok(heads) => heads.unwrap_or_default(),
        Err(error) => {
            report(&format!("cannot read the exported heads: {error}"));
            return Ok(Exit::Usage.into());
        }
    };
    let audit = match args.place.open().await {
        Ok(audit) => audit,
        Err(exit) => return Ok(exit.into()),
    };
    let shows = terminal::is_terminal() && !args.json;
    let progress = move |rows: i64| {
        if shows {
            report(&format!("{rows} rows so far"));
        }
    };
    let found = match audit.verify(&heads, progress).await {
        Ok(found) => found,
        Err(error) => {
            report(&format!("cannot read the audit log: {error}"));
            return Ok(Exit::Failure.into());
        }
    };
    if args.json {
        print(&format!("{:#}\n", json(&found)))?;
    } else {
        print(&text(&found, &heads))?;
    }
    Ok(if found.is_ok() { Exit::Ok } else { Exit::Failure }.into())
}

type Found = Result<crate::audit::verify::Verified, crate::audit::verify::ChainFault>;

fn text(found: &Found, heads: &BTreeMap<i64, Vec<String>>) -> String {
    match found {
        Ok(verified) => {
            let rows = verified.rows;
            let against = if heads.is_empty() {
                "no exported head to compare with: removed final entries would not be detected".to_owned()
            } else {
                format!("{} exported heads found again", verified.heads)
            };
            format!("{rows} entries verified; {against}\nhead {}\n", verified.head)
        }
        Err(fault) => format!("NOT intact: {fault}\n"),
    }
}

fn json(found: &Found) -> serde_json::Value {
    match found {
        Ok(verified) => serde_json::json!({
            "ok": true, "rows": verified.rows, "head": verified.head, "heads": verified.heads,
        }),
        Err(fault) => serde_json::json!({
            "ok": false, "fault": {"row": fault.seq, "kind": fault.kind.as_str(), "why": fault.to_string()},
        }),
    }
}
