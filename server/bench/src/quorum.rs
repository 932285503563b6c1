//! Our service with its leases in etcd, and the same etcd used directly through its own client: the same number of clients on
//! the same three members, in turn.

use ::config::{EtcdAddress, LeaseStoreConfig, LeaseStores};
use testkit::{EtcdCluster, EtcdOptions, Throwaway, ThrowawayFolder};

use super::error::BenchError;
use super::load::Pace;
use super::metric::{Figure, Goal};
use super::test_server::Served;
use super::throughput::{SPAN, Say, report, run_keyed, run_on_etcd};
use lease::LeaseConfig;

const MEMBERS: usize = 3;
/// Minimum ratio of our pace to that of etcd.
const LEAST: f64 = 0.9;

struct Round {
    ours: Pace,
    direct: Pace,
}

type Side = fn(&Round) -> &Pace;

/// # Errors
/// A server does not start, or a client fails.
pub(crate) async fn measure(count: u8, say: Say<'_>) -> Result<Vec<Figure>, BenchError> {
    let etcd = Throwaway::etcd_cluster(MEMBERS, EtcdOptions::default()).await?;
    let mut rounds = Vec::new();
    for number in 1..=count {
        say(&format!("round {number} of {count}: etcd directly"));
        let direct = report(say, Box::pin(run_on_etcd(&etcd.endpoints(), SPAN)).await?);
        say("acquire and release over HTTP");
        let ours = report(say, Box::pin(measure_service(&etcd)).await?);
        rounds.push(Round { ours, direct });
    }
    Ok(figures(&rounds))
}

async fn measure_service(etcd: &EtcdCluster) -> Result<Pace, BenchError> {
    let folder = ThrowawayFolder::create("bench").map_err(BenchError::io("folder"))?;
    let store = format!("sqlite:{}", folder.path().join("console.db").display());
    // Each server has users of its own, so it is an installation of its own and needs keys of its own.
    let keys = format!("etcd://{}{}/", etcd.addresses(), folder.path().display());
    let address = EtcdAddress::parse(&keys).map_err(|error| BenchError::bad_answer("etcd", error))?;
    let config = LeaseConfig {
        store: Some(LeaseStores::Etcd(vec![LeaseStoreConfig::at(address)])),
        ..LeaseConfig::default()
    };
    let served = Served::start_with(store.into(), Vec::new(), config).await?;
    let pace = run_keyed(&served, SPAN).await;
    served.end().await;
    pace
}

fn figures(rounds: &[Round]) -> Vec<Figure> {
    let mut figures = Vec::new();
    let sides: [(&str, Side); 2] = [
        ("leases in etcd, over HTTP", |round| &round.ours),
        ("etcd sent to directly", |round| &round.direct),
    ];
    for (name, side) in sides {
        let mut add = |name: String, unit, value: fn(&Pace) -> f64| {
            let values = rounds.iter().map(|round| value(side(round)));
            figures.push(Figure::median(&name, values, Goal::None, unit));
        };
        add(name.to_owned(), "pairs/s", |pace| pace.pairs_per_s);
        add(format!("p50 of {name}"), "ms", |pace| pace.p50_ms);
        add(format!("p99 of {name}"), "ms", |pace| pace.p99_ms);
        add(format!("CPU time of a pair, {name}"), "us", |pace| pace.cpu_us);
    }
    let ratios = rounds
        .iter()
        .map(|round| round.ours.pairs_per_s / round.direct.pairs_per_s);
    let name = "leases in etcd / etcd sent to directly";
    figures.push(Figure::median(name, ratios, Goal::AtLeast(LEAST), "times"));
    figures
}
