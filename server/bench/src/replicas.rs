//! One, two and four servers on one Postgres: whether the total pace grows, and whether commits of one server wait for those of
//! another.

use std::time::Duration;

use sqlx::{Connection as _, PgConnection};
use testkit::{PostgresOptions, Throwaway};
use tokio_util::sync::CancellationToken;

use super::error::BenchError;
use super::load::{LoadSpan, Pace};
use super::metric::{Figure, Goal};
use super::test_server::Served;
use super::throughput::{Say, report, run_keyed_on};

const SERVERS: [usize; 3] = [1, 2, 4];
/// Few, so that one server leaves a part of the machine idle while it waits for the disk.
const CLIENTS_EACH: usize = 8;
const SPAN: LoadSpan = LoadSpan {
    warm_up: Duration::from_secs(1),
    time: Duration::from_secs(4),
};
const POLL_EVERY: Duration = Duration::from_millis(20);
/// Minimum ratio of the total pace of four servers to that of one.
const GROWTH_LEAST: f64 = 1.6;
/// The wait event of NOTIFY's lock, which Postgres takes for a whole commit. The connections that only notify may wait for it.
const OBJECT_WAITS: &str = "SELECT count(*) FROM pg_stat_activity
    WHERE wait_event_type = 'Lock' AND wait_event = 'object' AND query NOT ILIKE '%notify%'";

struct Round {
    /// By number of servers, as in [`SERVERS`].
    paces: Vec<Pace>,
    /// Sessions seen waiting for NOTIFY's lock.
    object_waits: u64,
}

/// # Errors
/// A server does not start, or a client fails.
pub(crate) async fn measure(count: u8, say: Say<'_>) -> Result<Vec<Figure>, BenchError> {
    let mut rounds = Vec::new();
    for number in 1..=count {
        say(&format!("round {number} of {count}"));
        rounds.push(Box::pin(measure_round(say)).await?);
    }
    Ok(figures(&rounds))
}

async fn measure_round(say: Say<'_>) -> Result<Round, BenchError> {
    let mut round = Round {
        paces: Vec::new(),
        object_waits: 0,
    };
    for servers in SERVERS {
        say(&format!(
            "{} on one Postgres",
            domain::format::counted(servers as u64, "server", "servers")
        ));
        let postgres = Throwaway::postgres(PostgresOptions::default()).await?;
        let mut all = Vec::new();
        for _ in 0..servers {
            all.push(Served::start(postgres.superuser_url().into(), Vec::new()).await?);
        }
        let stop = CancellationToken::new();
        let load = async {
            let pace = run_keyed_on(&all, CLIENTS_EACH, SPAN).await;
            stop.cancel();
            pace
        };
        let (pace, waits) = tokio::join!(load, object_waits(postgres.superuser_url(), &stop));
        round.object_waits += waits?;
        round.paces.push(report(say, pace?));
        for served in all {
            served.end().await;
        }
    }
    Ok(round)
}

async fn object_waits(url: String, stop: &CancellationToken) -> Result<u64, BenchError> {
    let mut connection = PgConnection::connect(&url).await?;
    let mut waits = 0;
    while !stop.is_cancelled() {
        let waiting: i64 = sqlx::query_scalar(OBJECT_WAITS)
            .fetch_one(&mut connection)
            .await?;
        waits += waiting.unsigned_abs();
        tokio::time::sleep(POLL_EVERY).await;
    }
    connection.close().await?;
    Ok(waits)
}

fn figures(rounds: &[Round]) -> Vec<Figure> {
    let mut figures = Vec::new();
    for (place, servers) in SERVERS.into_iter().enumerate() {
        let name = domain::format::counted(servers as u64, "server", "servers");
        let mut add = |name: &str, unit, value: fn(&Pace) -> f64| {
            let values = rounds.iter().map(|round| value(&round.paces[place]));
            figures.push(Figure::median(name, values, Goal::None, unit));
        };
        add(&format!("{name}, in all"), "pairs/s", |pace| pace.pairs_per_s);
        add(&format!("CPU time of a pair, {name}"), "us", |pace| pace.cpu_us);
        add(&format!("Postgres, {name}"), "cores", database_cores);
    }
    let growth = rounds
        .iter()
        .map(|round| round.paces[2].pairs_per_s / round.paces[0].pairs_per_s);
    figures.push(Figure::median(
        "4 servers / 1 server",
        growth,
        Goal::AtLeast(GROWTH_LEAST),
        "times",
    ));
    let waits = rounds.iter().map(|round| round.object_waits).sum::<u64>();
    figures.push(Figure::at_most(
        "batches seen waiting for the lock of NOTIFY",
        waits as f64,
        0.0,
        "",
    ));
    figures
}

/// CPU cores that Postgres uses.
fn database_cores(pace: &Pace) -> f64 {
    let processes = pace.threads.iter().filter(|cpu| cpu.name == "postgres");
    processes.map(|cpu| cpu.user_us + cpu.system_us).sum::<f64>() * pace.pairs_per_s / 1_000_000.0
}
