//! Arranges leases, waits and rejected writes in lanes, cuts them to the range and limits their
//! number.

use super::{
    Begin, Block, End, LANES_MAX, Lane, Queue, RejectedWrite, Timeline, TimelineInput, Wait, Zombie, blocks,
};
use crate::charts::scale::TimeScale;
use crate::format;
use crate::lock_detail::EventKind;
use crate::names::OwnerId;

/// Ticks closer than this, in per cent, overlap.
const TICK_WIDTH: f64 = 0.45;
/// Blocks narrower and closer than this, in per cent, are merged; more of them above the limit.
const BLOCK_WIDTH: f64 = 0.4;
/// Blocks of all lanes, and changes of the queue length, that are drawn individually.
const BLOCKS_MAX: usize = 60;
const QUEUE_MAX: usize = 40;
/// Waits ended by a grant that are drawn: the longest.
const WAITS_MAX: usize = 40;
/// Marks of rejected writes per lane: the latest.
const REFUSED_MAX: usize = 20;

pub(super) fn timeline(input: &TimelineInput<'_>, scale: TimeScale, now: i64) -> Timeline {
    let all = blocks(input, now);
    let mut lanes = Lanes(Vec::new());
    zombies(&mut lanes, input.refused, &all, scale);
    for block in all {
        if let Some(block) = clip(block, scale) {
            lanes.lane_mut(block.owner.as_ref()).blocks.push(block);
        }
    }
    let mut left_out = match waits(&mut lanes, input, scale, now) {
        0 => String::new(),
        more => format!("; {} shorter waits are not drawn", format::count(more as u64)),
    };
    if input.is_refused_unread {
        left_out.push_str("; rejected writes are unknown, because the lease store does not answer");
    }
    let mut lanes = lanes.0;
    // Before leases are merged: owners that alternate would overlap.
    let overlap_ms = overlap_ms(&lanes);
    lanes.retain(|lane| !(lane.blocks.is_empty() && lane.waits.is_empty() && lane.refused.is_empty()));
    // Stable sort: at equal times the earlier arrival stays first.
    lanes.sort_by_key(|lane| (!lane.holds_now(), std::cmp::Reverse(lane.latest())));
    let more = lanes.len().saturating_sub(LANES_MAX);
    lanes.truncate(LANES_MAX);
    for lane in &mut lanes {
        let surplus = lane.refused.len().saturating_sub(REFUSED_MAX);
        lane.refused.drain(..surplus);
    }
    limit_blocks(&mut lanes, scale);
    let per_tick = thin(&mut lanes, scale);
    Timeline {
        gaps: gaps(input, scale),
        queue: queue(input, scale, now),
        scale,
        lanes,
        more,
        overlap_ms,
        per_tick,
        left_out,
    }
}

fn overlap_ms(lanes: &[Lane]) -> i64 {
    let mut blocks: Vec<&Block> = lanes.iter().flat_map(|lane| &lane.blocks).collect();
    blocks.sort_by_key(|block| block.from);
    let mut reach: Option<&Block> = None;
    let mut longest = 0;
    for block in blocks {
        let is_conflict =
            |before: &&Block| before.owner != block.owner && !before.is_shared && !block.is_shared;
        if let Some(before) = reach.filter(is_conflict) {
            longest = longest.max(before.until.min(block.until) - block.from);
        }
        if reach.is_none_or(|before| block.until >= before.until) {
            reach = Some(block);
        }
    }
    longest
}

/// The longest waits ended by a grant, then current waits; returns the number left out.
fn waits(lanes: &mut Lanes, input: &TimelineInput<'_>, scale: TimeScale, now: i64) -> usize {
    let granted = input.events.iter().filter_map(|event| {
        let waited = event
            .waited_ms
            .filter(|_| event.kind == EventKind::GrantedAfterWait)?;
        Some((event.owner.as_ref(), event.at - waited.max(0), event.at))
    });
    let mut granted: Vec<_> = granted.filter(|(_, from, at)| scale.meets(*from, *at)).collect();
    granted.sort_by_key(|(_, from, at)| std::cmp::Reverse(at - from));
    let left_out = granted.len().saturating_sub(WAITS_MAX);
    granted.truncate(WAITS_MAX);
    granted.sort_by_key(|(_, from, _)| *from);
    for (owner, from, at) in granted {
        lanes.lane_mut(owner).waits.push(Wait {
            from: from.max(scale.from()),
            until: at.min(scale.until()),
            place: None,
            is_cut: from < scale.from() || at > scale.until(),
            is_begin_known: true,
        });
    }
    for waiter in input.waiters {
        let since = waiter.since.unwrap_or(scale.from());
        if scale.meets(since, now) {
            lanes.lane_mut(Some(&waiter.owner)).waits.push(Wait {
                from: since.max(scale.from()),
                until: now.min(scale.until()),
                place: Some(waiter.place),
                is_cut: since < scale.from(),
                is_begin_known: waiter.since.is_some(),
            });
        }
    }
    left_out
}

