//! `leasehold completions`: shell completions for commands, flags and values.

use std::process::ExitCode;

use clap::{Command, CommandFactory as _};
use clap_complete::{Shell, generate};

use super::Cli;
use super::exit_code::Exit;
use super::output::print;

/// Print completions for a shell.
#[derive(Debug, clap::Args)]
#[command(after_help = concat!(
    "Examples:\n",
    "  leasehold completions bash > /etc/bash_completion.d/leasehold\n",
    "  leasehold completions zsh > \"${fpath[1]}/_leasehold\"\n",
    "  leasehold completions fish > ~/.config/fish/completions/leasehold.fish\n\n",
    "Exit codes: 0 done, 1 failure, 2 wrong usage.",
))]
pub struct Args {
    #[arg(value_name = "SHELL")]
    shell: Kind,
}

/// The shells that are tested.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Kind {
    Bash,
    Zsh,
    Fish,
}

/// All commands except internal ones.
fn visible_command() -> Command {
    let all = Cli::command();
    let visible = all
        .get_subcommands()
        .filter(|subcommand| !subcommand.is_hide_set())
        .cloned();
    Command::new("leasehold")
        .version(env!("CARGO_PKG_VERSION"))
        .subcommands(visible.collect::<Vec<_>>())
}

/// # Errors
/// Standard output cannot be written.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let shell = match args.shell {
        Kind::Bash => Shell::Bash,
        Kind::Zsh => Shell::Zsh,
        Kind::Fish => Shell::Fish,
    };
    let mut out = Vec::new();
    generate(shell, &mut visible_command(), "leasehold", &mut out);
    print(&String::from_utf8_lossy(&out))?;
    Ok(Exit::Ok.into())
}
