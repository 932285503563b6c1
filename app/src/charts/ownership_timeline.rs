//! Ownership timeline of one lock: a lane per owner, a block per lease, ticks for renewals,
//! marks for incidents, and the zombie window after a loss.

mod blocks;

use domain::charts::scale::TimeScale;
use domain::charts::ticks::{self, ChartTick, moment};
use domain::charts::timeline::{Block, End, LANES_MAX, Lane, Queue, RejectedWrite, Timeline};
use domain::escape::visible;
use domain::format;

use super::chart_frame::{self, Frame, LegendEntry, Swatch, Table, drawing};
use super::html_writer::Markup;
use super::series::{axis, gaps};

/// Link targets of the chart.
pub struct Links<'a> {
    /// The user may read the audit entries of forced unlocks.
    pub may_audit: bool,
    /// URL of this lock's fencing rejections.
    pub fencing: &'a str,
}

const LANE: u32 = 44;
const TIMES_MAX: usize = 8;

/// The whole section.
pub fn ownership(timeline: &Timeline, words: &str, end: Markup, links: &Links<'_>) -> Markup {
    chart_frame::frame(&Frame {
        id: "ownership",
        title: finding(timeline),
        note: summary_note(timeline, words),
        end,
        drawing: lanes(timeline, links),
        legend: legend(timeline),
        table: table(timeline),
    })
}

/// Range of the chart and what it leaves out.
fn summary_note(timeline: &Timeline, words: &str) -> String {
    let mut note = format!("{words}, UTC");
    if blocks_of(timeline).any(|block| !block.ticks.is_empty()) {
        match timeline.per_tick {
            1 => note.push_str("; a tick is a renewal"),
            many => note.push_str(&format!("; a tick is {many} renewals")),
        }
    }
    if timeline.waits_left_out > 0 {
        let more = format::count(timeline.waits_left_out as u64);
        note.push_str(&format!("; {more} shorter waits are not drawn"));
    }
    note
}

fn blocks_of(timeline: &Timeline) -> impl Iterator<Item = &Block> {
    timeline.lanes.iter().flat_map(|lane| &lane.blocks)
}

/// The worst finding in one line.
fn finding(timeline: &Timeline) -> String {
    if let Some(zombie) = timeline.worst_zombie() {
        let late = match zombie.until - zombie.from {
            ..=0 => String::new(),
            late => format!(" {}", format::age(late)),
        };
        return format!("Ownership: an owner still wrote{late} after it lost the lock");
    }
    match timeline.overlap_ms() {
        0 => {}
        both => return format!("Ownership: two owners at once for {}", format::age(both)),
    }
    let owners = timeline
        .lanes
        .iter()
        .filter(|lane| !lane.blocks.is_empty())
        .count()
        + timeline.more;
    let leases: u64 = blocks_of(timeline).map(|block| u64::from(block.leases)).sum();
    match (owners, leases) {
        (0, _) => "Ownership: no data in this range".to_owned(),
        (1, 1) => "Ownership: one owner, one lease".to_owned(),
        (1, leases) => format!(
            "Ownership: one owner, {}",
            format::counted(leases, "lease", "leases")
        ),
        (owners, leases) => format!(
            "Ownership: {} among {}",
            format::counted(leases, "lease", "leases"),
            format::counted(owners as u64, "owner", "owners")
        ),
    }
}

fn lanes(timeline: &Timeline, links: &Links<'_>) -> Markup {
    let times = ticks::times(timeline.scale, TIMES_MAX);
    let mut it = Markup::new();
    it.wrap("div", &[("class", "tl")], |it| {
        if timeline.is_empty() {
            it.text_element("p", &[("class", "pad")], "No holder in this range.");
        }
        for lane in &timeline.lanes {
            it.wrap("div", &[("class", "lane")], |it| {
                label(it, lane);
                self::lane(it, lane, timeline, &times, links);
            });
        }
        if !timeline.queue.is_empty() {
            it.wrap("div", &[("class", "lane")], |it| {
                it.wrap("div", &[("class", "ln")], |it| {
                    it.text_element("b", &[], "in queue");
                    it.text_element("small", &[], "waiters");
                });
                queue(it, timeline, &times);
            });
        }
        it.wrap("div", &[("class", "lane ax")], |it| {
            it.wrap("div", &[("class", "ln")], |_| {});
            axis(it, &times);
        });
    });
    if timeline.more > 0 {
        let more = format::counted(timeline.more as u64, "owner", "owners");
        it.text_element(
            "p",
            &[("class", "small ink2")],
            &format!("The last {LANES_MAX} owners; {more} more in this range."),
        );
    }
    it
}

