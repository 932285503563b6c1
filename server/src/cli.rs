//! The command line: what can be asked, and with which exit code it ends.
//!
//! Owns arguments and what is printed. What commands do lives in the modules that they call.

pub mod audit;
pub mod bench;
pub mod check_config;
mod client;
pub mod demo;
mod exit;
pub mod locks;
mod output;
pub mod people;
pub mod rules;
pub mod run;
pub mod serve;
mod sse;
mod table;
mod terminal;
pub mod unlock;
mod watch;
mod width;
pub mod wire;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

pub use exit::Exit;
pub use output::report;

/// The operator console for distributed locks.
#[derive(Debug, Parser)]
#[command(name = "leasehold", version, after_help = concat!(
    "Exit codes: 0 done, 1 failure, 2 wrong usage or configuration, 3 server unreachable,\n",
    "4 done, but some backend is stale, down or seen in part. `run` and `unlock` have their own.",
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
    Gate(run::gate::Args),
    #[command(name = "run-guard", hide = true)]
    Watcher(run::watcher::Args),
    CheckConfig(check_config::Args),
    User(people::user::Args),
    Token(people::token::Args),
    Audit(audit::Args),
    Rules(rules::Args),
    Bench(bench::Args),
}

impl Cli {
    /// What runs without our runtime and without TLS: the two small processes beside a command under a lease.
    pub fn run_bare(&self) -> Option<ExitCode> {
        match &self.command {
            Command::Gate(args) => Some(run::gate::run(args)),
            Command::Watcher(args) => Some(run::watcher::run(args)),
            _ => None,
        }
    }

    /// # Errors
    /// What no command expects; expected failures are reported and have an exit code.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        match self.command {
            Command::Serve(args) => Box::pin(serve::run(args)).await,
            Command::Demo(args) => Box::pin(demo::run(args)).await,
            Command::Locks(args) => Box::pin(locks::run(args)).await,
            Command::Unlock(args) => Box::pin(unlock::run(args)).await,
            Command::Run(args) => Box::pin(run::run(args)).await,
            Command::Gate(_) | Command::Watcher(_) => anyhow::bail!("this process needs no runtime"),
            Command::CheckConfig(args) => check_config::run(&args),
            Command::User(args) => Box::pin(people::user::run(args)).await,
            Command::Token(args) => Box::pin(people::token::run(args)).await,
            Command::Audit(args) => Box::pin(audit::run(args)).await,
            Command::Rules(args) => Box::pin(rules::run(args)).await,
            Command::Bench(args) => Box::pin(bench::run(args)).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn every_command_has_an_example_and_its_exit_codes_in_its_help() {
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
}
