//! Deletes ended leases, idempotency keys and fencing rejections past their retention. One replica at a time does it.

use domain::lease::StoreTime;
use etcd_client::{Compare, CompareOp, DeleteOptions, GetOptions, KeyValue, PutOptions, Txn, TxnOp};

use super::EtcdStore;
use super::identity::{read_page, run};
use super::keys::KeyRange;
use super::snapshot::read_results;
use super::values::{IdempotencyValue, LeaseRecord, decode};
use crate::store::retention::{LeaseRetention, PruneCursor, keys_expired_before, rejections_recorded_before};
use crate::store::{PruneProgress, StoreError};

/// Keys visited by one step of each kind.
const STEP_KEYS: i64 = 400;
/// Deletions of one transaction.
const DELETIONS_MAX: usize = 60;

impl EtcdStore {
    pub(super) async fn prune(&self, retention: &LeaseRetention) -> Result<PruneProgress, StoreError> {
        if !self.is_janitor().await? {
            return Ok(PruneProgress::Done);
        }
        let now = self.store_clock.read().now;
        let mut is_full = self.prune_rejections(now).await?;
        is_full |= self.prune_keys(now).await?;
        for cursor in PruneCursor::ALL {
            is_full |= self.prune_leases(retention, cursor, now).await?;
        }
        Ok(if is_full {
            PruneProgress::More
        } else {
            PruneProgress::Done
        })
    }

    /// The key of the janitor is on the lease of its replica.
    async fn is_janitor(&self) -> Result<bool, StoreError> {
        let key = self.keys.janitor();
        let options = PutOptions::new().with_lease(self.registration.lease());
        let txn = Txn::new()
            .when(vec![Compare::mod_revision(key.clone(), CompareOp::Equal, 0)])
            .and_then(vec![TxnOp::put(
                key.clone(),
                self.replica.as_bytes(),
                Some(options),
            )])
            .or_else(vec![TxnOp::get(key, None)]);
        let answer = self.readers.call(|client| run(client, txn.clone())).await?;
        if answer.succeeded() {
            return Ok(true);
        }
        let found = read_results(answer.op_responses());
        let holder = found.first().and_then(|pairs: &Vec<KeyValue>| pairs.first());
        Ok(holder.is_some_and(|pair| pair.value() == self.replica.as_bytes()))
    }

    async fn prune_leases(
        &self,
        retention: &LeaseRetention,
        cursor: PruneCursor,
        now: StoreTime,
    ) -> Result<bool, StoreError> {
        let all = self.keys.all_leases();
        let after = self.prune_cursors.lock().position(cursor).to_owned();
        let from = [&all.from, after.as_bytes(), b"\0"].concat();
        let to = [&all.from, retention.visited_below(cursor, now).as_bytes()].concat();
        if from >= to {
            return Ok(false);
        }
        let pairs = read_page(&self.readers, &from, &to, GetOptions::new().with_limit(STEP_KEYS)).await?;
        let due = retention.due(now);
        let mut deletions = Vec::new();
        for pair in &pairs {
            let record: LeaseRecord = decode(pair.key(), pair.value())?;
            let is_due = record.ended.as_ref().and_then(super::values::LeaseValue::ended);
            if is_due.is_some_and(|(at, is_released)| {
                at < due.ended_before || (is_released && at < due.released_before)
            }) {
                deletions.push(TxnOp::delete(pair.key(), None));
            }
        }
        // An ended lease never changes.
        for deletions in deletions.chunks(DELETIONS_MAX) {
            let txn = Txn::new().and_then(deletions.to_vec());
            self.readers.call(|client| run(client, txn.clone())).await?;
        }
        if let Some(last) = pairs.last() {
            let through = String::from_utf8_lossy(self.keys.name(last.key())).into_owned();
            self.prune_cursors.lock().advance(cursor, through);
        }
        Ok(pairs.len() as i64 >= STEP_KEYS)
    }

    async fn prune_keys(&self, now: StoreTime) -> Result<bool, StoreError> {
        let KeyRange { from, to } = self.keys.all_idempotency();
        let begin = self.key_cursor.lock().clone().unwrap_or(from);
        let pairs = read_page(
            &self.readers,
            &begin,
            &to,
            GetOptions::new().with_limit(STEP_KEYS),
        )
        .await?;
        let expired_before = keys_expired_before(now);
        let mut expired = Vec::new();
        for pair in &pairs {
            let value: IdempotencyValue = decode(pair.key(), pair.value())?;
            if StoreTime::from_ms(value.created_at) < expired_before {
                expired.push((pair.key().to_vec(), pair.mod_revision()));
            }
        }
        for expired in expired.chunks(DELETIONS_MAX) {
            // A key that was bound again meanwhile is kept, and the others of its transaction for one more round.
            let compares = expired
                .iter()
                .map(|(key, at)| Compare::mod_revision(key.clone(), CompareOp::Equal, *at));
            let deletions = expired.iter().map(|(key, _)| TxnOp::delete(key.clone(), None));
            let txn = Txn::new()
                .when(compares.collect::<Vec<_>>())
                .and_then(deletions.collect::<Vec<_>>());
            self.readers.call(|client| run(client, txn.clone())).await?;
        }
        let is_full = pairs.len() as i64 >= STEP_KEYS;
        let next = pairs.last().filter(|_| is_full);
        *self.key_cursor.lock() = next.map(|last| [last.key(), b"\0"].concat());
        // A round without deletions need not be hurried.
        Ok(is_full && !expired.is_empty())
    }

    async fn prune_rejections(&self, now: StoreTime) -> Result<bool, StoreError> {
        let KeyRange { from, to } = self
            .keys
            .rejections_between(0, rejections_recorded_before(now).ms());
        let options = GetOptions::new().with_limit(STEP_KEYS).with_keys_only();
        let pairs = read_page(&self.readers, &from, &to, options).await?;
        let Some(last) = pairs.last() else {
            return Ok(false);
        };
        let end = [last.key(), b"\0"].concat();
        let delete = TxnOp::delete(from, Some(DeleteOptions::new().with_range(end)));
        let txn = Txn::new().and_then(vec![delete]);
        self.readers.call(|client| run(client, txn.clone())).await?;
        Ok(pairs.len() as i64 >= STEP_KEYS)
    }
}
