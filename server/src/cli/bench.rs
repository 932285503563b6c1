//! `leasehold bench`: the goals beside the figures of this machine.

use std::process::ExitCode;

use super::exit::Exit;
use super::output::{print, report};
use crate::bench;
use crate::clock::Clock;

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
/// A server that is measured against cannot be started.
pub async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let clock = Clock::start();
    report("1,000,000 locks in the inventory: about 20 s");
    let inventory = {
        let clock = clock.clone();
        tokio::task::spawn_blocking(move || bench::inventory::run(&clock)).await?
    };
    let mut figures = inventory;
    report("1,000,000 keys in Redis, read by redis-cli and by us: about a minute");
    let pass = Box::pin(bench::redis_pass::measure(bench::redis_pass::KEYS)).await?;
    figures.extend(pass.figures());
    if args.json {
        print(&format!("{}\n", serde_json::to_string_pretty(&figures)?))?;
    } else {
        for figure in &figures {
            print(&format!("{figure}\n"))?;
        }
    }
    Ok(Exit::Ok.into())
}
