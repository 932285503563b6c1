//! Locks in Redisson's format: a hash with one field `uuid:threadId`, whose number counts re-entries, and a TTL
//! renewed by a watchdog.

use std::time::Duration;

use domain::duration::millis;
use redis::Script;
use redis::aio::ConnectionManager;

use crate::fault::WorkloadError;
use crate::leases::Leases;
use crate::rng;
use runtime::random;

#[derive(Clone)]
pub(crate) struct HashLeases {
    pub(crate) server: ConnectionManager,
}

pub(crate) struct Hash {
    name: String,
    field: String,
    ttl: Duration,
}

const ACQUIRE: &str = "
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
redis.call('HINCRBY', KEYS[1], ARGV[1], ARGV[2])
return redis.call('PEXPIRE', KEYS[1], ARGV[3])";
const RENEW: &str = "
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])";
const RELEASE: &str = "
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then return 0 end
return redis.call('DEL', KEYS[1])";

impl Leases for HashLeases {
    type Held = Hash;

    /// A Redisson lock has no owner name: its field identifies the client.
    async fn acquire(
        &self,
        resource: &str,
        _owner: &str,
        ttl: Duration,
    ) -> Result<Option<Hash>, WorkloadError> {
        let name = format!("lock:{resource}");
        let field = format!("{}:{}", uuid(), 20 + rng::below(60));
        let script = Script::new(ACQUIRE);
        let mut call = script.key(&name);
        call.arg(&field).arg(1 + rng::below(2)).arg(millis(ttl));
        let acquired: bool = call.invoke_async(&mut self.server.clone()).await?;
        Ok(acquired.then_some(Hash { name, field, ttl }))
    }

    async fn renew(&self, held: &Hash) -> Result<bool, WorkloadError> {
        let script = Script::new(RENEW);
        let mut call = script.key(&held.name);
        call.arg(&held.field).arg(millis(held.ttl));
        Ok(call.invoke_async(&mut self.server.clone()).await?)
    }

    async fn release(&self, held: Hash) -> Result<(), WorkloadError> {
        let script = Script::new(RELEASE);
        let mut call = script.key(&held.name);
        let _: bool = call
            .arg(&held.field)
            .invoke_async(&mut self.server.clone())
            .await?;
        Ok(())
    }
}

/// A random UUID, version 4.
fn uuid() -> String {
    let (high, low) = (random::number(), random::number());
    format!(
        "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
        high >> 32,
        high >> 16 & 0xffff,
        high & 0xfff,
        low >> 48 & 0x3fff | 0x8000,
        low & 0xffff_ffff_ffff
    )
}

#[cfg(test)]
mod tests {
    use super::uuid;

    #[test]
    fn a_client_id_has_the_form_of_redisson() {
        // Five groups of hex digits, with version and variant at their positions.
        let id = uuid();
        let groups: Vec<usize> = id.split('-').map(str::len).collect();
        assert_eq!(groups, [8, 4, 4, 4, 12]);
        assert_eq!(id.as_bytes()[14], b'4');
        assert!(b"89ab".contains(&id.as_bytes()[19]), "{id}");
    }
}
