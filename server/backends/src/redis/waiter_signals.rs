//! Waiter signals of libraries whose waiters sleep until a release: sent in the script that deletes, as the
//! library's own release does. Redisson's are in its own script. Pure.

use config::redis::RedisWake;

/// What the script does before it deletes, and its second key.
pub(super) struct WaiterSignal {
    pub(super) script: &'static str,
    /// `None`: the script needs no key.
    pub(super) key: Option<Vec<u8>>,
}

/// python-redis-lock 4: one element, for a second.
const PYTHON_REDIS_LOCK: &str = "
redis.call('DEL', KEYS[2])
redis.call('LPUSH', KEYS[2], 1)
redis.call('PEXPIRE', KEYS[2], 1000)";
/// walrus 0.9: at most one element.
const WALRUS: &str = "
redis.call('LPUSH', KEYS[2], 1)
redis.call('LTRIM', KEYS[2], 0, 0)";
/// ioredis-mutex 1: a message with the key.
const IOREDIS_MUTEX: &str = "
redis.call('PUBLISH', 'mutex-unlock', KEYS[1])";

/// `None`: no library is configured, or the key does not have the prefix that the library gives it.
pub(super) fn signal(wake: RedisWake, key: &[u8]) -> Option<WaiterSignal> {
    let with_prefix = |prefix: &[u8]| Some([prefix, key.strip_prefix(b"lock:")?].concat());
    let (script, key) = match wake {
        RedisWake::None => return None,
        RedisWake::PythonRedisLock => (PYTHON_REDIS_LOCK, Some(with_prefix(b"lock-signal:")?)),
        RedisWake::Walrus => (WALRUS, Some(with_prefix(b"lock.event:")?)),
        RedisWake::IoredisMutex => (IOREDIS_MUTEX, None),
    };
    Some(WaiterSignal { script, key })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_library_has_its_own_signal() {
        // Names as the libraries make them; a key without their prefix is not theirs.
        let key = |wake| signal(wake, b"lock:orders").and_then(|signal| signal.key);
        assert_eq!(key(RedisWake::PythonRedisLock).unwrap(), b"lock-signal:orders");
        assert_eq!(key(RedisWake::Walrus).unwrap(), b"lock.event:orders");
        assert!(key(RedisWake::IoredisMutex).is_none());
        assert!(signal(RedisWake::IoredisMutex, b"any").is_some());
        assert!(signal(RedisWake::Walrus, b"mutex:orders").is_none());
        assert!(signal(RedisWake::None, b"lock:orders").is_none());
    }
}
