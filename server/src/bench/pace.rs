//! How many locks are taken and given back durably each second: our service over HTTP on both stores, and what people use
//! instead, with as many clients, the same durability, one after the other in the same run.

mod bare;
mod etcd;
mod ours;
mod redis;
mod table;
mod zookeeper;

use std::time::Duration;

use super::error::BenchError;
use super::figure::Figure;
use super::load::{Pace, Span};
use super::served::Served;
use crate::throwaway::{EtcdOptions, PostgresOptions, RedisOptions, StartError, Throwaway, ZookeeperOptions};

/// Of each store and each peer.
pub const SPAN: Span = Span {
    warm_up: Duration::from_secs(1),
    time: Duration::from_secs(8),
};
const SQLITE_GOAL: f64 = 20_000.0;
const POSTGRES_GOAL: f64 = 15_000.0;
const P99_MS_GOAL: f64 = 10.0;
const BARE: &str = "a bare sketch of it on SQLite";

/// Our service on both stores, then every peer.
#[derive(Debug, Clone, PartialEq)]
pub struct Paces {
    pub sqlite: Pace,
    pub postgres: Pace,
    pub peers: Vec<Peer>,
    /// What this machine gives to the least that could be measured in our place.
    pub bare: Pace,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Peer {
    pub name: &'static str,
    /// Whether we want to be ahead of it.
    pub is_to_beat: bool,
    pub pace: Pace,
}

/// # Errors
/// A server does not start, or a client fails.
pub async fn measure(span: Span, say: &(dyn Fn(&str) + Sync)) -> Result<Paces, BenchError> {
    say("acquire and release over HTTP on SQLite");
    let sqlite = on_sqlite(span).await?;
    tell(say, sqlite);
    say("the yardstick: axum, a queue and one writer of SQLite, with nothing else");
    let bare = bare::measure(span).await?;
    tell(say, bare);
    say("acquire and release over HTTP on Postgres");
    let postgres = on_postgres(span).await?;
    tell(say, postgres);
    let mut peers = Vec::new();
    say("the peer: the common lease SQL, sent to Postgres directly");
    let server = Throwaway::postgres(PostgresOptions::default()).await?;
    peers.push(Peer {
        name: "the common lease SQL sent to Postgres directly",
        is_to_beat: true,
        pace: Box::pin(table::measure(&server, span)).await?,
    });
    drop(server);
    say("the peer: etcd");
    let server = Throwaway::etcd(EtcdOptions::default()).await?;
    peers.push(Peer {
        name: "etcd",
        is_to_beat: true,
        pace: Box::pin(etcd::measure(&server, span)).await?,
    });
    drop(server);
    say("the peer: ZooKeeper");
    match Throwaway::zookeeper(ZookeeperOptions::default()).await {
        Ok(server) => peers.push(Peer {
            name: "ZooKeeper",
            is_to_beat: true,
            pace: Box::pin(zookeeper::measure(&server, span)).await?,
        }),
        // Only this one is left out: `make bench` installs the others.
        Err(StartError::Missing(missing)) => say(&format!("left out: {missing}")),
        Err(error) => return Err(error.into()),
    }
    say("the peer: Redis with appendfsync always");
    let durable = RedisOptions {
        append_only: true,
        config: vec!["appendfsync always".to_owned()],
        ..RedisOptions::default()
    };
    let server = Throwaway::redis(durable).await?;
    peers.push(Peer {
        name: "Redis with appendfsync always",
        is_to_beat: false,
        pace: redis::measure(&server, span).await?,
    });
    Ok(Paces {
        sqlite,
        postgres,
        peers,
        bare,
    })
}

/// It takes a while until the whole table is there.
fn tell(say: &(dyn Fn(&str) + Sync), pace: Pace) {
    let Pace {
        pairs_per_s,
        p50_ms,
        p99_ms,
    } = pace;
    say(&format!(
        "  {pairs_per_s:.0} pairs/s, p50 {p50_ms:.1} ms, p99 {p99_ms:.1} ms"
    ));
}

async fn on_sqlite(span: Span) -> Result<Pace, BenchError> {
    let (served, _folder) = Served::on_sqlite().await?;
    ours::measure(served, span).await
}

async fn on_postgres(span: Span) -> Result<Pace, BenchError> {
    let server = Throwaway::postgres(PostgresOptions::default()).await?;
    let served = Served::start(server.superuser_url().into(), Vec::new()).await?;
    ours::measure(served, span).await
}

impl Paces {
    pub fn figures(&self) -> Vec<Figure> {
        let stores = [
            ("SQLite", self.sqlite, SQLITE_GOAL),
            ("Postgres", self.postgres, POSTGRES_GOAL),
        ];
        let mut figures = Vec::new();
        for (store, pace, goal) in stores {
            figures.push(Figure::at_least(
                &format!("durable acquire and release over HTTP, {store}"),
                pace.pairs_per_s,
                goal,
                "pairs/s",
            ));
            figures.push(Figure::plain(
                &format!("p50 of such a pair, {store}"),
                pace.p50_ms,
                "ms",
            ));
            figures.push(Figure::at_most(
                &format!("p99 of such a pair, {store}"),
                pace.p99_ms,
                P99_MS_GOAL,
                "ms",
            ));
        }
        figures.push(Figure::plain(BARE, self.bare.pairs_per_s, "pairs/s"));
        figures.push(Figure::plain(&format!("p99 of {BARE}"), self.bare.p99_ms, "ms"));
        figures.push(Figure::plain(
            &format!("ours on SQLite / {BARE}"),
            self.sqlite.pairs_per_s / self.bare.pairs_per_s,
            "times",
        ));
        for peer in &self.peers {
            let name = peer.name;
            figures.push(Figure::plain(name, peer.pace.pairs_per_s, "pairs/s"));
            figures.push(Figure::plain(&format!("p50 of {name}"), peer.pace.p50_ms, "ms"));
            figures.push(Figure::plain(&format!("p99 of {name}"), peer.pace.p99_ms, "ms"));
            for (store, pace, _) in stores {
                let ratio = pace.pairs_per_s / peer.pace.pairs_per_s;
                let name = format!("ours on {store} / {name}");
                figures.push(if peer.is_to_beat {
                    Figure::at_least(&name, ratio, 1.0, "times")
                } else {
                    Figure::plain(&name, ratio, "times")
                });
            }
        }
        figures
    }
}
