//! Ownership timeline of one lock: a lane per owner, a block per lease, ticks for renewals,
//! marks for incidents, and the zombie window after a loss.

mod blocks;
mod readings;

use std::sync::Arc;

use domain::charts::range::TimeRange;
use domain::charts::scale::TimeScale;
use domain::charts::shown_range::ShownRange;
use domain::charts::ticks::{self, ChartTick, moment};
use domain::charts::timeline::{Block, End, LANES_MAX, Lane, Queue, RejectedWrite, Timeline};
use domain::escape::visible;
use domain::format;
use leptos::prelude::*;

use super::chart_frame::{ChartFrame, LegendEntry, Swatch, Table, data_table, drawn_entries, legend};
use super::crosshair::{Plot, SpanUrl};
use super::range_links::RangeLinks;
use super::series::{axis, gaps};
use super::svg::{drawing, stretched};
use crate::components::reactive::changing;
use crate::links::PageUrl;

/// Link targets of the marks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarkLinks {
    /// The user may read the audit entries of forced unlocks.
    pub may_audit: bool,
    /// URL of this lock's fencing rejections.
    pub fencing: String,
}

const LANE: u32 = 44;
const TIMES_MAX: usize = 8;

/// The whole section.
#[component]
pub fn Ownership(
    #[prop(into)] timeline: Signal<Timeline>,
    #[prop(into)] range: Signal<ShownRange>,
    #[prop(into)] links: Signal<MarkLinks>,
    #[prop(into)] url: Signal<PageUrl>,
) -> impl IntoView {
    let title = Signal::derive(move || timeline.with(finding));
    let note = Signal::derive(move || timeline.with(|timeline| summary_note(timeline, &range.get().label())));
    let end = view! { <RangeLinks range url/> }.into_any();
    let readings = Arc::new(move || vec![timeline.with(readings::readings)]);
    let span: SpanUrl = Arc::new(move |from, until| {
        let scale = timeline.with_untracked(|timeline| timeline.scale);
        let range = TimeRange::at_least_a_minute(scale.moment(from), scale.moment(until));
        url.get_untracked().with_range(range).href()
    });
    view! {
        <ChartFrame id="ownership" title note end>
            <Plot class="tl" label="ownership over time".to_owned() readings span>
                {changing(move || links.with(|links| timeline.with(|timeline| lanes(timeline, links))))}
            </Plot>
            {changing(move || timeline.with(|timeline| {
                view! { {more_owners_note(timeline)}{legend(entries(timeline))}{data_table(table(timeline))} }.into_any()
            }))}
        </ChartFrame>
    }
    .into_any()
}

