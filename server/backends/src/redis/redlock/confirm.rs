//! Confirms readings without a quorum by a second, equal one.

use std::collections::{HashMap, HashSet};

use super::Redlock;
use super::merge::{Merged, Merger};
use super::node_reads::{self, Connections};
use crate::BackendError;
use crate::redis::limits::{CONFIRM_AFTER, CONFIRMS_MAX};
use crate::redis::page::{Page, RedisKey};
use crate::redis::settings::Settings;

/// Rows of one reading, and the keys that need another one.
pub(super) struct MergedPage {
    pub(super) page: Page,
    /// Key and signature of this reading.
    pub(super) unconfirmed: Vec<(RedisKey, u64)>,
}

/// Reads and merges some keys once.
pub(super) async fn read_once(
    redlock: &Redlock,
    settings: &Settings,
    connections: &Connections<'_>,
    keys: Vec<RedisKey>,
    earlier: &HashMap<RedisKey, u64>,
) -> Result<MergedPage, BackendError> {
    let all = node_reads::read(settings, connections, keys).await?;
    let merger = redlock.merger();
    let mut merged = MergedPage {
        page: Page::new(all.sent_at),
        unconfirmed: Vec::new(),
    };
    merged.page.troubles = all.troubles;
    let mut history = redlock.history.lock();
    for key in &all.keys {
        let row = match merger.merge(key, &mut history) {
            Merged::Absent => continue,
            Merged::Row(row) => row,
            Merged::Unconfirmed { signature, row } => {
                if earlier.get(&key.key) != Some(&signature) {
                    merged.unconfirmed.push((key.key.clone(), signature));
                    continue;
                }
                let hash = history.hash(&key.key);
                history.confirm(hash, signature);
                row
            }
        };
        merged.page.locks.push(merger.with_lifetime(*row, key));
    }
    Ok(merged)
}

/// Reads keys without a quorum again until two readings agree, and hands over their rows. Returns
/// the keys that differed in each reading: an acquire or a release is in progress.
pub(super) async fn confirm(
    redlock: &Redlock,
    settings: &Settings,
    connections: &Connections<'_>,
    unconfirmed: Vec<(RedisKey, u64)>,
    mut deliver: impl FnMut(Page),
) -> Result<HashSet<RedisKey>, BackendError> {
    let mut earlier: HashMap<RedisKey, u64> = unconfirmed.into_iter().collect();
    for _ in 0..CONFIRMS_MAX {
        if earlier.is_empty() {
            break;
        }
        tokio::time::sleep(CONFIRM_AFTER).await;
        let keys = earlier.keys().cloned().collect();
        let reread = read_once(redlock, settings, connections, keys, &earlier).await?;
        deliver(reread.page);
        earlier = reread.unconfirmed.into_iter().collect();
    }
    Ok(earlier.into_keys().collect())
}

impl Redlock {
    pub(super) fn merger(&self) -> Merger<'_> {
        Merger {
            source: &self.source,
            names: self.nodes.iter().map(super::Node::name).collect(),
        }
    }
}
