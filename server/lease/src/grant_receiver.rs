//! Receives the answer of an acquire. If the client disconnects before the answer is sent, the sender releases the grant. If it
//! disconnects after the answer was sent and before it was received, the grant is released here.

use std::sync::atomic::{AtomicBool, Ordering};

use domain::lease::LeaseId;

use super::core::{Answer, BatchReply};
use super::error::LeaseError;
use super::operation::OperationResult;

pub(super) struct GrantReceiver<F: FnMut(LeaseId)> {
    answer: Answer,
    release: F,
}

impl<F: FnMut(LeaseId)> GrantReceiver<F> {
    /// `release` is called with a grant that was not received.
    pub(super) fn new(answer: Answer, release: F) -> Self {
        Self { answer, release }
    }

    /// # Errors
    /// The error of the batch; `ShuttingDown` if there is no answer.
    pub(super) async fn receive(&mut self) -> Result<BatchReply, LeaseError> {
        (&mut self.answer).await.unwrap_or(Err(LeaseError::ShuttingDown))
    }
}

impl<F: FnMut(LeaseId)> Drop for GrantReceiver<F> {
    fn drop(&mut self) {
        self.answer.close();
        if let Ok(Ok(BatchReply {
            done:
                OperationResult::Acquired {
                    lease,
                    replayed: false,
                    ..
                },
            ..
        })) = self.answer.try_recv()
        {
            (self.release)(lease.id);
        }
    }
}

/// A grant that no client has received yet. Several clients may wait for it. It is released if it is dropped before one of them
/// receives it.
pub struct PendingGrant {
    release: Box<dyn Fn() + Send + Sync>,
    is_received: AtomicBool,
}

impl PendingGrant {
    pub(super) fn new(release: impl Fn() + Send + Sync + 'static) -> Self {
        Self {
            release: Box::new(release),
            is_received: AtomicBool::new(false),
        }
    }

    /// A client has the lease, or is about to be answered.
    pub fn receive(&self) {
        self.is_received.store(true, Ordering::Relaxed);
    }
}

impl Drop for PendingGrant {
    fn drop(&mut self) {
        if !*self.is_received.get_mut() {
            (self.release)();
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::lease::StoreTime;
    use domain::tick::Tick;
    use tokio::sync::oneshot;

    use super::*;
    use crate::test_lease::granted_lease;

    fn granted() -> BatchReply {
        let now = StoreTime::from_ms(1_000);
        BatchReply {
            done: OperationResult::Acquired {
                lease: granted_lease(now),
                reclaimed: false,
                replayed: false,
            },
            now,
            read_at: Tick(0),
        }
    }

    #[tokio::test]
    async fn a_grant_that_was_sent_and_not_read_is_released() {
        let mut released = Vec::new();
        let (reply, answer) = oneshot::channel();
        let receiver = GrantReceiver::new(answer, |lease| released.push(lease));
        assert!(reply.send(Ok(granted())).is_ok());
        drop(receiver);
        assert_eq!(released.len(), 1);
    }

    #[tokio::test]
    async fn a_grant_that_was_read_is_not_released() {
        let mut released = Vec::new();
        let (reply, answer) = oneshot::channel();
        let mut receiver = GrantReceiver::new(answer, |lease| released.push(lease));
        assert!(reply.send(Ok(granted())).is_ok());
        assert!(receiver.receive().await.is_ok());
        drop(receiver);
        assert!(released.is_empty());
    }
}
