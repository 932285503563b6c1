//! Claims of idempotency keys whose shard is not that of their resource.
//!
//! The shard of a key is a hash of its issuer and the key, so that a key which comes again with another resource meets
//! its first request there and is refused. The shard of the resource binds the key to the grant, as on a single store.
//! In order:
//!
//! 1. The shard of the key binds the key to the request, or answers that another request has it.
//! 2. The shard of the resource grants, and binds the key to the lease, in one transaction.
//!
//! A crash, a network cut or a lost answer between the two leaves a claimed key without a grant; a retry of the same request
//! finds its own claim, goes on, and gets at most one lease, because step 2 alone decides that.
//!
//! A shard that does not answer refuses its own resources and nothing else, so a claim that gets no answer does not
//! stop the grant. The price: while the shard of a key is down, its use for two requests in two other shards is not
//! noticed. Each of them is then granted at most once, which is all that a retry relies on.

use std::sync::Arc;
use std::time::Duration;

use super::Shards;
use crate::core::Core;
use crate::error::LeaseError;
use crate::operation::{IdempotencyKey, Operation, OperationResult};
use crate::store::Lane;

/// Longest wait for a claim. With the reply of the resource's shard after it, a request stays below its limit in all but
/// the first seconds of an outage of two shards.
const CLAIM_TIMEOUT: Duration = Duration::from_millis(900);

impl Shards {
    /// Claims the key for its request before `core`, the shard of the resource, runs it.
    ///
    /// # Errors
    /// `KeyReused`; `Overloaded` and `ShuttingDown`, as for any operation of this server.
    pub(crate) async fn claim_key(&self, key: &IdempotencyKey, core: &Core) -> Result<(), LeaseError> {
        let Ok(key_shard) = self.of_key(&key.name) else {
            return Ok(());
        };
        if std::ptr::eq(core, Arc::as_ptr(key_shard)) || key_shard.is_down() {
            return Ok(());
        }
        let claim = Operation::ClaimKey(Box::new(key.clone()));
        let answer = tokio::time::timeout(CLAIM_TIMEOUT, key_shard.submit_and_wait(Lane::Main, claim)).await;
        match answer {
            Ok(Ok(answer)) if answer.done == OperationResult::KeyReused => Err(LeaseError::KeyReused),
            Ok(Ok(_)) | Err(_) | Ok(Err(LeaseError::Unavailable)) => Ok(()),
            Ok(Err(error)) => Err(error),
        }
    }
}
