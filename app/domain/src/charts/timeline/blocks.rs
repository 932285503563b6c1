//! Derives leases from events: matches grants with their ends and marks unobserved ends.

use super::{Begin, Block, End, TimelineInput};
use crate::history::HistoryEvent;
use crate::lock_detail::EventKind;

/// Renewal ticks per row; above that, evenly thinned.
const TICKS_OF_RUN_MAX: u32 = 500;
/// A lease that ended within this time after a forced unlock was ended by it.
const REVOKE_SEEN_MS: i64 = 15_000;
/// Leases without an observed end that later events can still match.
const OPEN_MAX: usize = 32;
/// The same of a shared lock, whose leases are all held.
const SHARES_OPEN_MAX: usize = 1_000;

/// All leases in the order of their grants. `now` is the end of those still held.
pub fn blocks(input: &TimelineInput<'_>, now: i64) -> Vec<Block> {
    let mut builder = BlockBuilder {
        input,
        blocks: Vec::new(),
        open: Vec::new(),
        latest: i64::MIN,
    };
    for event in input.events {
        builder.add_event(event);
    }
    builder.end(now);
    let mut blocks = builder.blocks;
    revoke(&mut blocks, input);
    blocks.sort_by_key(|block| block.from);
    blocks
}

struct BlockBuilder<'a> {
    input: &'a TimelineInput<'a>,
    blocks: Vec<Block>,
    /// Indexes of leases without an observed end. A grant to another owner displaces them; a
    /// renewal restores them.
    open: Vec<usize>,
    latest: i64,
}