/// Owner and current state.
fn label(it: &mut Markup, lane: &Lane) {
    let role = role(lane);
    it.wrap("div", &[("class", "ln"), ("title", &role)], |it| {
        it.wrap("b", &[], |it| {
            match &lane.owner {
                Some(owner) => it.name(owner.as_str()),
                None => it.text_element("span", &[("class", "ink3")], "owner unknown"),
            };
        });
        it.text_element("small", &[], &role);
    });
}

fn role(lane: &Lane) -> String {
    let last = lane.blocks.last();
    let token = last.and_then(|block| block.token);
    if lane.holds_now() {
        return token.map_or_else(
            || "holds it".to_owned(),
            |token| format!("holds it, token {token}"),
        );
    }
    let place = lane.waits.iter().find_map(|wait| wait.place);
    let waits = place.map(|place| match place {
        1 => "first in queue".to_owned(),
        2 => "second in queue".to_owned(),
        3 => "third in queue".to_owned(),
        place => format!("{place}th in queue"),
    });
    let how = last.map(|block| match &block.end {
        End::Now => "holds it",
        End::Released => "released",
        End::Expired => "lease expired",
        End::Displaced => "taken over",
        End::Revoked { .. } => "force-released",
        End::Unseen => "end not observed",
    });
    let longest = lane.zombies.iter().map(|zombie| zombie.until - zombie.from).max();
    let wrote = match longest {
        // Closer together than two scans: the length is unknown.
        Some(..=0) => Some("wrote later".to_owned()),
        Some(late) => Some(format!("wrote for {} more", format::age(late))),
        None => (!lane.refused.is_empty()).then(|| "write rejected".to_owned()),
    };
    let parts = [wrote, how.map(str::to_owned), waits];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn lane(it: &mut Markup, lane: &Lane, timeline: &Timeline, times: &[ChartTick], links: &Links<'_>) {
    let scale = timeline.scale;
    let has_links = !lane.refused.is_empty()
        || (links.may_audit
            && lane
                .blocks
                .iter()
                .any(|block| matches!(block.end, End::Revoked { .. })));
    drawing(it, "", LANE, &summary(lane, scale), has_links, |it| {
        grid(it, times);
        gaps(it, scale, &timeline.gaps);
        for wait in &lane.waits {
            blocks::wait(it, wait, scale);
        }
        for zombie in &lane.zombies {
            blocks::zombie(it, zombie, scale);
        }
        for block in &lane.blocks {
            blocks::block(it, block, scale, links);
        }
        for write in &lane.refused {
            blocks::refused(it, write, scale, links);
        }
        now(it);
    });
}

fn grid(it: &mut Markup, times: &[ChartTick]) {
    let mut path = String::new();
    for tick in times {
        path.push('M');
        path.push_str(&format::measure((tick.at * 10.0).round()));
        path.push_str(" 0v44");
    }
    blocks::stretched(it, LANE, |it| {
        it.mark("path", &[("class", "grid"), ("d", &path)]);
    });
}

/// End of the range; labelled "now" if the range ends now.
fn now(it: &mut Markup) {
    it.mark(
        "line",
        &[
            ("class", "nowline"),
            ("x1", "100%"),
            ("x2", "100%"),
            ("y2", "100%"),
        ],
    );
}

fn queue(it: &mut Markup, timeline: &Timeline, times: &[ChartTick]) {
    let most = timeline.queue.iter().map(|queue| queue.count).max().unwrap_or(0);
    let title = format!("at most {most} waited at once");
    drawing(it, "", 28, &title, false, |it| {
        grid(it, times);
        gaps(it, timeline.scale, &timeline.gaps);
        for queue in &timeline.queue {
            blocks::queue(it, queue, timeline.scale);
        }
    });
}

fn summary(lane: &Lane, scale: TimeScale) -> String {
    let owner = lane.owner.as_ref();
    let owner = owner.map_or_else(
        || "owner unknown".to_owned(),
        |owner| visible(owner.as_str()).into_owned(),
    );
    let leases: u64 = lane.blocks.iter().map(|block| u64::from(block.leases)).sum();
    let ranges = lane.blocks.iter().map(Block::length_range_ms);
    let held = ranges.fold((0, 0), |(short, long), (shortest, longest)| {
        (short + shortest, long + longest)
    });
    let mut told = format!("{owner}: {}", role(lane));
    if leases > 0 {
        let leases = format::counted(leases, "lease", "leases");
        let since = lane.blocks.first().map_or(scale.from(), |block| block.from);
        told.push_str(&format!(
            "; {leases}, {} in all, the first at {}",
            blocks::length(held),
            moment(since, scale)
        ));
    }
    told
}

fn legend(timeline: &Timeline) -> Vec<LegendEntry> {
    let any = |fits: fn(&Block) -> bool| blocks_of(timeline).any(fits);
    let has_waits = timeline.lanes.iter().any(|lane| !lane.waits.is_empty()) || !timeline.queue.is_empty();
    let has_refused = timeline.lanes.iter().any(|lane| !lane.refused.is_empty());
    let keys = [
        (any(Block::holds_now), Swatch::Area("held now"), "holds now"),
        (any(|block| !block.holds_now()), Swatch::Area("held"), "held"),
        (has_waits, Swatch::Area("waits"), "waits"),
        (
            any(|block| block.end == End::Expired),
            Swatch::Rule("ran-out"),
            "expired",
        ),
        (
            any(|block| block.is_reclaim),
            Swatch::Shape("reclaim", ""),
            "reclaim",
        ),
        (
            any(|block| matches!(block.end, End::Revoked { .. })),
            Swatch::Shape("revoke", ""),
            "revoke",
        ),
        (has_refused, Swatch::Shape("x", "critical"), "write refused"),
        (
            timeline.worst_zombie().is_some(),
            Swatch::Area("zombie"),
            "zombie window: lost the lock, still writing",
        ),
        (!timeline.gaps.is_empty(), Swatch::Area("hatch"), "no history"),
    ];
    let drawn = keys.into_iter().filter(|(is_drawn, ..)| *is_drawn);
    drawn
        .map(|(_, swatch, word)| LegendEntry::new(swatch, word))
        .collect()
}

/// A row for each block, wait and rejected write, in lane order.
fn table(timeline: &Timeline) -> Table {
    let scale = timeline.scale;
    let mut rows = Vec::new();
    for lane in &timeline.lanes {
        let owner = lane.owner.as_ref().map_or_else(
            || "not reported".to_owned(),
            |owner| visible(owner.as_str()).into_owned(),
        );
        let span = |from: i64, until: i64| [owner.clone(), moment(from, scale), moment(until, scale)];
        for block in &lane.blocks {
            let [owner, from, until] = span(block.from, block.until);
            rows.push(vec![owner, from, until, blocks::describe_block(block)]);
        }
        for wait in &lane.waits {
            let [owner, from, until] = span(wait.from, wait.until);
            rows.push(vec![owner, from, until, blocks::wait_text(wait)]);
        }
        for zombie in &lane.zombies {
            let [owner, from, until] = span(zombie.from, zombie.until);
            rows.push(vec![owner, from, until, blocks::zombie_text(zombie)]);
        }
        for write in &lane.refused {
            let [owner, from, until] = span(write.at, write.at);
            rows.push(vec![owner, from, until, rejection_text(write)]);
        }
    }
    for queue in &timeline.queue {
        let (from, until) = (moment(queue.from, scale), moment(queue.until, scale));
        rows.push(vec!["in queue".to_owned(), from, until, queue_text(queue)]);
    }
    Table {
        caption: "Ownership over time, as drawn above".to_owned(),
        head: ["who", "from, UTC", "until", "what"].map(str::to_owned).to_vec(),
        rows,
    }
}

fn rejection_text(write: &RejectedWrite) -> String {
    let current = write
        .current
        .map_or_else(String::new, |token| format!(", {token} was current"));
    format!(
        "write with token {} refused by {}{current}",
        write.token,
        visible(&write.source)
    )
}

fn queue_text(queue: &Queue) -> String {
    format!("{} waited", format::count(u64::from(queue.count)))
}

#[cfg(test)]
mod tests;
