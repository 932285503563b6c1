//! The command line: commands, help and exit codes.
//!
//! Owns arguments and output. The work is done by the modules that the commands call.

pub mod accounts;
pub mod api_types;
pub mod audit;
pub mod check_config;
mod client;
pub mod completions;
pub mod connection;
pub mod demo;
pub mod doctor;
mod exit_code;
pub mod locks;
pub mod man;
pub mod migrate;
mod output;
pub mod rules;
pub mod run;
pub mod serve;
mod sse;
mod table;
mod terminal;
mod text_width;
pub mod unlock;
mod watch;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

pub use exit_code::Exit;
pub use output::report;

/// The operator console for distributed locks.
#[derive(Debug, Parser)]
#[command(name = "leasehold", version, after_help = concat!(
    "Examples:\n",
    "  leasehold doctor --config leasehold.toml\n",
    "  leasehold serve --config leasehold.toml\n",
    "  leasehold locks --state not_renewing\n",
    "  leasehold run --resource billing:close --ttl 30s -- ./close-month.sh\n\n",
    "Exit codes: 0 done, 1 failure, 2 wrong usage or configuration, 3 server unreachable,\n",
    "4 done, but a backend is stale, down or partly read. `run` and `unlock` have their own.",
))]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Serve(serve::Args),
    Demo(demo::Args),
    Locks(locks::Args),
    Unlock(unlock::Args),
    Run(run::Args),
    #[command(name = "run-command", hide = true)]
    Gate(run::exec_gate::Args),
    #[command(name = "run-guard", hide = true)]
    Watcher(run::watchdog::Args),
    CheckConfig(check_config::Args),
    Doctor(doctor::Args),
    Migrate(migrate::Args),
    User(accounts::user::Args),
    Token(accounts::token::Args),
    Audit(audit::Args),
    Rules(rules::Args),
    Completions(completions::Args),
    Man(man::Args),
}

impl Cli {
    /// Parses the arguments of the process and its environment. Exits after `--help` and after wrong usage.
    pub fn from_process() -> Self {
        let mut matches = ignore_empty_variables(Self::command()).get_matches();
        Self::from_arg_matches_mut(&mut matches)
            .unwrap_or_else(|error| error.format(&mut Self::command()).exit())
    }

    /// Commands that run without the async runtime and TLS: the two helper processes of `leasehold run`.
    pub fn run_bare(&self) -> Option<ExitCode> {
        match &self.command {
            Command::Gate(args) => Some(run::exec_gate::run(args)),
            Command::Watcher(args) => Some(run::watchdog::run(args)),
            _ => None,
        }
    }

    /// # Errors
    /// Unexpected failures only; expected ones are reported and have an exit code.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        match self.command {
            Command::Serve(args) => Box::pin(serve::run(args)).await,
            Command::Demo(args) => Box::pin(demo::run(args)).await,
            Command::Locks(args) => Box::pin(locks::run(args)).await,
            Command::Unlock(args) => Box::pin(unlock::run(args)).await,
            Command::Run(args) => Box::pin(run::run(args)).await,
            Command::Gate(_) | Command::Watcher(_) => anyhow::bail!("this process needs no runtime"),
            Command::CheckConfig(args) => check_config::run(&args),
            Command::Doctor(args) => Box::pin(doctor::run(args)).await,
            Command::Migrate(args) => Box::pin(migrate::run(args)).await,
            Command::User(args) => Box::pin(accounts::user::run(args)).await,
            Command::Token(args) => Box::pin(accounts::token::run(args)).await,
            Command::Audit(args) => Box::pin(audit::run(args)).await,
            Command::Rules(args) => Box::pin(rules::run(args)).await,
            Command::Completions(args) => completions::run(&args),
            Command::Man(args) => man::run(&args),
        }
    }
}

/// An empty variable counts as unset, as in the configuration.
fn ignore_empty_variables(command: clap::Command) -> clap::Command {
    let command = command.mut_args(|argument| {
        let is_empty = argument.get_env().is_some_and(config::is_empty_variable);
        if is_empty {
            argument.env(None::<&'static str>)
        } else {
            argument
        }
    });
    command.mut_subcommands(ignore_empty_variables)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_documents_an_example_and_its_exit_codes() {
        // clap's own consistency check, then the help of each command.
        let mut cli = Cli::command();
        cli.clone().debug_assert();
        for command in cli.get_subcommands_mut().filter(|command| !command.is_hide_set()) {
            let name = command.get_name().to_owned();
            let help = command.render_long_help().to_string();
            assert!(help.contains("Example"), "{help}");
            assert!(help.contains(&format!("  leasehold {name}")), "{help}");
            assert!(help.contains("Exit codes: 0 "), "{help}");
        }
    }

    #[test]
    fn exactly_the_existing_commands_are_documented() {
        // Compares docs/cli.md with clap: every command, in the order of `--help`, with `--json` where it exists.
        let page = include_str!("../../docs/cli.md");
        let (_, table) = page.split_once("## Commands").unwrap();
        let rows = table.split("## ").next().unwrap().lines();
        let rows = rows.filter_map(|line| {
            let (name, rest) = line.strip_prefix("| `leasehold ")?.split_once('`')?;
            let json = rest.trim_end_matches('|').rsplit('|').next()?.trim();
            Some((name.to_owned(), !json.is_empty()))
        });
        let documented: Vec<(String, bool)> = rows.collect();
        let mut cli = Cli::command();
        cli.build();
        let takes_json = |command: &clap::Command| {
            let takes = |command: &clap::Command| {
                command
                    .get_arguments()
                    .any(|argument| argument.get_id() == "json")
            };
            takes(command) || command.get_subcommands().any(takes)
        };
        let known = cli
            .get_subcommands()
            .filter(|subcommand| !subcommand.is_hide_set() && subcommand.get_name() != "help");
        let known: Vec<(String, bool)> = known
            .map(|subcommand| (subcommand.get_name().to_owned(), takes_json(subcommand)))
            .collect();
        assert_eq!(documented, known);
    }
}