/// Range of the chart and what it leaves out.
fn summary_note(timeline: &Timeline, range_label: &str) -> String {
    let mut note = format!("{range_label}, UTC");
    if blocks_of(timeline).any(|block| !block.ticks.is_empty()) {
        match timeline.per_tick {
            1 => note.push_str("; a tick is a renewal"),
            many => note.push_str(&format!("; a tick is {many} renewals")),
        }
    }
    note.push_str(&timeline.left_out);
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
    match timeline.overlap_ms {
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

fn lanes(timeline: &Timeline, links: &MarkLinks) -> AnyView {
    let times = ticks::times(timeline.scale, TIMES_MAX);
    let empty = timeline
        .is_empty()
        .then(|| view! { <p class="pad">"No holder in this range."</p> }.into_any());
    let lane = |lane: &Lane| {
        view! { <div class="lane">{label(lane)}{self::lane(lane, timeline, &times, links)}</div> }.into_any()
    };
    let lanes: Vec<AnyView> = timeline.lanes.iter().map(lane).collect();
    let queue = (!timeline.queue.is_empty()).then(|| {
        view! {
            <div class="lane">
                <div class="ln"><b>"in queue"</b><small>"waiters"</small></div>
                {queue(timeline, &times)}
            </div>
        }
        .into_any()
    });
    view! { {empty}{lanes}{queue}<div class="lane ax"><div class="ln"></div>{axis(&times)}</div> }.into_any()
}

fn more_owners_note(timeline: &Timeline) -> Option<AnyView> {
    let more = format::counted(timeline.more as u64, "owner", "owners");
    let text = format!("The last {LANES_MAX} owners; {more} more in this range.");
    (timeline.more > 0).then(|| view! { <p class="small ink2 tl-more">{text}</p> }.into_any())
}

/// Owner and current state.
fn label(lane: &Lane) -> AnyView {
    let role = role(lane);
    let owner = match &lane.owner {
        Some(owner) => view! { <bdi>{visible(owner.as_str()).into_owned()}</bdi> }.into_any(),
        None => view! { <span class="ink3">"owner unknown"</span> }.into_any(),
    };
    let title = role.clone();
    view! { <div class="ln" title=title><b>{owner}</b><small>{role}</small></div> }.into_any()
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
    let end_text = last.map(|block| match &block.end {
        End::Now => "holds it",
        End::Released => "released",
        End::Expired => "lease expired",
        End::Displaced => "taken over",
        End::Revoked { .. } => "force-released",
        End::Unseen => "end not observed",
    });
    let longest = lane.zombies.iter().map(|zombie| zombie.until - zombie.from).max();
    let wrote = match longest {
        // The loss and the last write are closer together than two scans: the time between them is unknown.
        Some(..=0) => Some("wrote later".to_owned()),
        Some(late) => Some(format!("wrote for {} more", format::age(late))),
        None => (!lane.refused.is_empty()).then(|| "write rejected".to_owned()),
    };
    let parts = [wrote, end_text.map(str::to_owned), waits];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn lane(lane: &Lane, timeline: &Timeline, times: &[ChartTick], links: &MarkLinks) -> AnyView {
    let scale = timeline.scale;
    let has_links = !lane.refused.is_empty()
        || (links.may_audit
            && lane
                .blocks
                .iter()
                .any(|block| matches!(block.end, End::Revoked { .. })));
    let waits: Vec<AnyView> = lane.waits.iter().map(|wait| blocks::wait(wait, scale)).collect();
    let zombies: Vec<AnyView> = lane
        .zombies
        .iter()
        .map(|zombie| blocks::zombie(zombie, scale))
        .collect();
    let leases: Vec<AnyView> = lane
        .blocks
        .iter()
        .map(|block| blocks::block(block, scale, links))
        .collect();
    let refused: Vec<AnyView> = lane
        .refused
        .iter()
        .map(|write| blocks::refused(write, scale, links))
        .collect();
    let marks = view! {
        {grid(times)}
        {gaps(scale, &timeline.gaps)}
        {waits}
        {zombies}
        {leases}
        {refused}
        // End of the range; labelled "now" if the range ends now.
        <line class="nowline" x1="100%" x2="100%" y2="100%"></line>
    };
    drawing("", LANE, summary(lane, scale), has_links, marks.into_any())
}

fn grid(times: &[ChartTick]) -> AnyView {
    let mut path = String::new();
    for tick in times {
        path.push('M');
        path.push_str(&format::measure((tick.at * 10.0).round()));
        path.push_str(" 0v44");
    }
    stretched(LANE, view! { <path class="grid" d=path></path> }.into_any())
}

fn queue(timeline: &Timeline, times: &[ChartTick]) -> AnyView {
    let most = timeline.queue.iter().map(|queue| queue.count).max().unwrap_or(0);
    let title = format!("at most {most} waited at once");
    let queues: Vec<AnyView> = timeline
        .queue
        .iter()
        .map(|queue| blocks::queue(queue, timeline.scale))
        .collect();
    let marks = view! { {grid(times)}{gaps(timeline.scale, &timeline.gaps)}{queues} };
    drawing("", 28, title, false, marks.into_any())
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
    let mut text = format!("{owner}: {}", role(lane));
    if leases > 0 {
        let leases = format::counted(leases, "lease", "leases");
        let since = lane.blocks.first().map_or(scale.from(), |block| block.from);
        text.push_str(&format!(
            "; {leases}, {} in all, the first at {}",
            blocks::length(held),
            moment(since, scale)
        ));
    }
    text
}

fn entries(timeline: &Timeline) -> Vec<LegendEntry> {
    let any = |fits: fn(&Block) -> bool| blocks_of(timeline).any(fits);
    let has_waits = timeline.lanes.iter().any(|lane| !lane.waits.is_empty()) || !timeline.queue.is_empty();
    let has_refused = timeline.lanes.iter().any(|lane| !lane.refused.is_empty());
    drawn_entries([
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
        (has_refused, Swatch::Shape("x", "critical"), "write rejected"),
        (
            timeline.worst_zombie().is_some(),
            Swatch::Area("zombie"),
            "zombie window: lost the lock, still writing",
        ),
        (!timeline.gaps.is_empty(), Swatch::Area("hatch"), "no history"),
    ])
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
        "write with token {} rejected by {}{current}",
        write.token,
        visible(&write.source)
    )
}

fn queue_text(queue: &Queue) -> String {
    format!("{} waited", format::count(u64::from(queue.count)))
}

#[cfg(all(test, feature = "ssr"))]
mod tests;
