//! Starts all workers on the running servers.

use std::sync::Arc;
use std::time::Duration;

use super::builtin;
use super::consul;
use super::deadlock;
use super::etcd;
use super::names;
use super::postgres::{self, Access, leases::TableLeases};
use super::redis;
use super::scenarios::play;
use super::servers::{Cache, Orders, Servers, prepare};
use super::worker_pool::Crew;
use super::zookeeper::{self, Contender};
use super::{DemoError, fault::WorkloadError, worker};
use testkit::{Consul, Etcd, Redis, Zookeeper};

/// Systems over which scenarios are distributed, without the paused one.
const PARTS: u32 = 3;

pub(super) async fn set(crew: &mut Crew, servers: &Servers) -> Result<(), DemoError> {
    if let Some(orders) = &servers.orders {
        let access = Access::new(&orders.server, &orders.passwords.app);
        database(crew, &access.map_err(|fault| prepare("orders-db", &fault))?);
    }
    if let Some(cache) = &servers.cache {
        keys(crew, &cache.server).map_err(|fault| prepare("redis-cache", &fault))?;
    }
    if let Some(cache) = &servers.cache_eu {
        paused(crew, &cache.server).map_err(|fault| prepare("cache-eu", &fault))?;
    }
    if let Some(nodes) = &servers.redlock {
        quorum(crew, nodes).map_err(|fault| prepare("payments-redlock", &fault))?;
    }
    if let Some(coord) = &servers.coord {
        coordination(crew, coord)
            .await
            .map_err(|fault| prepare("etcd-coord", &fault))?;
    }
    if let (Some(orders), Some(coord)) = (&servers.orders, &servers.coord) {
        across_systems(crew, orders, coord)
            .await
            .map_err(|fault| prepare("etcd-coord", &fault))?;
    }
    if let Some(server) = &servers.plan {
        zookeeper::prepare(server)
            .await
            .map_err(|fault| prepare("zk-plan", &fault))?;
        nodes(crew, server);
    }
    if let Some(server) = &servers.dc1 {
        sessions(crew, server).map_err(|fault| prepare("consul-dc1", &fault))?;
    }
    Ok(())
}

/// On the console's own lease service.
pub(super) fn service(crew: &mut Crew, access: &builtin::Access) {
    play(crew, access, &names::SERVICE, 0, 1);
    for (owner, second) in names::LINE_OWNERS.into_iter().zip(0..) {
        let access = access.clone();
        crew.supervise("queue waiter", Duration::from_secs(second), move || {
            builtin::queue::takes_turns(access.clone(), owner)
        });
    }
    let access = access.clone();
    crew.supervise("zombie", Duration::ZERO, move || {
        builtin::stale_writer::writes_late(access.clone())
    });
}

fn database(crew: &mut Crew, access: &Access) {
    let pool = access.pool();
    let leases = TableLeases { pool: pool.clone() };
    play(crew, &leases, &names::TABLE, 0, PARTS);
    crew.supervise("left behind", Duration::ZERO, move || {
        let (resource, owner) = names::LEFT_BEHIND;
        worker::left_behind(leases.clone(), resource.to_owned(), owner.to_owned())
    });
    for ((name, host), second) in names::SCHEDULED.into_iter().zip(0..) {
        let pool = pool.clone();
        crew.supervise("scheduled task", Duration::from_secs(second), move || {
            postgres::shedlock::run_task(pool.clone(), name, host)
        });
    }
    crew.supervise("migration", Duration::ZERO, move || {
        postgres::changelog::migrate(pool.clone())
    });
    for (name, second) in ["settlement-1", "settlement-2", "settlement-3"]
        .into_iter()
        .zip(0..)
    {
        let access = access.clone();
        crew.supervise("rotating advisory lock", Duration::from_secs(second), move || {
            postgres::advisory::takes_turns(access.clone(), name)
        });
    }
    let one = access.clone();
    crew.supervise("advisory locks", Duration::ZERO, move || {
        postgres::advisory::holds_several(one.clone())
    });
    let one = access.clone();
    crew.supervise("prepared transaction", Duration::ZERO, move || {
        postgres::prepared::wait_for_owners(one.clone())
    });
    let one = access.clone();
    crew.supervise("blocked rows", Duration::ZERO, move || {
        postgres::rows::chain(one.clone())
    });
}

fn keys(crew: &mut Crew, server: &Arc<Redis>) -> Result<(), WorkloadError> {
    let server = redis::connect(server)?;
    let json = redis::keys::KeyLeases {
        server: server.clone(),
        shape: redis::keys::Shape::Json,
    };
    let raw = redis::keys::KeyLeases {
        server: server.clone(),
        shape: redis::keys::Shape::Raw,
    };
    play(crew, &json, &names::CACHE_JSON, 1, PARTS);
    play(crew, &raw, &names::CACHE_RAW, 1, PARTS);
    play(
        crew,
        &redis::hashes::HashLeases {
            server: server.clone(),
        },
        &names::CACHE_HASHES,
        1,
        PARTS,
    );
    crew.supervise("odd keys", Duration::ZERO, move || {
        redis::oddities::maintain(server.clone())
    });
    Ok(())
}

