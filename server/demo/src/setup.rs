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
use super::scenarios::start_workers;
use super::servers::{Cache, Orders, Servers, prepare_error};
use super::worker_pool::WorkerPool;
use super::zookeeper::{self, Contender};
use super::{DemoError, fault::WorkloadError, worker};
use testkit::{Consul, Etcd, Redis, Zookeeper};

/// Systems over which scenarios are distributed, without the paused one.
const PARTS: u32 = 3;

pub(super) async fn start_all(workers: &mut WorkerPool, servers: &Servers) -> Result<(), DemoError> {
    if let Some(orders) = &servers.orders {
        let access = Access::new(&orders.server, &orders.passwords.app);
        start_on_postgres(
            workers,
            &access.map_err(|fault| prepare_error("orders-db", &fault))?,
        );
    }
    if let Some(cache) = &servers.cache {
        start_on_redis(workers, &cache.server).map_err(|fault| prepare_error("redis-cache", &fault))?;
    }
    if let Some(cache) = &servers.cache_eu {
        start_on_paused_redis(workers, &cache.server).map_err(|fault| prepare_error("cache-eu", &fault))?;
    }
    if let Some(nodes) = &servers.redlock {
        start_on_redlock(workers, nodes).map_err(|fault| prepare_error("payments-redlock", &fault))?;
    }
    if let Some(coord) = &servers.coord {
        start_on_etcd(workers, coord)
            .await
            .map_err(|fault| prepare_error("etcd-coord", &fault))?;
    }
    if let (Some(orders), Some(coord)) = (&servers.orders, &servers.coord) {
        start_deadlock(workers, orders, coord)
            .await
            .map_err(|fault| prepare_error("etcd-coord", &fault))?;
    }
    if let Some(server) = &servers.plan {
        zookeeper::prepare(server)
            .await
            .map_err(|fault| prepare_error("zk-plan", &fault))?;
        start_on_zookeeper(workers, server);
    }
    if let Some(server) = &servers.dc1 {
        start_on_consul(workers, server).map_err(|fault| prepare_error("consul-dc1", &fault))?;
    }
    Ok(())
}

/// On the console's own lease service.
pub(super) fn start_on_lease_service(workers: &mut WorkerPool, access: &builtin::Access) {
    start_workers(workers, access, &names::SERVICE, 0, 1);
    for (owner, second) in names::QUEUE_OWNERS.into_iter().zip(0..) {
        let access = access.clone();
        workers.supervise("queue waiter", Duration::from_secs(second), move || {
            builtin::queue::wait_and_hold(access.clone(), owner)
        });
    }
    let access = access.clone();
    workers.supervise("zombie", Duration::ZERO, move || {
        builtin::stale_writer::write_with_stale_token(access.clone())
    });
}

fn start_on_postgres(workers: &mut WorkerPool, access: &Access) {
    let pool = access.pool();
    let leases = TableLeases { pool: pool.clone() };
    start_workers(workers, &leases, &names::TABLE, 0, PARTS);
    workers.supervise("left behind", Duration::ZERO, move || {
        let (resource, owner) = names::ABANDONED;
        worker::abandon(leases.clone(), resource.to_owned(), owner.to_owned())
    });
    for ((name, host), second) in names::SCHEDULED.into_iter().zip(0..) {
        let pool = pool.clone();
        workers.supervise("scheduled task", Duration::from_secs(second), move || {
            postgres::shedlock::run_task(pool.clone(), name, host)
        });
    }
    workers.supervise("migration", Duration::ZERO, move || {
        postgres::changelog::migrate(pool.clone())
    });
    for (name, second) in ["settlement-1", "settlement-2", "settlement-3"]
        .into_iter()
        .zip(0..)
    {
        let access = access.clone();
        workers.supervise("rotating advisory lock", Duration::from_secs(second), move || {
            postgres::advisory::wait_and_hold(access.clone(), name)
        });
    }
    let worker_access = access.clone();
    workers.supervise("advisory locks", Duration::ZERO, move || {
        postgres::advisory::hold_uncontended_locks(worker_access.clone())
    });
    let worker_access = access.clone();
    workers.supervise("prepared transaction", Duration::ZERO, move || {
        postgres::prepared::wait_for_owners(worker_access.clone())
    });
    let worker_access = access.clone();
    workers.supervise("blocked rows", Duration::ZERO, move || {
        postgres::rows::block_in_chain(worker_access.clone())
    });
}

