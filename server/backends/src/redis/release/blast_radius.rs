//! What a forced unlock ends, and what the reviewer must know about the identity of a holder.

use config::redis::RedisWake;
use domain::force_release::BlastRadius;
use domain::names::OwnerId;
use domain::observation::{ObservedCondition, ObservedLock};
use domain::reported::Reported;

use crate::redis::waiter_signals;

/// Values up to this length, such as `1`, `true` or `locked`, are the same for every holder.
const SHORT_VALUE_BYTES: usize = 6;
const NOT_WOKEN: &str = "Waiters that sleep until a signal of their library (python-redis-lock, walrus, \
                         ioredis-mutex) are not woken: set `wake`.";

/// Only the key is deleted; for a read lock, for all sharers.
pub(in crate::redis) fn radius(
    lock: &ObservedLock,
    owners: &[OwnerId],
    wake: RedisWake,
    value_bytes: Option<usize>,
) -> Reported<BlastRadius> {
    if let Some(ObservedCondition::Unrecognised { why }) = &lock.condition {
        return Reported::Unknown(why.clone());
    }
    let mut radius = BlastRadius::default();
    for owner in owners.iter().skip(1) {
        radius.add_lock(
            format!("the same lock as {owner} holds it"),
            Some(lock.resource.clone()),
        );
    }
    radius.warn("Redis does not notify the holder: it continues until it reads its key.");
    if lock.source.as_str() == "key" && waiter_signals::signal(wake, lock.resource.as_bytes()).is_none() {
        radius.warn(NOT_WOKEN);
    }
    radius.warn(match lock.source.as_str() {
        "hash" => "Redisson's hash looks the same when the same thread acquires the lock again.",
        "zset" => "A Lock object of Symfony keeps its token: the set looks the same when it acquires the lock again.",
        _ if lock.lease_id.is_known() => {
            "A holder is identified by its value alone, which contains the lease id."
        }
        _ => "A holder is identified by its value alone: a next holder with the same value cannot be distinguished.",
    });
    if let Some(bytes) = value_bytes.filter(|bytes| *bytes <= SHORT_VALUE_BYTES) {
        radius.weaken(format!(
            "its value has {bytes} bytes, which is too short to be unique for each holder"
        ));
    }
    Reported::Value(radius)
}