struct Lanes(Vec<Lane>);

impl Lanes {
    fn lane_mut(&mut self, owner: Option<&OwnerId>) -> &mut Lane {
        let index = self.0.iter().position(|lane| lane.owner.as_ref() == owner);
        let index = index.unwrap_or_else(|| {
            self.0.push(Lane {
                owner: owner.cloned(),
                blocks: Vec::new(),
                waits: Vec::new(),
                refused: Vec::new(),
                zombies: Vec::new(),
            });
            self.0.len() - 1
        });
        &mut self.0[index]
    }
}

fn clip(mut block: Block, scale: TimeScale) -> Option<Block> {
    if !scale.meets(block.from, block.until) {
        return None;
    }
    if block.from < scale.from() {
        (block.from, block.begin) = (scale.from(), Begin::Unseen);
        block.began_after = None;
    }
    if block.until > scale.until() {
        (block.until, block.end) = (scale.until(), End::Unseen);
        block.ended_after = None;
    }
    block.ticks.retain(|at| scale.contains(*at));
    Some(block)
}

/// A rejected write belongs to the owner that was granted its token; the window begins when
/// that owner lost the lock.
fn zombies(lanes: &mut Lanes, refused: &[RejectedWrite], blocks: &[Block], scale: TimeScale) {
    for write in refused.iter().filter(|write| scale.contains(write.at)) {
        let granted = blocks.iter().find(|block| block.token == Some(write.token));
        let owner = write.owner.as_ref().or_else(|| granted?.owner.as_ref());
        let lost = match granted {
            // A current holder has not lost the lock: the resource knows a newer token before
            // the next scan.
            Some(block) if block.holds_now() => None,
            Some(block) => Some(block.until),
            // Before the history: the loss is at the latest the grant of a newer token.
            None => blocks
                .iter()
                .filter(|block| block.token > Some(write.token))
                .map(|block| block.from)
                .min(),
        };
        let lane = lanes.lane_mut(owner);
        lane.refused.push(write.clone());
        // A newer token had been granted: the loss happened before the scan that observed it.
        let was_superseded = write.current > Some(write.token);
        let lost = lost.map(|lost| if was_superseded { lost.min(write.at) } else { lost });
        let Some(lost) = lost.filter(|lost| *lost <= write.at) else {
            continue;
        };
        match lane.zombies.iter_mut().find(|zombie| zombie.token == write.token) {
            Some(zombie) => {
                zombie.until = zombie.until.max(write.at);
                zombie.writes += 1;
            }
            None => lane.zombies.push(Zombie {
                from: lost.max(scale.from()),
                until: write.at,
                token: write.token,
                writes: 1,
            }),
        }
    }
}

/// Merges leases that are too narrow and close to be distinguished, until there are few enough.
fn limit_blocks(lanes: &mut [Lane], scale: TimeScale) {
    let mut width = BLOCK_WIDTH;
    loop {
        for lane in &mut *lanes {
            lane.blocks = merge_narrow(std::mem::take(&mut lane.blocks), scale, width);
        }
        let count: usize = lanes.iter().map(|lane| lane.blocks.len()).sum();
        if count <= BLOCKS_MAX || width > 100.0 {
            return;
        }
        width *= 2.0;
    }
}

fn merge_narrow(blocks: Vec<Block>, scale: TimeScale, width: f64) -> Vec<Block> {
    let is_narrow = |block: &Block| scale.width(block.from, block.until) < width;
    let mut out: Vec<Block> = Vec::new();
    for block in blocks {
        let mergeable = out.last_mut().filter(|last| {
            let distance = scale.at(block.from) - scale.at(last.until);
            let is_held = block.holds_now() || last.holds_now();
            !is_held && distance < width && is_narrow(&block) && (is_narrow(last) || last.leases > 1)
        });
        match mergeable {
            Some(last) => {
                last.until = last.until.max(block.until);
                last.leases = last.leases.saturating_add(block.leases);
                last.renewals = last.renewals.saturating_add(block.renewals);
                (last.token, last.end) = (block.token, block.end);
                last.ended_after = block.ended_after;
                last.is_reclaim |= block.is_reclaim;
                last.ticks.clear();
            }
            None => out.push(block),
        }
    }
    out
}

