//! What the timeline shows at a place: the state of every owner between two changes.

use domain::charts::ticks::moment;
use domain::charts::timeline::{Lane, Timeline};
use domain::escape::visible;
use domain::format;

use super::{blocks, rejection_text};
use crate::charts::crosshair::Reading;

/// Places of a timeline; a pointer cannot distinguish more.
const PLACES_MAX: usize = 240;

/// One reading for each interval between two changes.
pub(super) fn readings(timeline: &Timeline) -> Vec<Reading> {
    let stops = stops(timeline);
    let pairs = stops.windows(2).map(|pair| (pair[0], pair[1]));
    pairs.map(|span| reading(timeline, span)).collect()
}

/// Moments of the range at which something changes, and both ends.
fn stops(timeline: &Timeline) -> Vec<i64> {
    let scale = timeline.scale;
    let lanes = || timeline.lanes.iter();
    let blocks = lanes()
        .flat_map(|lane| &lane.blocks)
        .map(|it| (it.from, it.until));
    let waits = lanes().flat_map(|lane| &lane.waits).map(|it| (it.from, it.until));
    let zombies = lanes()
        .flat_map(|lane| &lane.zombies)
        .map(|it| (it.from, it.until));
    let queues = timeline.queue.iter().map(|it| (it.from, it.until));
    let gaps = timeline.gaps.iter().copied();
    let spans = blocks.chain(waits).chain(zombies).chain(queues).chain(gaps);
    let mut stops: Vec<i64> = spans
        .flat_map(|(from, until)| [from, until])
        .filter(|at| scale.contains(*at))
        .chain([scale.from(), scale.until()])
        .collect();
    stops.sort_unstable();
    // Changes closer together than a pixel become one place.
    stops.dedup_by_key(|at| scale.part(*at, PLACES_MAX));
    if let Some(last) = stops.last_mut() {
        *last = scale.until();
    }
    stops
}

fn reading(timeline: &Timeline, (from, until): (i64, i64)) -> Reading {
    let scale = timeline.scale;
    let meets = |one: i64, other: i64| one < until && other > from;
    let mut values: Vec<(&'static str, String)> = Vec::new();
    for lane in &timeline.lanes {
        let owner = owner(lane);
        let blocks = lane.blocks.iter().filter(|it| meets(it.from, it.until));
        values.extend(blocks.map(|it| ("healthy", format!("{owner}: {}", blocks::describe_block(it)))));
        let waits = lane.waits.iter().filter(|it| meets(it.from, it.until));
        values.extend(waits.map(|it| ("waiting", format!("{owner}: waits, {}", blocks::wait_text(it)))));
        let refused = lane.refused.iter().filter(|it| (from..until).contains(&it.at));
        values.extend(refused.map(|it| ("critical", format!("{owner}: {}", rejection_text(it)))));
    }
    let queue = timeline.queue.iter().find(|it| meets(it.from, it.until));
    values.extend(queue.map(|it| {
        (
            "waiting",
            format!("{} in queue", format::count(u64::from(it.count))),
        )
    }));
    if values.is_empty() {
        let is_gap = timeline.gaps.iter().any(|gap| meets(gap.0, gap.1));
        let text = if is_gap {
            "unknown: no history"
        } else {
            "no holder"
        };
        values.push(("ink3", text.to_owned()));
    }
    Reading {
        at: scale.at(from),
        width: scale.width(from, until),
        title: format!("{} to {}", moment(from, scale), moment(until, scale)),
        values,
        href: None,
    }
}

fn owner(lane: &Lane) -> String {
    lane.owner.as_ref().map_or_else(
        || "owner unknown".to_owned(),
        |owner| visible(owner.as_str()).into_owned(),
    )
}
