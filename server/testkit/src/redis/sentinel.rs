//! A throwaway Sentinel.

use std::{ops::Deref, time::Duration};

use super::{Redis, RedisOptions};
use crate::{StartError, server::Server};

#[derive(Debug, Clone)]
pub struct SentinelOptions {
    /// Port of the master on 127.0.0.1.
    pub master_port: u16,
    pub master_name: String,
    /// Sentinels that must agree that the master is down.
    pub quorum: u32,
    /// Silence after which the master counts as down.
    pub down_after: Duration,
    /// More lines, e.g. `user watcher on >secret +@all`.
    pub config: Vec<String>,
}

/// A running Sentinel; see [`Server`] for its faults.
#[derive(Debug)]
pub struct RedisSentinel(Redis);

impl RedisSentinel {
    pub(crate) async fn start(options: SentinelOptions) -> Result<Self, StartError> {
        let SentinelOptions {
            master_port,
            master_name: name,
            quorum,
            down_after,
            config,
        } = options;
        let lines = vec![
            format!("sentinel monitor {name} 127.0.0.1 {master_port} {quorum}"),
            format!(
                "sentinel down-after-milliseconds {name} {}",
                down_after.as_millis()
            ),
            // A second attempt after a failed one follows soon.
            format!("sentinel failover-timeout {name} 4000"),
        ];
        let options = RedisOptions {
            sentinel: Some(lines),
            config,
            ..RedisOptions::default()
        };
        Redis::start(options).await.map(Self)
    }

    /// `redis://127.0.0.1:port/`, without an account.
    pub fn url(&self) -> String {
        self.0.url()
    }

    pub fn port(&self) -> u16 {
        self.0.port()
    }
}

impl Deref for RedisSentinel {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.0
    }
}