/// Thins ticks until they are distinguishable; each represents the same number of renewals.
fn thin(lanes: &mut [Lane], scale: TimeScale) -> usize {
    let blocks = || {
        lanes
            .iter()
            .flat_map(|lane| &lane.blocks)
            .filter(|block| block.ticks.len() > 1)
    };
    let ticks_per_mark = blocks().map(|block| {
        let width = scale.width(block.from, block.until).max(TICK_WIDTH);
        (block.ticks.len() as f64 * TICK_WIDTH / width).ceil()
    });
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of a count of ticks"
    )]
    let keep_every = ticks_per_mark.fold(1.0, f64::max) as usize;
    let (mut renewals, mut ticks) = (0, 0);
    for block in lanes.iter_mut().flat_map(|lane| &mut lane.blocks) {
        block.ticks = block.ticks.iter().copied().step_by(keep_every).collect();
        if !block.ticks.is_empty() {
            renewals += block.renewals as usize;
            ticks += block.ticks.len();
        }
    }
    if keep_every == 1 && renewals == ticks {
        return 1;
    }
    renewals.div_ceil(ticks.max(1)).max(keep_every)
}

fn gaps(input: &TimelineInput<'_>, scale: TimeScale) -> Vec<(i64, i64)> {
    let before = input
        .since
        .filter(|since| *since > scale.from())
        .map(|since| (scale.from(), since));
    // An event first seen after an outage of its backend: the outage is a gap as well.
    let outages = input
        .events
        .iter()
        .filter_map(|event| Some((event.not_before?, event.at)));
    let gaps = before.into_iter().chain(input.gaps.iter().copied());
    let mut gaps: Vec<(i64, i64)> = gaps.chain(outages).collect();
    gaps.sort_unstable();
    let mut out: Vec<(i64, i64)> = Vec::new();
    let is_shown = |(from, until): &(i64, i64)| until > from && scale.meets(*from, *until);
    for (from, until) in gaps.into_iter().filter(is_shown) {
        let (from, until) = (from.max(scale.from()), until.min(scale.until()));
        match out.last_mut().filter(|last| from <= last.1) {
            Some(last) => last.1 = last.1.max(until),
            None => out.push((from, until)),
        }
    }
    out
}

/// Queue lengths hold until the next report; a gap ends them.
fn queue(input: &TimelineInput<'_>, scale: TimeScale, now: i64) -> Vec<Queue> {
    let reports: Vec<(i64, u32)> = input
        .events
        .iter()
        .filter_map(|event| Some((event.at, event.waiters?)))
        .collect();
    let mut out: Vec<Queue> = Vec::new();
    for (index, (from, count)) in reports.iter().enumerate() {
        let next = reports.get(index + 1).map_or(now, |(at, _)| *at);
        let cut_off = input
            .gaps
            .iter()
            .map(|(began, _)| *began)
            .find(|began| began > from);
        let until = next.min(cut_off.unwrap_or(i64::MAX));
        if *count == 0 || !scale.meets(*from, until) {
            continue;
        }
        let (from, until) = ((*from).max(scale.from()), until.min(scale.until()));
        match out.last_mut() {
            Some(last) if last.count == *count && last.until >= from => last.until = until,
            _ => out.push(Queue {
                from,
                until,
                count: *count,
            }),
        }
    }
    let mut width = BLOCK_WIDTH;
    while out.len() > QUEUE_MAX && width <= 100.0 {
        out = merge_changes(&out, scale, width);
        width *= 2.0;
    }
    out
}

/// Merges neighbours, with the longest queue among them.
fn merge_changes(queue: &[Queue], scale: TimeScale, width: f64) -> Vec<Queue> {
    let mut out: Vec<Queue> = Vec::new();
    for next in queue {
        let mergeable = out.last_mut().filter(|last| {
            let distance = scale.at(next.from) - scale.at(last.until);
            distance < width && scale.width(last.from, next.until) < width * 2.0
        });
        match mergeable {
            Some(last) => {
                last.until = next.until;
                last.count = last.count.max(next.count);
            }
            None => out.push(*next),
        }
    }
    out
}
