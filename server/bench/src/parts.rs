//! Parts of the bench, by name, and their order.

use crate::metric::{Figure, Section};
use crate::output::{print, report};
use crate::{
    audit, delivery, disk, expiry, held_leases, history, inventory, lasting, open_pages, pages, preview,
    quorum, redis_scan, renewals, replicas, soak, throughput, waiters,
};
use config::{LogConfig, LogFormat};
use runtime::clock::Clock;

/// Measure this machine against the goals.
#[derive(Debug, clap::Parser)]
#[command(name = "leasehold-bench", version, after_help = concat!(
    "Starts its own servers on free ports, with their data in the temporary folder, and removes them at the end.\n\n",
    "Example:\n  leasehold-bench\n  leasehold-bench pace inventory\n  leasehold-bench soak --minutes 60\n\n",
    "Exit codes: 0 measured, 1 failure, 2 wrong usage. A missed goal is reported but is not a failure.",
))]
pub(crate) struct Args {
    /// Which parts; all of them but soak without any
    #[arg(value_enum)]
    pub parts: Vec<Part>,
    /// Renew, record history, and load the stores with ended leases for ten minutes instead of one or two
    #[arg(long)]
    pub long: bool,
    /// Rounds of pace, replicas and quorum; the median counts
    #[arg(long, default_value_t = throughput::ROUNDS, value_parser = clap::value_parser!(u8).range(1..=throughput::ROUNDS_MAX))]
    pub rounds: u8,
    /// For how long soak runs
    #[arg(long, default_value_t = soak::MINUTES, value_parser = clap::value_parser!(u32).range(1..=i64::from(soak::MINUTES_MAX)))]
    pub minutes: u32,
    /// Open pages during soak
    #[arg(long, default_value_t = soak::VIEWERS, value_parser = at_most(soak::VIEWERS_MAX))]
    pub viewers: usize,
    /// Changes a second during soak
    #[arg(long, default_value_t = soak::CHANGES, value_parser = clap::value_parser!(u32).range(1..=i64::from(soak::CHANGES_MAX)))]
    pub changes: u32,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

fn at_most(most: usize) -> impl Fn(&str) -> Result<usize, String> + Clone + Send + Sync {
    move |text| match text.parse() {
        Ok(number) if number <= most => Ok(number),
        _ => Err(format!("must be a whole number of 0 to {most}")),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Part {
    /// Acquires and releases per second: ours on both stores, and the peers
    Pace,
    /// The same on stores with 10,000,000 ended leases, while as many are deleted as end
    Lasting,
    /// The same with 1, 2 and 4 servers on one Postgres
    Replicas,
    /// The same with the leases in an etcd of three members, and that etcd sent to directly
    Quorum,
    /// 500 waiters on one resource
    Waiters,
    /// 50,000 leases that expire within a second
    Expiry,
    /// Leases that expire one after the other while 1,000,000 others are held
    HeldLeases,
    /// 10,000 leases renewed every 10 s
    Renewals,
    /// 1,000,000 locks in memory
    Inventory,
    /// 1,000,000 keys in Redis
    Redis,
    /// The list of locks as HTML, and the event stream
    Pages,
    /// 200 open pages of each kind while locks change: CPU time of the server
    OpenPages,
    /// 1,000,000 entries of the audit log
    Audit,
    /// 1,000 changes a second into history, and a month of its sums
    History,
    /// What alert rules would have done in seven days, 2,300,000 events
    Preview,
    /// Notifications from the outbox to a webhook
    Delivery,
    /// Memory, open files and tasks of the server, once a minute, under viewers and changes; only when it is named
    Soak,
}

const ALL: [Part; 16] = [
    Part::Pace,
    Part::Lasting,
    Part::Replicas,
    Part::Quorum,
    Part::Waiters,
    Part::Expiry,
    Part::HeldLeases,
    Part::Renewals,
    Part::Inventory,
    Part::Redis,
    Part::Pages,
    Part::OpenPages,
    Part::Audit,
    Part::History,
    Part::Preview,
    Part::Delivery,
];

/// # Errors
/// A server that is measured against cannot be started.
pub(crate) async fn run(args: Args) -> anyhow::Result<()> {
    // Warnings only, so that the table stays readable.
    runtime::telemetry::start(&LogConfig {
        // Peer clients log errors when their servers end; errors that affect a measurement are reported separately.
        filter: "warn,zookeeper_client=off".to_owned(),
        format: LogFormat::Human,
    })?;
    report(&disk::describe(&std::env::temp_dir()));
    let parts = if args.parts.is_empty() {
        &ALL[..]
    } else {
        &args.parts
    };
    let mut sections = Vec::new();
    for part in parts {
        sections.push(Section {
            title: part.title(),
            figures: Box::pin(part.measure(&args)).await?,
        });
    }
    if args.json {
        print(&format!("{}\n", serde_json::to_string_pretty(&sections)?))?;
        return Ok(());
    }
    for section in &sections {
        print(&format!("\n{section}"))?;
    }
    Ok(())
}

impl Part {
    const fn title(self) -> &'static str {
        match self {
            Self::Pace => "Acquire and release, 64 clients",
            Self::Lasting => "Acquire and release on stores with ended leases",
            Self::Replicas => "Several servers on one Postgres, 8 clients each",
            Self::Quorum => "Leases in an etcd of three members, 64 clients",
            Self::Waiters => "Waiters",
            Self::Expiry => "Mass expiry",
            Self::HeldLeases => "1,000,000 held leases",
            Self::Renewals => "Renewals",
            Self::Inventory => "Inventory at 1,000,000 locks",
            Self::Redis => "A scan of Redis",
            Self::Pages => "Pages",
            Self::OpenPages => "200 open pages",
            Self::Audit => "Audit log at 1,000,000 entries",
            Self::History => "History at 1,000 changes a second",
            Self::Preview => "Previews of alert rules",
            Self::Delivery => "Delivery of notifications",
            Self::Soak => "Soak: what grows while the server runs",
        }
    }

    async fn measure(self, args: &Args) -> anyhow::Result<Vec<Figure>> {
        let long = args.long;
        Ok(match self {
            Self::Pace => Box::pin(pace(args.rounds)).await?,
            Self::Lasting => {
                let minutes = if long { lasting::LONG } else { lasting::NORMAL };
                Box::pin(lasting::measure(minutes, &report)).await?
            }
            Self::Replicas => Box::pin(replicas::measure(args.rounds, &report)).await?,
            Self::Quorum => Box::pin(quorum::measure(args.rounds, &report)).await?,
            Self::Waiters => {
                report("500 waiters on one resource: some seconds");
                Box::pin(waiters::measure(waiters::WAITERS)).await?.figures()
            }
            Self::Expiry => {
                report("50,000 leases that expire within a second: about 20 s");
                Box::pin(expiry::measure(expiry::LEASES, expiry::LEAD_S))
                    .await?
                    .figures()
            }
            Self::HeldLeases => Box::pin(held_leases::measure(held_leases::HELD, held_leases::TIME)).await?,
            Self::Renewals => {
                let time = if long { renewals::LONG } else { renewals::NORMAL };
                report(&format!("10,000 leases renewed every 10 s: {} s", time.as_secs()));
                Box::pin(renewals::measure(renewals::LEASES, time))
                    .await?
                    .figures()
            }
            Self::Inventory => {
                report("1,000,000 locks in the inventory: about 20 s");
                tokio::task::spawn_blocking(|| inventory::run(&Clock::start())).await?
            }
            Self::Redis => {
                report("1,000,000 keys in Redis, read by redis-cli and by us: about a minute");
                Box::pin(redis_scan::measure(redis_scan::KEYS)).await?.figures()
            }
            Self::Pages => {
                report("1,000 locks as HTML, and changes in the event stream: about 40 s");
                Box::pin(pages::measure(pages::LOCKS)).await?.figures()
            }
            Self::OpenPages => {
                report("200 open pages of each kind at 50 changes a second: about 3 minutes");
                Box::pin(open_pages::measure()).await?
            }
            Self::Audit => {
                report("1,000,000 entries of the audit log, verified and searched: about a minute");
                Box::pin(audit::measure(audit::ROWS)).await?
            }
            Self::History => {
                let time = if long { history::LONG } else { history::NORMAL };
                report(&format!(
                    "1,000 changes a second into history: {} s",
                    time.as_secs()
                ));
                Box::pin(history::measure(time, history::PREFIXES)).await?
            }
            Self::Preview => {
                report("2,300,000 events of seven days, read by alert rules: about half a minute");
                Box::pin(preview::measure(&preview::WEEKS)).await?
            }
            Self::Delivery => {
                report("2,200 notifications to a webhook: about 10 s");
                Box::pin(delivery::measure()).await?
            }
            Self::Soak => Box::pin(run_soak(args)).await?,
        })
    }
}

async fn pace(rounds: u8) -> anyhow::Result<Vec<Figure>> {
    report(&format!(
        "the yardstick is version {}",
        throughput::yardstick_hash()
    ));
    let rounds = throughput::measure(throughput::SPAN, rounds, &report);
    Ok(throughput::figures(&Box::pin(rounds).await?))
}

async fn run_soak(args: &Args) -> anyhow::Result<Vec<Figure>> {
    let plan = soak::Plan {
        minutes: args.minutes,
        viewers: args.viewers,
        changes_per_s: args.changes,
    };
    report(&format!(
        "{} viewers and {} changes a second for {}",
        plan.viewers,
        plan.changes_per_s,
        domain::format::counted(u64::from(plan.minutes), "minute", "minutes")
    ));
    report("minute  memory MiB   files   tasks  changes/s  pages/s  received kB/s  failures");
    let report_sample = |sample: &soak::Sample| {
        let vitals = sample.vitals;
        report(&format!(
            "{:>6}  {:>10.1}  {:>6}  {:>6}  {:>9}  {:>7}  {:>13}  {:>8}",
            sample.minute,
            vitals.memory_mib,
            vitals.files,
            vitals.tasks,
            sample.changes / 60,
            sample.page_loads / 60,
            sample.received_bytes / 60_000,
            sample.failures
        ));
    };
    Ok(soak::measure(plan, &report_sample).await?)
}
