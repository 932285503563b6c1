//! Present waiters: the locks with the longest queues, each read fresh.

use std::cmp::Reverse;
use std::time::Duration;

use app::console::Console;
use domain::blockers::Blocker;
use domain::contention::trees::{self, LockQueue, wait_trees};
use domain::lock::Lock;
use domain::query::{InventoryQuery, Sort, SortKey};
use futures::future::join_all;

/// Locks that are read, and how long the page waits for them.
const LOCKS_MAX: u32 = 16;
const QUEUE_READ_TIMEOUT: Duration = Duration::from_millis(1_200);

/// Trees, most below the root first, and why they may be incomplete.
pub(super) async fn trees(console: &dyn Console) -> (Vec<Blocker>, Option<String>) {
    let query = InventoryQuery {
        sort: Sort {
            key: SortKey::Waiters,
            descending: true,
        },
        limit: LOCKS_MAX,
        ..InventoryQuery::default()
    };
    let Ok(page) = console.inventory(query).await else {
        return (
            Vec::new(),
            Some("The list of locks could not be read.".to_owned()),
        );
    };
    let is_complete = page.complete;
    let waited: Vec<Lock> = page
        .locks
        .into_iter()
        .filter(|lock| lock.waiter_count.known().is_some_and(|waiters| *waiters > 0))
        .collect();
    let reads = waited
        .iter()
        .map(|lock| tokio::time::timeout(QUEUE_READ_TIMEOUT, read_queue(console, lock)));
    let reads = join_all(reads).await;
    let unread_count = reads.iter().filter(|read| !matches!(read, Ok(Some(_)))).count();
    let (mut queues, mut roots) = (Vec::new(), Vec::new());
    for (queue, blockers) in reads.into_iter().flatten().flatten() {
        if blockers.is_empty() {
            queues.push(queue);
        } else {
            roots.extend(blockers);
        }
    }
    roots.extend(wait_trees(&queues));
    (
        merge_roots(roots),
        omissions(waited.len(), unread_count, is_complete),
    )
}

/// One tree of each session, largest first: a session that holds several locks is the root of the tree of each.
fn merge_roots(mut roots: Vec<Blocker>) -> Vec<Blocker> {
    roots.sort_by(|left, right| (&left.owner_id, left.pid).cmp(&(&right.owner_id, right.pid)));
    roots.dedup_by(|next, first| {
        let is_same = next.owner_id == first.owner_id && next.pid == first.pid && next.pid.is_some();
        if is_same {
            // For a reader with a scope, each tree has the waiters of its own lock only.
            let is_new = |waiter: &Blocker| first.blocks.iter().all(|known| known.pid != waiter.pid);
            let mut more: Vec<Blocker> = std::mem::take(&mut next.blocks);
            more.retain(is_new);
            first.blocks.append(&mut more);
        }
        is_same
    });
    roots.sort_by_key(|root| Reverse(trees::size(root)));
    roots
}

/// Waiters that the trees may lack.
fn omissions(queues: usize, unread: usize, is_complete: bool) -> Option<String> {
    let unread =
        (unread > 0).then(|| format!("{unread} of {queues} queues could not be read now and are left out."));
    let others =
        (queues >= LOCKS_MAX as usize).then(|| format!("Only the {LOCKS_MAX} longest queues are read."));
    let partial =
        (!is_complete).then(|| "Backends that are not read completely may have other waiters.".to_owned());
    let all: Vec<String> = [unread, others, partial].into_iter().flatten().collect();
    (!all.is_empty()).then(|| all.join(" "))
}

/// `None` if the lock is not held any more or cannot be read.
async fn read_queue(console: &dyn Console, lock: &Lock) -> Option<(LockQueue, Vec<Blocker>)> {
    let id = &lock.id;
    let detail = console
        .lock(id.backend.clone(), Some(id.source.clone()), id.resource.text())
        .await
        .ok()?;
    let fresh = detail.fresh.known()?;
    let owner = detail
        .lock
        .owner_id
        .known()
        .map_or_else(|| "unknown".to_owned(), ToString::to_string);
    let queue = LockQueue {
        lock: id.clone(),
        owner,
        held_ms: None,
        waiters: fresh
            .waiters
            .iter()
            .map(|waiter| (waiter.owner_id.to_string(), waiter.waited_ms.known().copied()))
            .collect(),
    };
    Some((queue, fresh.blockers.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(pid: i32, blocks: Vec<Blocker>) -> Blocker {
        Blocker {
            owner_id: format!("close#{pid}"),
            pid: Some(pid),
            doing: String::new(),
            holds: String::new(),
            waited_ms: None,
            blocks,
        }
    }

    #[test]
    fn trees_of_one_session_are_merged_whatever_their_size() {
        // Session 1 holds two locks, each with its own waiters; the tree of 9 is larger than one of its trees only.
        let waiter = |pid| session(pid, Vec::new());
        let roots = merge_roots(vec![
            session(1, vec![waiter(2), waiter(3), waiter(4)]),
            session(9, vec![waiter(7), waiter(8)]),
            session(1, vec![waiter(5)]),
        ]);
        let pids = |blockers: &[Blocker]| blockers.iter().filter_map(|node| node.pid).collect::<Vec<_>>();
        assert_eq!(pids(&roots), [1, 9]);
        assert_eq!(pids(&roots[0].blocks), [2, 3, 4, 5]);
    }

    #[test]
    fn unread_backends_and_queues_are_named() {
        assert_eq!(omissions(0, 0, true), None);
        let partial = omissions(0, 0, false).unwrap();
        assert!(partial.starts_with("Backends that are not read"), "{partial}");
        let all = omissions(LOCKS_MAX as usize, 2, false).unwrap();
        assert!(
            all.contains("2 of 16 queues") && all.contains("Only the 16 longest"),
            "{all}"
        );
    }
}
