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

/// The console's account: reads lock keys, hears notifications, changes nothing.
pub(super) fn watch_acl(password: &str) -> String {
    format!(
        "{WATCH_USER} on >{password} resetkeys ~lock:* resetchannels &__key* -@all +@read +@connection +info +time \
         +subscribe +psubscribe +unsubscribe +punsubscribe +config|get"
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