fn paused(crew: &mut Crew, server: &Arc<Redis>) -> Result<(), WorkloadError> {
    let leases = redis::keys::KeyLeases {
        server: redis::connect(server)?,
        shape: redis::keys::Shape::Json,
    };
    play(crew, &leases, &names::CACHE_EU, 0, 1);
    let server = server.clone();
    crew.supervise("pauses", redis::pause::FIRST_AFTER, move || {
        redis::pause::now_and_then(server.clone())
    });
    Ok(())
}

fn quorum(crew: &mut Crew, nodes: &[Cache]) -> Result<(), WorkloadError> {
    let nodes = nodes.iter().map(|node| redis::connect(&node.server));
    let leases = redis::quorum::QuorumLeases {
        nodes: nodes.collect::<Result<_, _>>()?,
    };
    play(crew, &leases, &names::REDLOCK, 0, 1);
    let one = leases.clone();
    crew.supervise("split redlock", Duration::ZERO, move || {
        redis::quorum::stay_split(one.clone())
    });
    crew.supervise("redlock without its quorum", Duration::ZERO, move || {
        redis::quorum::lose_quorum(leases.clone())
    });
    Ok(())
}

async fn coordination(crew: &mut Crew, server: &Etcd) -> Result<(), WorkloadError> {
    let access = etcd::Access::new(server).await?;
    play(
        crew,
        &etcd::keys::KeyLeases {
            client: access.quick.clone(),
        },
        &names::COORD,
        2,
        PARTS,
    );
    let one = access.quick.clone();
    crew.supervise("key without lease", Duration::ZERO, move || {
        etcd::keys::keep_without_lease(one.clone())
    });
    // Staggered, so that they queue in this order.
    for second in 0..4 {
        let access = access.clone();
        crew.supervise("rotating mutex", Duration::from_secs(second), move || {
            etcd::mutex::takes_turns(access.clone(), etcd::mutex::CONTENDED, Duration::from_secs(45))
        });
    }
    let one = access.clone();
    crew.supervise("mutex", Duration::ZERO, move || {
        etcd::mutex::takes_turns(one.clone(), etcd::mutex::QUIET, Duration::from_secs(600))
    });
    for (owner, second) in [("scheduler-1", 0), ("scheduler-2", 2)] {
        let access = access.clone();
        crew.supervise("candidate", Duration::from_secs(second), move || {
            etcd::election::candidate(access.clone(), owner)
        });
    }
    Ok(())
}

async fn across_systems(crew: &mut Crew, orders: &Orders, coord: &Etcd) -> Result<(), WorkloadError> {
    let database = Access::new(&orders.server, &orders.passwords.app)?;
    let coord = etcd::Access::new(coord).await?;
    crew.supervise("deadlock", Duration::ZERO, move || {
        deadlock::until_broken(database.clone(), coord.clone())
    });
    Ok(())
}

fn nodes(crew: &mut Crew, server: &Zookeeper) {
    let mut queue = |path, owner, contender, second, hold| {
        let cluster = server.cluster();
        crew.supervise("contender", Duration::from_secs(second), move || {
            zookeeper::takes_turns(cluster.clone(), path, owner, contender, Duration::from_secs(hold))
        });
    };
    // Staggered, so that they queue in this order.
    for (owner, second) in zookeeper::CONTENDERS.into_iter().zip(0..) {
        queue(zookeeper::CONTENDED, owner, Contender::Mutex, second, 45);
    }
    let (path, owner) = zookeeper::QUIET;
    queue(path, owner, Contender::Mutex, 0, 600);
    for (owner, second) in [("pricing-1", 0), ("pricing-2", 1)] {
        queue(zookeeper::SHARED, owner, Contender::Reader, second, 90);
    }
    queue(zookeeper::SHARED, "price-import-1", Contender::Writer, 5, 30);
}

fn sessions(crew: &mut Crew, server: &Consul) -> Result<(), WorkloadError> {
    let access = consul::Access::new(&server.url())?;
    let mut hold = |key, owner, second, length| {
        let access = access.clone();
        crew.supervise("session", Duration::from_secs(second), move || {
            consul::takes_turns(access.clone(), key, owner, Duration::from_secs(length))
        });
    };
    for (owner, second) in consul::CONTENDERS.into_iter().zip(0..) {
        hold(consul::CONTENDED, owner, second, 30);
    }
    for (key, owner) in consul::QUIET {
        hold(key, owner, 0, 600);
    }
    crew.supervise("lost session", Duration::ZERO, move || {
        consul::loses_its_session(access.clone())
    });
    Ok(())
}
