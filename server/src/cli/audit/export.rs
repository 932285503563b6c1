//! `leasehold audit export`

use std::process::ExitCode;

use clap::ValueEnum;
use domain::audit::{Action, AuditEntry, AuditQuery};

use super::super::exit_code::Exit;
use super::super::output::{print, report};
use super::LogLocation;
use crate::audit::Entry;
use crate::audit::export::{csv_header, csv_row};
use crate::http::dto::audit::AuditEntryDto;
use crate::identity::Principal;

const ROWS_OF_ONE_PAGE: u32 = 1_000;

/// Write the audit log to standard output, newest first. The export is recorded in the audit log.
#[derive(Debug, clap::Args)]
#[command(after_help = concat!(
    "Example:\n  leasehold audit export --format csv --prefix tenant_123: > audit.csv\n\n",
    "Exit codes: 0 done, 1 failure, 2 wrong usage or configuration.",
))]
pub(super) struct Args {
    #[command(flatten)]
    place: LogLocation,
    /// csv for spreadsheets, json for one object per line
    #[arg(long, value_name = "FORMAT", default_value = "json")]
    format: Format,
    /// Only resources that begin with this prefix
    #[arg(long, value_name = "PREFIX")]
    prefix: Option<String>,
    /// Only actions of this user or token, by id or name
    #[arg(long, value_name = "ACTOR")]
    actor: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Csv,
    Json,
}

pub(super) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let audit = match args.place.open().await {
        Ok(audit) => audit,
        Err(exit) => return Ok(exit.into()),
    };
    let exported = match audit.append(entry(&args)).await {
        Ok(exported) => exported,
        Err(error) => {
            report(&format!(
                "the export cannot be recorded in the audit log, so nothing was exported: {error}"
            ));
            return Ok(Exit::Failure.into());
        }
    };
    if args.format == Format::Csv {
        print(&csv_header())?;
    }
    let mut query = AuditQuery {
        prefix: args.prefix,
        actor: args.actor,
        limit: ROWS_OF_ONE_PAGE,
        before_seq: Some(exported.seq),
        ..AuditQuery::default()
    };
    loop {
        let page = match audit.page(&query).await {
            Ok(page) => page,
            Err(error) => {
                report(&format!("cannot read the audit log: {error}"));
                return Ok(Exit::Failure.into());
            }
        };
        let lines: Vec<String> = page.rows.into_iter().map(|row| line(args.format, row)).collect();
        print(&lines.concat())?;
        query.before_seq = page.next_cursor.and_then(|cursor| cursor.parse().ok());
        if query.before_seq.is_none() {
            return Ok(Exit::Ok.into());
        }
    }
}

fn entry(args: &Args) -> Entry {
    let who = Principal::system("command line");
    let filters = serde_json::json!({"prefix": args.prefix, "actor": args.actor});
    let format = match args.format {
        Format::Csv => "csv",
        Format::Json => "json",
    };
    Entry {
        after: Some(serde_json::json!({"format": format, "filters": filters})),
        ..Entry::new(Action::AuditExport, "ok", who.actor(None), who.origin)
    }
}

fn line(format: Format, row: AuditEntry) -> String {
    match format {
        Format::Csv => csv_row(&row),
        Format::Json => AuditEntryDto::from(row).line(),
    }
}
