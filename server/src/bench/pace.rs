//! How many locks are taken and given back durably each second: our service over HTTP on both stores, and what people use
//! instead, with as many clients, the same durability, one after the other in the same run.

mod bare;
mod etcd;
mod figures;
mod ours;
mod redis;
mod table;
mod zookeeper;

use std::time::Duration;

pub use self::figures::figures;
use super::error::BenchError;
use super::load::{Pace, Span};
use super::served::Served;
use crate::throwaway::{EtcdOptions, PostgresOptions, RedisOptions, StartError, Throwaway, ZookeeperOptions};

/// Of each store and each peer, in each turn.
pub const SPAN: Span = Span {
    warm_up: Duration::from_secs(1),
    time: Duration::from_secs(4),
};
/// A machine is not as quick at every minute: all are measured so many times, one after the other, and the middle counts.
pub const TURNS: usize = 3;

/// All of them, one after the other.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    pub sqlite: Pace,
    /// What this machine gives to the least that could be measured in our place.
    pub bare: Pace,
    pub postgres: Pace,
    /// Sent to a Postgres of its own by the clients themselves.
    pub table: Pace,
    pub peers: Vec<Peer>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Peer {
    pub name: &'static str,
    /// Whether we want to be ahead of it.
    pub is_to_beat: bool,
    pub pace: Pace,
}

type Say<'a> = &'a (dyn Fn(&str) + Sync);

/// # Errors
/// A server does not start, or a client fails.
pub async fn measure(span: Span, turns: usize, say: Say<'_>) -> Result<Vec<Turn>, BenchError> {
    let mut all = Vec::new();
    for number in 1..=turns {
        say(&format!("turn {number} of {turns}"));
        all.push(Box::pin(turn(span, say)).await?);
    }
    Ok(all)
}

async fn turn(span: Span, say: Say<'_>) -> Result<Turn, BenchError> {
    say("acquire and release over HTTP on SQLite");
    let sqlite = tell(say, on_sqlite(span).await?);
    say("the yardstick: axum, a queue and one writer of SQLite, with nothing else");
    let bare = tell(say, bare::measure(span).await?);
    say("acquire and release over HTTP on Postgres");
    let postgres = tell(say, on_postgres(span).await?);
    say("the peer: the common lease SQL, sent to Postgres directly");
    let server = Throwaway::postgres(PostgresOptions::default()).await?;
    let table = tell(say, Box::pin(table::measure(&server, span)).await?);
    drop(server);
    Ok(Turn {
        sqlite,
        bare,
        postgres,
        table,
        peers: Box::pin(peers(span, say)).await?,
    })
}

async fn peers(span: Span, say: Say<'_>) -> Result<Vec<Peer>, BenchError> {
    let mut peers = Vec::new();
    say("the peer: etcd");
    let server = Throwaway::etcd(EtcdOptions::default()).await?;
    peers.push(Peer {
        name: "etcd",
        is_to_beat: true,
        pace: tell(say, Box::pin(etcd::measure(&server, span)).await?),
    });
    drop(server);
    say("the peer: ZooKeeper");
    match Throwaway::zookeeper(ZookeeperOptions::default()).await {
        Ok(server) => peers.push(Peer {
            name: "ZooKeeper",
            is_to_beat: true,
            pace: tell(say, Box::pin(zookeeper::measure(&server, span)).await?),
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
        pace: tell(say, redis::measure(&server, span).await?),
    });
    Ok(peers)
}

/// It takes a while until the whole table is there.
fn tell(say: Say<'_>, pace: Pace) -> Pace {
    let Pace {
        pairs_per_s,
        p50_ms,
        p99_ms,
    } = pace;
    say(&format!(
        "  {pairs_per_s:.0} pairs/s, p50 {p50_ms:.1} ms, p99 {p99_ms:.1} ms"
    ));
    pace
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