impl BlockBuilder<'_> {
    fn add_event(&mut self, event: &HistoryEvent) {
        // Rows of one moment may be slightly out of order.
        let at = event.at;
        match event.kind {
            EventKind::Acquired | EventKind::Reclaimed | EventKind::ShareAcquired => self.granted(event),
            EventKind::Renewed => self.renewed(event),
            // The unlock's own record names who ended it.
            EventKind::Released | EventKind::ShareReleased | EventKind::Revoked => {
                self.ended(event, End::Released);
            }
            EventKind::Expired => self.ended(event, End::Expired),
            _ => return,
        }
        self.latest = self.latest.max(at);
    }

    fn granted(&mut self, event: &HistoryEvent) {
        if let Some(block_index) = self.find_open(event) {
            // Reported twice: the lease continues.
            self.extend(block_index, event.at);
            return;
        }
        let is_shared = event.kind == EventKind::ShareAcquired;
        if !is_shared {
            for block_index in std::mem::take(&mut self.open) {
                self.displace(block_index, event);
                self.open.push(block_index);
            }
        }
        // Above the limit, only the latest ones can still match.
        let open_max = if is_shared { SHARES_OPEN_MAX } else { OPEN_MAX };
        let forgotten = self.open.len().saturating_sub(open_max);
        self.open.drain(..forgotten);
        let block = new_block(event, event.at, Begin::Seen);
        self.push(Block {
            began_after: event.not_before.map(|after| after.min(event.at)),
            is_reclaim: event.kind == EventKind::Reclaimed,
            is_shared,
            ..block
        });
    }

    fn renewed(&mut self, event: &HistoryEvent) {
        let block_index = self
            .find_open(event)
            .unwrap_or_else(|| self.add_unobserved(event));
        let (count, until) = event
            .run
            .map_or((1, event.at), |run| (run.count.max(1), run.until.max(event.at)));
        let block = &mut self.blocks[block_index];
        block.renewals = block.renewals.saturating_add(count);
        let stride = (count / TICKS_OF_RUN_MAX).max(1);
        let step = (until - event.at) as f64 / f64::from((count - 1).max(1));
        let mut index = 0;
        while index < count {
            #[expect(clippy::cast_possible_truncation, reason = "between two moments")]
            block.ticks.push(event.at + (step * f64::from(index)) as i64);
            index = index.saturating_add(stride);
        }
        self.extend(block_index, until);
        self.latest = self.latest.max(until);
    }

    fn ended(&mut self, event: &HistoryEvent, end: End) {
        let block_index = self.find_open(event);
        if block_index.is_none() && self.has_ended(event) {
            return;
        }
        let block_index = block_index.unwrap_or_else(|| self.add_unobserved(event));
        self.open.retain(|open| *open != block_index);
        let block = &mut self.blocks[block_index];
        block.until = event.at.max(block.from);
        block.ended_after = event.not_before.map(|after| after.clamp(block.from, block.until));
        block.end = end;
    }

    /// The open lease of an event: the same token, or the same owner if one of both has no
    /// token.
    fn find_open(&self, event: &HistoryEvent) -> Option<usize> {
        self.open.iter().copied().rev().find(|block_index| {
            let block = &self.blocks[*block_index];
            match (block.token, event.token) {
                (Some(ours), Some(theirs)) => ours == theirs,
                _ => block.owner == event.owner || block.owner.is_none() || event.owner.is_none(),
            }
        })
    }

    /// The end was already reported: by the release itself, and again by the scan.
    fn has_ended(&self, event: &HistoryEvent) -> bool {
        let last = self
            .blocks
            .iter()
            .rev()
            .find(|block| block.token == event.token && block.owner == event.owner);
        last.is_some_and(|block| event.at - block.until <= REVOKE_SEEN_MS)
    }

    /// A lease with an unobserved beginning: it began after the previous observation, or before
    /// the history.
    fn add_unobserved(&mut self, event: &HistoryEvent) -> usize {
        let from = if self.latest > i64::MIN {
            self.latest.min(event.at)
        } else {
            self.input.since.unwrap_or(i64::MIN).min(event.at)
        };
        self.push(new_block(event, from, Begin::Unseen))
    }

    fn push(&mut self, block: Block) -> usize {
        self.blocks.push(block);
        self.open.push(self.blocks.len() - 1);
        self.blocks.len() - 1
    }

    /// Ends the open leases when another owner is granted the lock.
    fn displace(&mut self, block_index: usize, event: &HistoryEvent) {
        let at = event.at;
        let gap = self
            .input
            .gaps
            .iter()
            .rev()
            .find(|(began, ended)| *ended <= at && *began >= self.blocks[block_index].until);
        let block = &mut self.blocks[block_index];
        if block.end != End::Unseen {
            return;
        }
        (block.until, block.end) = match gap {
            Some((began, _)) => (*began, End::Unseen),
            None => {
                block.ended_after = event
                    .not_before
                    .map(|after| after.clamp(block.from, at.max(block.from)));
                (at.max(block.from), End::Displaced)
            }
        };
    }

    /// Extends the lease to a time at which it was alive.
    fn extend(&mut self, block_index: usize, at: i64) {
        let block = &mut self.blocks[block_index];
        block.until = block.until.max(at);
        block.ended_after = None;
        block.end = End::Unseen;
    }

    fn end(&mut self, now: i64) {
        let Some(holders) = self.input.holders else {
            // No known holders: open leases are drawn until now.
            for block_index in std::mem::take(&mut self.open) {
                let block = &mut self.blocks[block_index];
                if block.end == End::Unseen {
                    block.until = block.until.max(now);
                }
            }
            return;
        };
        for holder in holders {
            let is_of_holder = |block_index: &usize| {
                let block = &self.blocks[*block_index];
                match (block.token, holder.token) {
                    (Some(ours), Some(theirs)) => ours == theirs,
                    _ => block.owner == holder.owner,
                }
            };
            let block_index = self.open.iter().copied().rev().find(is_of_holder);
            let block_index = block_index.unwrap_or_else(|| {
                let from = holder.since.or(self.input.since).unwrap_or(i64::MIN);
                let begin = if holder.since.is_some() {
                    Begin::Seen
                } else {
                    Begin::Unseen
                };
                self.push(Block {
                    owner: holder.owner.clone(),
                    token: holder.token,
                    from: from.min(now),
                    until: now,
                    begin,
                    end: End::Now,
                    began_after: None,
                    ended_after: None,
                    is_reclaim: false,
                    is_shared: self.input.is_shared,
                    leases: 1,
                    renewals: 0,
                    ticks: Vec::new(),
                })
            });
            let block = &mut self.blocks[block_index];
            (block.until, block.end) = (now.max(block.from), End::Now);
            block.ended_after = None;
            if block.owner.is_none() {
                block.owner.clone_from(&holder.owner);
            }
        }
    }
}

fn new_block(event: &HistoryEvent, from: i64, begin: Begin) -> Block {
    Block {
        owner: event.owner.clone(),
        token: event.token,
        from,
        until: event.at,
        begin,
        end: End::Unseen,
        began_after: None,
        ended_after: None,
        is_reclaim: false,
        is_shared: false,
        leases: 1,
        renewals: 0,
        ticks: Vec::new(),
    }
}

/// Leases ended by a forced unlock: the scan only saw that they were gone.
fn revoke(blocks: &mut [Block], input: &TimelineInput<'_>) {
    for revoked in input.revoked {
        let matches = |block: &&mut Block| {
            let ended_by_unlock =
                block.from <= revoked.at && (revoked.at..=revoked.at + REVOKE_SEEN_MS).contains(&block.until);
            let is_same_lease = match (block.token, revoked.token) {
                (Some(ours), Some(theirs)) => ours == theirs,
                _ => block.owner == revoked.owner,
            };
            is_same_lease && ended_by_unlock && !block.holds_now()
        };
        if let Some(block) = blocks.iter_mut().rev().find(matches) {
            block.until = revoked.at;
            block.ended_after = None;
            block.end = End::Revoked {
                by: revoked.by.clone(),
                id: revoked.id.clone(),
            };
        }
    }
}
