//! The queue for password hashing: bounded in length and time, with a share reserved for known users.
//!
//! A flood of attempts fills only the shared part. Users with a session, or who signed in from the same source
//! before, have a queue and a permit of their own. Attempts are counted in `sign_in_throttle`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::error::IdentityError;
use super::limits::{HASH_QUEUE_MAX, HASH_QUEUE_RETRY, HASH_QUEUE_WAIT_MAX, HASHES_RESERVED, HASHES_SHARED};

/// Which part of the capacity an attempt may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Share {
    Anyone,
    /// Also the reserved part.
    Known,
}

#[derive(Debug)]
pub(super) struct HashingQueue {
    shared: Arc<Semaphore>,
    reserved: Arc<Semaphore>,
    slots: Arc<Semaphore>,
    reserved_slots: Arc<Semaphore>,
    evaluated: Arc<AtomicU64>,
}

/// A place in the queue, kept until the hash is computed.
#[derive(Debug)]
pub(super) struct QueueSlot {
    share: Share,
    _permit: OwnedSemaphorePermit,
}

/// Permit for one hash. Owned by the computing thread, so that a disconnecting client does not free it early.
#[derive(Debug)]
pub(super) struct HashingPermit {
    evaluated: Arc<AtomicU64>,
    _slot: QueueSlot,
    _permit: OwnedSemaphorePermit,
}

impl Default for HashingQueue {
    fn default() -> Self {
        let semaphore = |permits| Arc::new(Semaphore::new(permits));
        Self {
            shared: semaphore(HASHES_SHARED),
            reserved: semaphore(HASHES_RESERVED),
            slots: semaphore(HASH_QUEUE_MAX),
            reserved_slots: semaphore(HASH_QUEUE_MAX),
            evaluated: Arc::default(),
        }
    }
}

impl HashingQueue {
    /// # Errors
    /// `Busy`: the queue is full.
    pub(super) fn reserve_slot(&self, share: Share) -> Result<QueueSlot, IdentityError> {
        let slots = match share {
            Share::Anyone => &self.slots,
            Share::Known => &self.reserved_slots,
        };
        let permit = slots.clone().try_acquire_owned().map_err(|_| busy())?;
        Ok(QueueSlot {
            share,
            _permit: permit,
        })
    }

    /// Waits for a permit.
    ///
    /// # Errors
    /// `Busy`: there was none in time.
    pub(super) async fn acquire_permit(&self, slot: QueueSlot) -> Result<HashingPermit, IdentityError> {
        let shared = self.shared.clone().acquire_owned();
        let permit = async {
            match slot.share {
                Share::Anyone => shared.await,
                Share::Known => tokio::select! {
                    biased;
                    permit = self.reserved.clone().acquire_owned() => permit,
                    permit = shared => permit,
                },
            }
        };
        let permit = in_time(permit).await?.map_err(|_| busy())?;
        Ok(HashingPermit {
            evaluated: self.evaluated.clone(),
            _slot: slot,
            _permit: permit,
        })
    }

    /// Hashes computed since the start.
    pub(super) fn evaluated(&self) -> u64 {
        self.evaluated.load(Ordering::Relaxed)
    }
}

impl HashingPermit {
    /// Call once per hash.
    pub(super) fn count(&self) {
        self.evaluated.fetch_add(1, Ordering::Relaxed);
    }
}

/// # Errors
/// `Busy`: it took longer than the queue's time limit.
pub(super) async fn in_time<T>(work: impl Future<Output = T>) -> Result<T, IdentityError> {
    tokio::time::timeout(HASH_QUEUE_WAIT_MAX, work)
        .await
        .map_err(|_| busy())
}

pub(super) const fn busy() -> IdentityError {
    IdentityError::Busy {
        wait_s: whole_seconds(HASH_QUEUE_RETRY),
    }
}

/// Rounded up, at least one: the value of `Retry-After`.
pub(super) const fn whole_seconds(wait: Duration) -> u64 {
    let seconds = wait.as_millis().div_ceil(1_000) as u64;
    if seconds == 0 { 1 } else { seconds }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_full_queue_refuses_at_once_and_reserves_a_share() {
        // One hash computes and 31 wait; the next anonymous attempt is refused, a known user gets the reserved
        // permit.
        let queue = HashingQueue::default();
        let first = queue.reserve_slot(Share::Anyone).unwrap();
        let computing = queue.acquire_permit(first).await.unwrap();
        computing.count();
        let _waiting: Vec<QueueSlot> = (1..HASH_QUEUE_MAX)
            .map(|_| queue.reserve_slot(Share::Anyone).unwrap())
            .collect();
        let refused = queue.reserve_slot(Share::Anyone).unwrap_err();
        assert!(matches!(refused, IdentityError::Busy { wait_s: 2 }));
        let known = queue.reserve_slot(Share::Known).unwrap();
        let _known = queue.acquire_permit(known).await.unwrap();
        assert_eq!(queue.evaluated(), 1);
    }

    #[tokio::test]
    async fn waiting_for_a_hash_ends_after_two_seconds() {
        // The permit is never returned.
        let queue = HashingQueue::default();
        let _computing = queue
            .acquire_permit(queue.reserve_slot(Share::Anyone).unwrap())
            .await
            .unwrap();
        let late = queue
            .acquire_permit(queue.reserve_slot(Share::Anyone).unwrap())
            .await
            .unwrap_err();
        assert!(matches!(late, IdentityError::Busy { .. }));
        assert!(queue.reserve_slot(Share::Anyone).is_ok());
    }
}
