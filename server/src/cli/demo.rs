//! `leasehold demo`: the console on throwaway servers with a workload.

use std::process::ExitCode;

/// Serve the console on throwaway servers with a workload, to look around.
#[derive(Debug, clap::Args)]
#[command(after_help = concat!(
    "Starts its own Postgres, Redis and etcd on free ports and removes them at the end.\n\n",
    "Example:\n  leasehold demo\n\n",
    "Exit codes: 0 stopped by Ctrl-C or SIGTERM, 1 failure, 2 wrong usage.",
))]
pub struct Args {
    /// Address and port of the console
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:3000")]
    pub listen: String,
}

/// # Errors
/// Whatever ends the demo.
pub async fn run(_args: Args) -> anyhow::Result<ExitCode> {
    anyhow::bail!("this build has no demo")
}
