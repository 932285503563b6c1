//! `leasehold bench`: the goals beside the figures of this machine.

use std::process::ExitCode;

use super::exit::Exit;
use super::output::{print, report};
use crate::bench::figure::Figure;
use crate::bench::{inventory, pace, redis_pass};
use crate::clock::Clock;
use crate::config::LogConfig;

/// Measure this machine against the goals.
#[derive(Debug, clap::Args)]
#[command(after_help = concat!(
    "Example:\n  leasehold bench\n  leasehold bench pace\n\n",
    "Exit codes: 0 measured, 1 failure, 2 wrong usage. A missed goal is shown, and is no failure.",
))]
pub struct Args {
    /// Which parts; all without any
    #[arg(value_enum)]
    pub parts: Vec<Part>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Part {
    /// Locks taken and given back each second, ours and the peers
    Pace,
    /// Only ours on SQLite
    PaceSqlite,
    /// Only ours on Postgres
    PacePostgres,
    /// 1,000,000 locks in memory
    Inventory,
    /// 1,000,000 keys in Redis
    Redis,
}

/// # Errors
/// A server that is measured against cannot be started.
pub async fn run(args: Args) -> anyhow::Result<ExitCode> {
    crate::telemetry::start(&LogConfig::default())?;
    let all = [Part::Pace, Part::Inventory, Part::Redis];
    let parts = if args.parts.is_empty() {
        &all[..]
    } else {
        &args.parts
    };
    let mut figures = Vec::new();
    for part in parts {
        figures.extend(measure(*part).await?);
    }
    if args.json {
        print(&format!("{}\n", serde_json::to_string_pretty(&figures)?))?;
    } else {
        for figure in &figures {
            print(&format!("{figure}\n"))?;
        }
    }
    Ok(Exit::Ok.into())
}

async fn measure(part: Part) -> anyhow::Result<Vec<Figure>> {
    Ok(match part {
        Part::Pace => Box::pin(pace::measure(pace::SPAN, &report)).await?.figures(),
        Part::PaceSqlite => one(Box::pin(pace::on_sqlite(pace::SPAN)).await?),
        Part::PacePostgres => one(Box::pin(pace::on_postgres(pace::SPAN)).await?),
        Part::Inventory => {
            report("1,000,000 locks in the inventory: about 20 s");
            tokio::task::spawn_blocking(|| inventory::run(&Clock::start())).await?
        }
        Part::Redis => {
            report("1,000,000 keys in Redis, read by redis-cli and by us: about a minute");
            Box::pin(redis_pass::measure(redis_pass::KEYS)).await?.figures()
        }
    })
}

fn one(pace: crate::bench::load::Pace) -> Vec<Figure> {
    vec![
        Figure::plain("pace", pace.pairs_per_s, "pairs/s"),
        Figure::plain("p50", pace.p50_ms, "ms"),
        Figure::plain("p99", pace.p99_ms, "ms"),
    ]
}
