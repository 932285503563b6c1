//! `leasehold doctor`: checks everything that a server depends on; each fault has a remedy.

use std::path::PathBuf;
use std::process::ExitCode;

use super::exit_code::Exit;
use super::output::{print, report};
use crate::doctor::{self, Finding, Level};
use config::{Config, ConfigErrors, ConfigSources};
use runtime::clock::Clock;

/// Check configuration, store, disk, clocks and backends, and show a remedy for each fault. Changes nothing.
#[derive(Debug, clap::Args)]
#[command(after_help = concat!(
    "Connects to every backend as the console does and checks the account, its permissions and one scan. Safe next\n",
    "to a running server. Secrets are never shown.\n\n",
    "Examples:\n",
    "  leasehold doctor --config leasehold.toml\n",
    "  leasehold doctor --json | jq -r '.findings[] | select(.level == \"fault\") | .remedy'\n\n",
    "Exit codes: 0 no fault (warnings are possible), 1 a fault, 2 wrong usage or configuration.",
))]
pub struct Args {
    /// Configuration file [default: leasehold.toml in the current folder, if it exists]
    #[arg(long, value_name = "FILE", env = "LEASEHOLD_CONFIG")]
    config: Option<PathBuf>,
    /// Print JSON: {ok, faults, warnings, findings: [{check, level, found, remedy?}]}
    #[arg(long)]
    json: bool,
}

/// # Errors
/// Standard output cannot be written.
pub async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let sources = ConfigSources::gather(args.config.as_deref(), Vec::new());
    let file = sources
        .as_ref()
        .ok()
        .and_then(|sources| sources.file.as_ref())
        .map(|file| file.path.display().to_string());
    let (findings, exit) = match sources.and_then(|sources| Config::load(&sources)) {
        Ok(config) => {
            let read = file.map_or_else(
                || "no file, only the environment".to_owned(),
                |file| format!("{file}, then the environment"),
            );
            let mut findings = vec![Finding::ok("configuration", format!("no errors: {read}"))];
            findings.extend(Box::pin(doctor::examine(&config, &Clock::start())).await);
            let exit = match worst(&findings) {
                Level::Fault => Exit::Failure,
                Level::Ok | Level::Warning => Exit::Ok,
            };
            (findings, exit)
        }
        Err(errors) => (misconfigured(&errors), Exit::Usage),
    };
    print(&if args.json {
        json(&findings)
    } else {
        text(&findings)
    })?;
    if exit != Exit::Ok {
        report(&counted(&findings));
    }
    Ok(exit.into())
}

fn misconfigured(errors: &ConfigErrors) -> Vec<Finding> {
    let finding = |error: &config::ConfigError| {
        let found = match error.key.as_str() {
            "" => format!("{}: {}", error.origin, error.message),
            key => format!("{}: {key}: {}", error.origin, error.message),
        };
        Finding::fault("configuration", found, &error.remedy)
    };
    errors.0.iter().map(finding).collect()
}

fn worst(findings: &[Finding]) -> Level {
    findings
        .iter()
        .map(|finding| finding.level)
        .max()
        .unwrap_or(Level::Ok)
}

fn number(findings: &[Finding], level: Level) -> u64 {
    findings.iter().filter(|finding| finding.level == level).count() as u64
}

fn counted(findings: &[Finding]) -> String {
    let faults = domain::format::counted(number(findings, Level::Fault), "fault", "faults");
    let warnings = domain::format::counted(number(findings, Level::Warning), "warning", "warnings");
    format!("{faults}, {warnings}")
}

fn json(findings: &[Finding]) -> String {
    let answer = serde_json::json!({
        "ok": worst(findings) != Level::Fault,
        "faults": number(findings, Level::Fault),
        "warnings": number(findings, Level::Warning),
        "findings": findings,
    });
    format!("{answer:#}\n")
}

fn text(findings: &[Finding]) -> String {
    let width = findings
        .iter()
        .map(|finding| finding.check.chars().count())
        .max()
        .unwrap_or(0);
    let mut out = String::new();
    for finding in findings {
        let level = match finding.level {
            Level::Ok => "ok     ",
            Level::Warning => "warning",
            Level::Fault => "FAULT  ",
        };
        let found = domain::escape::visible(&finding.found);
        out.push_str(&format!("{level}  {:<width$}  {found}\n", finding.check));
        if let Some(remedy) = &finding.remedy {
            let remedy = domain::escape::visible(remedy);
            out.push_str(&format!("         {:<width$}  remedy: {remedy}\n", ""));
        }
    }
    out.push_str(&match worst(findings) {
        Level::Ok => format!("\nNo faults. {} checked.\n", doctor::subjects(findings)),
        _ => format!("\n{}.\n", counted(findings)),
    });
    out
}
