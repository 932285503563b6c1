//! `leasehold bench`: the goals beside the figures of this machine.

use std::process::ExitCode;

/// Measure this machine against the goals.
#[derive(Debug, clap::Args)]
#[command(after_help = concat!(
    "Example:\n  leasehold bench\n\n",
    "Exit codes: 0 measured, 1 failure, 2 wrong usage.",
))]
pub struct Args {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// # Errors
/// Whatever ends the measurement.
pub async fn run(_args: Args) -> anyhow::Result<ExitCode> {
    anyhow::bail!("this build has nothing to measure")
}
