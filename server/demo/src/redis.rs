//! The demo's Redis servers, two alone and three of a Redlock: reconnecting clients, and the workload that holds locks in them.

pub(super) mod hashes;
pub(super) mod keys;
pub(super) mod oddities;
pub(super) mod pause;
pub(super) mod quorum;

use std::time::Duration;

use redis::Client;
use redis::aio::{ConnectionManager, ConnectionManagerConfig};

use super::fault::WorkloadError;
use testkit::Redis;

pub(super) const WATCH_USER: &str = "leasehold_watch";
pub(super) const UNLOCK_USER: &str = "leasehold_unlock";

/// The account of forced unlocks in docs/backends/redis.md.
pub(super) fn unlock_acl(password: &str) -> String {
    format!(
        "{UNLOCK_USER} on >{password} resetkeys resetchannels ~lock:* ~redisson_lock_queue:{{lock:*}} \
         &redisson_lock__channel:* &redisson_rwlock:* -@all +ping +select +type +strlen +getrange +hlen +memory|usage \
         +hget +hgetall +hexists +lrange +eval +del +publish +pttl +zcard +zrange"
    )
}

/// The console's account of docs/backends/redis.md: reads lock keys, receives notifications, changes nothing. Redis
/// 6 does not support all of its rules.
pub(super) fn watch_acl(password: &str, is_old: bool) -> String {
    let (keys, newer) = if is_old {
        ("~lock:*", "")
    } else {
        ("%R~lock:*", " +acl|dryrun")
    };
    format!(
        "{WATCH_USER} on >{password} resetkeys resetchannels {keys} &__keyspace@0__:lock:* &__keyevent@0__:* \
         -@all +ping +select +scan +pttl +getrange +strlen +type +hlen +zcard +memory|usage +hgetall +zrange \
         +object|encoding +object|idletime +time +info +config|get +psubscribe +acl|whoami{newer}"
    )
}

/// Connects on first use, and reconnects.
pub(super) fn connect(server: &Redis) -> Result<ConnectionManager, WorkloadError> {
    let config = ConnectionManagerConfig::new()
        .set_response_timeout(Some(Duration::from_secs(3)))
        .set_connection_timeout(Some(Duration::from_secs(3)))
        .set_number_of_retries(1);
    Ok(ConnectionManager::new_lazy_with_config(
        Client::open(server.url())?,
        config,
    )?)
}
