//! The demo's two Redis servers: connections that heal, and the clients that hold locks in them.

pub(super) mod hashes;
pub(super) mod keys;
pub(super) mod oddities;
pub(super) mod pause;

use std::time::Duration;

use redis::Client;
use redis::aio::{ConnectionManager, ConnectionManagerConfig};

use super::fault::Fault;
use crate::throwaway::Redis;

pub(super) const WATCH_USER: &str = "leasehold_watch";
pub(super) const UNLOCK_USER: &str = "leasehold_unlock";

/// The account of forced unlocks of docs/backends/redis.md.
pub(super) fn unlock_acl(password: &str) -> String {
    format!(
        "{UNLOCK_USER} on >{password} resetkeys resetchannels ~lock:* ~redisson_lock_queue:{{lock:*}} \
         &redisson_lock__channel:* &redisson_rwlock:* -@all +ping +select +type +strlen +getrange +hlen +memory|usage \
         +hget +hgetall +hexists +lrange +eval +del +publish"
    )
}

/// The console's account as docs/backends/redis.md has it: reads lock keys, hears notifications, changes nothing.
/// Redis 6 does not know all of it.
pub(super) fn watch_acl(password: &str, is_old: bool) -> String {
    let (keys, newer) = if is_old {
        ("~lock:*", "")
    } else {
        ("%R~lock:*", " +acl|dryrun")
    };
    format!(
        "{WATCH_USER} on >{password} resetkeys resetchannels {keys} &__keyspace@0__:lock:* &__keyevent@0__:* \
         -@all +ping +select +scan +pttl +getrange +strlen +type +hlen +memory|usage +hgetall +object|encoding +object|idletime \
         +time +info +config|get +psubscribe +acl|whoami{newer}"
    )
}

/// Connects when first used, and again after the server was away.
pub(super) fn connect(server: &Redis) -> Result<ConnectionManager, Fault> {
    let config = ConnectionManagerConfig::new()
        .set_response_timeout(Some(Duration::from_secs(3)))
        .set_connection_timeout(Some(Duration::from_secs(3)))
        .set_number_of_retries(1);
    Ok(ConnectionManager::new_lazy_with_config(
        Client::open(server.url())?,
        config,
    )?)
}