fn start_on_redis(workers: &mut WorkerPool, server: &Arc<Redis>) -> Result<(), WorkloadError> {
    let server = redis::connect(server)?;
    let json = redis::keys::KeyLeases {
        server: server.clone(),
        shape: redis::keys::Shape::Json,
    };
    let raw = redis::keys::KeyLeases {
        server: server.clone(),
        shape: redis::keys::Shape::Raw,
    };
    start_workers(workers, &json, &names::CACHE_JSON, 1, PARTS);
    start_workers(workers, &raw, &names::CACHE_RAW, 1, PARTS);
    start_workers(
        workers,
        &redis::hashes::HashLeases {
            server: server.clone(),
        },
        &names::CACHE_HASHES,
        1,
        PARTS,
    );
    workers.supervise("odd keys", Duration::ZERO, move || {
        redis::oddities::maintain(server.clone())
    });
    Ok(())
}

fn start_on_paused_redis(workers: &mut WorkerPool, server: &Arc<Redis>) -> Result<(), WorkloadError> {
    let leases = redis::keys::KeyLeases {
        server: redis::connect(server)?,
        shape: redis::keys::Shape::Json,
    };
    start_workers(workers, &leases, &names::CACHE_EU, 0, 1);
    let server = server.clone();
    workers.supervise("pauses", redis::pause::FIRST_PAUSE_AFTER, move || {
        redis::pause::pause_periodically(server.clone())
    });
    Ok(())
}

fn start_on_redlock(workers: &mut WorkerPool, nodes: &[Cache]) -> Result<(), WorkloadError> {
    let nodes = nodes.iter().map(|node| redis::connect(&node.server));
    let leases = redis::quorum::QuorumLeases {
        nodes: nodes.collect::<Result<_, _>>()?,
    };
    start_workers(workers, &leases, &names::REDLOCK, 0, 1);
    let split_leases = leases.clone();
    workers.supervise("split redlock", Duration::ZERO, move || {
        redis::quorum::stay_split(split_leases.clone())
    });
    workers.supervise("redlock without its quorum", Duration::ZERO, move || {
        redis::quorum::lose_quorum(leases.clone())
    });
    Ok(())
}

async fn start_on_etcd(workers: &mut WorkerPool, server: &Etcd) -> Result<(), WorkloadError> {
    let access = etcd::Access::new(server).await?;
    start_workers(
        workers,
        &etcd::keys::KeyLeases {
            client: access.quick.clone(),
        },
        &names::COORD,
        2,
        PARTS,
    );
    let client = access.quick.clone();
    workers.supervise("key without lease", Duration::ZERO, move || {
        etcd::keys::maintain_key_without_lease(client.clone())
    });
    // Staggered, so that they queue in this order.
    for second in 0..4 {
        let access = access.clone();
        workers.supervise("rotating mutex", Duration::from_secs(second), move || {
            etcd::mutex::wait_and_hold(access.clone(), etcd::mutex::CONTENDED, Duration::from_secs(45))
        });
    }
    let worker_access = access.clone();
    workers.supervise("mutex", Duration::ZERO, move || {
        etcd::mutex::wait_and_hold(
            worker_access.clone(),
            etcd::mutex::QUIET,
            Duration::from_secs(600),
        )
    });
    for (owner, second) in [("scheduler-1", 0), ("scheduler-2", 2)] {
        let access = access.clone();
        workers.supervise("candidate", Duration::from_secs(second), move || {
            etcd::election::campaign_and_lead(access.clone(), owner)
        });
    }
    Ok(())
}

async fn start_deadlock(
    workers: &mut WorkerPool,
    orders: &Orders,
    coord: &Etcd,
) -> Result<(), WorkloadError> {
    let database = Access::new(&orders.server, &orders.passwords.app)?;
    let coord = etcd::Access::new(coord).await?;
    workers.supervise("deadlock", Duration::ZERO, move || {
        deadlock::run_until_evicted(database.clone(), coord.clone())
    });
    Ok(())
}

fn start_on_zookeeper(workers: &mut WorkerPool, server: &Zookeeper) {
    let mut queue = |path, owner, contender, second, hold| {
        let cluster = server.cluster();
        workers.supervise("contender", Duration::from_secs(second), move || {
            zookeeper::wait_and_hold(cluster.clone(), path, owner, contender, Duration::from_secs(hold))
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

fn start_on_consul(workers: &mut WorkerPool, server: &Consul) -> Result<(), WorkloadError> {
    let access = consul::Access::new(&server.url())?;
    let mut hold = |key, owner, second, length| {
        let access = access.clone();
        workers.supervise("session", Duration::from_secs(second), move || {
            consul::wait_and_hold(access.clone(), key, owner, Duration::from_secs(length))
        });
    };
    for (owner, second) in consul::CONTENDERS.into_iter().zip(0..) {
        hold(consul::CONTENDED, owner, second, 30);
    }
    for (key, owner) in consul::QUIET {
        hold(key, owner, 0, 600);
    }
    workers.supervise("lost session", Duration::ZERO, move || {
        consul::lose_session(access.clone())
    });
    Ok(())
}
