//! Locks by `SET NX PX`, with a raw token or a JSON value.

use std::time::Duration;

use domain::duration::millis;
use redis::Script;
use redis::aio::ConnectionManager;

use crate::fault::WorkloadError;
use crate::leases::Leases;
use crate::rng;

#[derive(Debug, Clone, Copy)]
pub(crate) enum Shape {
    /// The value is only the holder's secret.
    Raw,
    /// `{"ownerId": …, "leaseId": …}`
    Json,
}

#[derive(Clone)]
pub(crate) struct KeyLeases {
    pub(crate) server: ConnectionManager,
    pub(crate) shape: Shape,
}

pub(crate) struct Key {
    name: String,
    value: String,
    ttl: Duration,
}

pub(super) const RENEW: &str = "
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])";
pub(super) const RELEASE: &str = "
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])";

impl Leases for KeyLeases {
    type Held = Key;

    async fn acquire(
        &self,
        resource: &str,
        owner: &str,
        ttl: Duration,
    ) -> Result<Option<Key>, WorkloadError> {
        let (name, id) = (format!("lock:{resource}"), rng::lease_id());
        let value = match self.shape {
            Shape::Raw => id,
            Shape::Json => serde_json::json!({ "ownerId": owner, "leaseId": id }).to_string(),
        };
        let mut set = redis::cmd("SET");
        set.arg(&name).arg(&value).arg("NX").arg("PX").arg(millis(ttl));
        let acquired: Option<String> = set.query_async(&mut self.server.clone()).await?;
        Ok(acquired.map(|_| Key { name, value, ttl }))
    }

    async fn renew(&self, held: &Key) -> Result<bool, WorkloadError> {
        let script = Script::new(RENEW);
        let mut call = script.key(&held.name);
        call.arg(&held.value).arg(millis(held.ttl));
        Ok(call.invoke_async(&mut self.server.clone()).await?)
    }

    async fn release(&self, held: Key) -> Result<(), WorkloadError> {
        let script = Script::new(RELEASE);
        let mut call = script.key(&held.name);
        let _: bool = call
            .arg(&held.value)
            .invoke_async(&mut self.server.clone())
            .await?;
        Ok(())
    }
}
