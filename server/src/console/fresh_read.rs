//! A read from the backend itself, for the page of one lock.

use std::time::Duration;

use domain::blockers::Blocker;
use domain::duration::millis;
use domain::lock::Lock;
use domain::lock_detail::Fresh;
use domain::names::{BackendName, OwnerId};
use domain::observation::{Inspection, Waiter};
use domain::quorum::node_number;
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
        let reading = async {
            let _permit = self.backends.page_read(&lock.id.backend).await;
            backend.inspect(&lock.id.source, &lock.id.resource).await
        };
        let answer = tokio::time::timeout(FRESH_READ_TIMEOUT, reading).await;
        let read_at = self.clock.now().wall;
        let is_whole = self.visible.on(&lock.id.backend).is_everything();
        match answer.unwrap_or(Err(BackendError::NoAnswer {
            after_ms: patience_ms(),
        })) {
            Ok(Inspection { lock: None, .. }) => Reported::unknown(
                "it was released after the last scan; the next scan removes it from the list",
            ),
            Ok(found) => {
                let found = if is_whole { found } else { limit(found) };
                Reported::Value(Fresh {
                    blockers: found.blockers,
                    waiters: found.waiters,
                    owners: found.owners,
                    session: found.session,
                    quorum: found.quorum,
                    raw: found.raw,
                    related_locks: self.with_names_for(&lock.id.backend, found.related_locks),
                    read_at,
                })
            }
            Err(_) if !is_whole => Reported::unknown("the backend did not answer in time or gave an error"),
            Err(error) => Reported::Unknown(error.to_string().into()),
        }
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

/// For a caller who may see only a part of the backend.
fn limit(mut found: Inspection) -> Inspection {
    found.blockers = limit_blockers(found.blockers, &found.waiters, &found.owners);
    if let Some(quorum) = found.quorum.take() {
        for field in &mut found.raw {
            // The record of a lock on several nodes is by their addresses.
            if let Some(index) = quorum.nodes.iter().position(|cell| cell.node == field.name) {
                field.name = node_number(index);
            }
        }
        found.quorum = Some(quorum.limited());
    }
    found
}

/// For a caller who may see only a part of the backend: the sessions that hold this lock or wait for it, without the other
/// locks that they hold or wait for. A session that is left out has its blocked sessions in its place.
fn limit_blockers(blockers: Vec<Blocker>, waiters: &[Waiter], owners: &[OwnerId]) -> Vec<Blocker> {
    let mut limited = Vec::new();
    for node in blockers {
        let blocks = limit_blockers(node.blocks, waiters, owners);
        // A session waits for one lock at a time: what a waiter waits for is this lock.
        let is_waiter = waiters
            .iter()
            .any(|waiter| waiter.owner_id.as_str() == node.owner_id);
        let is_owner = owners.iter().any(|owner| owner.as_str() == node.owner_id);
        match (is_waiter, is_owner) {
            (true, _) => limited.push(Blocker { blocks, ..node }),
            (false, true) => limited.push(Blocker {
                holds: "the lock that the sessions below wait for".to_owned(),
                waited_ms: None,
                blocks,
                ..node
            }),
            (false, false) => limited.extend(blocks),
        }
    }
    limited
}

fn patience_ms() -> u64 {
    millis(FRESH_READ_TIMEOUT).unsigned_abs()
}
