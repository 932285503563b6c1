//! Rejected writes with older tokens: evidence that two owners act as holders of one lease.

use std::collections::HashMap;
use std::sync::Arc;

use domain::escape::visible;
use domain::lease::{Lease, StoreTime};
use domain::names::Resource;
use domain::observation::ObservedCondition;
use domain::tick::Tick;
use tokio::sync::Mutex;

use super::to_datetime;
use lease::store::StaleWrite;
use lease::{LeaseError, LeaseService};
use runtime::clock::Clock;

/// An older holder counts as active for this long after its last rejected write, in
/// milliseconds.
const ACTIVE_MS: i64 = 300_000;
/// A reading is reused for this long, in milliseconds; longer if reading is slow.
const FRESH_MS: i64 = 250;
/// Readings take at most 1/`SHARE` of the time.
const SHARE: i64 = 20;

/// The newest write of each resource, shared by concurrent readings.
pub(super) type ByResource = Arc<HashMap<Resource, StaleWrite>>;

/// With the time until which it is reused.
#[derive(Debug, Default)]
pub(super) struct StaleWrites(Mutex<Option<(Tick, ByResource)>>);

impl StaleWrites {
    /// The recent stale writes; `now` is by the store's clock.
    pub(super) async fn recent(
        &self,
        service: &LeaseService,
        clock: &Clock,
        now: StoreTime,
    ) -> Result<ByResource, LeaseError> {
        let mut cached = self.0.lock().await;
        if let Some((_, writes)) = cached.as_ref().filter(|(until, _)| clock.tick() < *until) {
            return Ok(writes.clone());
        }
        let started_at = clock.tick();
        let writes = service.stale_writes(now.plus(-ACTIVE_MS)).await?;
        let by_resource = writes.into_iter().map(|write| (write.resource.clone(), write));
        let writes: ByResource = Arc::new(by_resource.collect());
        let read_at = clock.tick();
        let fresh_ms = FRESH_MS.max(read_at.since(started_at) * SHARE);
        *cached = Some((read_at.plus(fresh_ms), writes.clone()));
        Ok(writes)
    }
}

/// Two owners, if an older holder wrote recently while this lease was live.
pub(super) fn condition(
    lease: &Lease,
    write: Option<&StaleWrite>,
    now: StoreTime,
) -> Option<ObservedCondition> {
    let write = write.filter(|write| {
        write.token < lease.token && write.at >= lease.acquired_at && now.since(write.at) < ACTIVE_MS
    })?;
    let writer = write
        .owner
        .as_deref()
        .map_or("A client".into(), |owner| visible(owner).into_owned());
    let why = format!(
        "{writer} wrote with token {} at {} after {} was granted {}",
        write.token,
        to_datetime(write.at).format("%H:%M:%S UTC"),
        visible(lease.owner.as_str()),
        lease.token,
    );
    Some(ObservedCondition::DualOwner { why: why.into() })
}

#[cfg(test)]
mod tests {
    use domain::lease::{LeaseId, Metadata, Ttl};
    use domain::names::OwnerId;
    use domain::token::FencingToken;

    use super::*;

    fn at(ms: i64) -> StoreTime {
        StoreTime::from_ms(ms)
    }

    fn lease() -> Lease {
        Lease {
            id: LeaseId::from_parts(0, [7; 10]),
            token: FencingToken::new(1_841),
            owner: OwnerId::new("worker-9"),
            issuer: "test".into(),
            ttl: Ttl::from_stored(30).unwrap(),
            metadata: Metadata::default(),
            acquired_at: at(1_000),
            renewed_at: at(1_000),
            expires_at: at(31_000),
            renewals: 0,
            margin_ms: 0,
            ending: None,
        }
    }

    fn write(token: u64, ms: i64) -> StaleWrite {
        StaleWrite {
            resource: Resource::from("jobs"),
            token: FencingToken::new(token),
            owner: Some("worker-3".to_owned()),
            at: at(ms),
        }
    }

    #[test]
    fn an_older_token_counts_while_its_successor_is_held() {
        let why = |write: &StaleWrite, now| match condition(&lease(), Some(write), at(now)) {
            Some(ObservedCondition::DualOwner { why }) => Some(why.into_owned()),
            _ => None,
        };
        assert_eq!(
            why(&write(1_840, 2_000), 3_000).unwrap(),
            "worker-3 wrote with token 1840 at 00:00:02 UTC after worker-9 was granted 1841"
        );
        // Before this lease was granted; with this lease's own token; older than the window.
        assert_eq!(why(&write(1_840, 999), 3_000), None);
        assert_eq!(why(&write(1_841, 2_000), 3_000), None);
        assert!(why(&write(1_840, 2_000), 2_000 + ACTIVE_MS - 1).is_some());
        assert_eq!(why(&write(1_840, 2_000), 2_000 + ACTIVE_MS), None);
    }
}
