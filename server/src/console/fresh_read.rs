//! A read from the backend itself, for the page of one lock.

use std::time::Duration;

use domain::duration::millis;
use domain::lock::Lock;
use domain::lock_detail::Fresh;
use domain::names::BackendName;
use domain::observation::Inspection;
use domain::quorum::Quorum;
use domain::reported::Reported;

use super::ServerConsole;
use backends::BackendError;

/// Timeout of a fresh read for a page, after which it shows only the last observation.
pub(super) const FRESH_READ_TIMEOUT: Duration = Duration::from_millis(1_500);

impl ServerConsole {
    pub(super) async fn read_fresh(&self, lock: &Lock) -> Reported<Fresh> {
        let Some(backend) = self.backends.get(&lock.id.backend) else {
            return Reported::unknown("this backend is not configured any more");
        };
        let reading = backend.inspect(&lock.id.source, &lock.id.resource);
        let answer = tokio::time::timeout(FRESH_READ_TIMEOUT, reading).await;
        let read_at = self.clock.now().wall;
        match answer.unwrap_or(Err(BackendError::NoAnswer {
            after_ms: patience_ms(),
        })) {
            Ok(Inspection { lock: None, .. }) => Reported::unknown(
                "it was released after the last scan; the next scan removes it from the list",
            ),
            Ok(found) => Reported::Value(Fresh {
                waiters: found.waiters,
                owners: found.owners,
                blockers: found.blockers,
                session: found.session,
                quorum: self.visible_quorum(&lock.id.backend, found.quorum),
                raw: found.raw,
                related_locks: self.with_names_for(&lock.id.backend, found.related_locks),
                read_at,
            }),
            Err(_) if !self.visible.on(&lock.id.backend).is_everything() => {
                Reported::unknown("the backend did not answer in time or gave an error")
            }
            Err(error) => Reported::Unknown(error.to_string().into()),
        }
    }

    /// The error text of a node is left out for a caller who may see only a part of the backend.
    fn visible_quorum(&self, backend: &BackendName, quorum: Option<Quorum>) -> Option<Quorum> {
        let mut quorum = quorum?;
        if !self.visible.on(backend).is_everything() {
            for node in &mut quorum.nodes {
                node.fault = None;
            }
        }
        Some(quorum)
    }

    /// Other locks of the same lease or session; names outside of the caller's scope are counted only.
    fn with_names_for(&self, backend: &BackendName, neighbours: Vec<String>) -> Vec<String> {
        if neighbours.is_empty() || self.visible.on(backend).is_everything() {
            return neighbours;
        }
        vec![format!(
            "{} more, under names that you may not see",
            neighbours.len()
        )]
    }
}

fn patience_ms() -> u64 {
    millis(FRESH_READ_TIMEOUT).unsigned_abs()
}
