//! `leasehold audit verify`

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use super::super::exit_code::Exit;
use super::super::output::{print, report};
use super::super::terminal;
use super::LogLocation;
use crate::audit::checkpoints;

/// Verify every entry of the audit log and report the first invalid one.
#[derive(Debug, clap::Args)]
#[command(after_help = concat!(
    "Without --checkpoints a log whose end was truncated, or that was rewritten completely, looks intact.\n\n",
    "Example:\n  leasehold audit verify --config leasehold.toml --checkpoints audit-checkpoints.copy\n\n",
    "Exit codes: 0 intact, 1 failure or a fault was found, 2 wrong usage or configuration.",
))]
pub(super) struct Args {
    #[command(flatten)]
    place: LogLocation,
    /// Copy of the checkpoint file, `entry hash` per line, from a place that writers of the store cannot change
    #[arg(long, value_name = "FILE")]
    checkpoints: Option<PathBuf>,
    /// Print JSON: {ok, entries, lastHash, checkpoints, fault: {entry, kind, why}}
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let checkpoints = match args.checkpoints.as_deref().map(checkpoints::read).transpose() {
        Ok(checkpoints) => checkpoints.unwrap_or_default(),
        Err(error) => {
            report(&format!("cannot read the checkpoint file: {error}"));
            return Ok(Exit::Usage.into());
        }
    };
    let audit = match args.place.open().await {
        Ok(audit) => audit,
        Err(exit) => return Ok(exit.into()),
    };
    let shows = terminal::is_terminal() && !args.json;
    let progress = move |entries: i64| {
        if shows {
            report(&format!("{entries} entries verified"));
        }
    };
    let found = match audit.verify(&checkpoints, progress).await {
        Ok(found) => found,
        Err(error) => {
            report(&format!("cannot read the audit log: {error}"));
            return Ok(Exit::Failure.into());
        }
    };
    if args.json {
        print(&format!("{:#}\n", json(&found)))?;
    } else {
        print(&text(&found, &checkpoints))?;
    }
    Ok(if found.is_ok() { Exit::Ok } else { Exit::Failure }.into())
}

type Found = Result<crate::audit::verify::Verified, crate::audit::verify::ChainFault>;

fn text(found: &Found, checkpoints: &BTreeMap<i64, Vec<String>>) -> String {
    match found {
        Ok(verified) => {
            let entries = verified.entries;
            let against = if checkpoints.is_empty() {
                "without checkpoints a truncated log is not detected".to_owned()
            } else {
                format!("{} checkpoints match", verified.checkpoints)
            };
            format!(
                "{entries} entries verified; {against}\nhash of the last entry {}\n",
                verified.last_hash
            )
        }
        Err(fault) => format!("NOT intact: {fault}\n"),
    }
}

fn json(found: &Found) -> serde_json::Value {
    match found {
        Ok(verified) => serde_json::json!({
            "ok": true, "entries": verified.entries, "lastHash": verified.last_hash, "checkpoints": verified.checkpoints,
        }),
        Err(fault) => serde_json::json!({
            "ok": false, "fault": {"entry": fault.seq, "kind": fault.kind.as_str(), "why": fault.to_string()},
        }),
    }
}
