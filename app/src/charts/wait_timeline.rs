//! The waits of one cycle over time: a lane per owner, and the moment at which the last wait closed the cycle.

use domain::charts::scale::TimeScale;
use domain::charts::ticks::{self, ChartTick, moment};
use domain::escape::visible;
use domain::format;
use domain::waits::page::{CycleHop, DeadlockView, WaitView};
use leptos::prelude::*;

use super::chart_frame::{Table, data_table};
use super::series::axis;
use super::svg::{anchored, drawing, percent, vertical};

const LANE: u32 = 44;
const TIMES_MAX: usize = 6;
/// Part of the longest wait that is shown before it began.
const BEFORE: i64 = 10;
/// Position, in per cent, beyond which the time of a wait is written at its left.
const RIGHT_MAX: f64 = 62.0;

/// `now`: when the lengths of the waits were read, in milliseconds since 1970.
pub fn wait_timeline(deadlock: &DeadlockView, now: i64) -> AnyView {
    let waits: Vec<(&CycleHop, &WaitView)> = deadlock
        .hops
        .iter()
        .filter_map(|hop| Some((hop, hop.wait.as_ref()?)))
        .collect();
    let longest = longest_ms(deadlock);
    let scale = TimeScale::new(now - longest - longest / BEFORE, now);
    let times = ticks::times(scale, TIMES_MAX);
    let closing = deadlock.closing_wait();
    let closed = scale.at(now - deadlock.closed_ms);
    let lanes: Vec<AnyView> = waits
        .iter()
        .map(|(hop, wait)| lane(hop, wait, (closed, closing == Some(*wait)), (scale, &times)))
        .collect();
    view! {
        <div class="tl wait-times">
            {lanes}
            <div class="lane ax"><div class="ln"></div>{axis(&times)}</div>
        </div>
        {data_table(table(&waits, scale))}
    }
    .into_any()
}

/// Range and mark of the timeline.
pub fn timeline_note(deadlock: &DeadlockView) -> String {
    let mark = match deadlock.closing_wait() {
        Some(_) => "the wait that closed the cycle",
        None => "when the last of these waits was seen",
    };
    let longest = format::duration(longest_ms(deadlock));
    format!("{longest}, UTC; the red line marks {mark}")
}

fn longest_ms(deadlock: &DeadlockView) -> i64 {
    let waits = deadlock.hops.iter().filter_map(|hop| hop.wait.as_ref());
    waits.map(|wait| wait.waited_ms).max().unwrap_or_default()
}

fn lane(
    hop: &CycleHop,
    wait: &WaitView,
    (closed, is_closing): (f64, bool),
    (scale, times): (TimeScale, &[ChartTick]),
) -> AnyView {
    let from = scale.until() - wait.waited_ms;
    let (x, width) = (scale.at(from), scale.width(from, scale.until()));
    let began = start_text(wait, scale);
    let text = if is_closing {
        format!("{began} closes the cycle")
    } else {
        began
    };
    let is_right = x > RIGHT_MAX;
    let class = if is_right {
        "waiting said e"
    } else {
        "waiting said"
    };
    let grid: Vec<AnyView> = times.iter().map(|tick| vertical("grid", tick.at)).collect();
    let title = format!(
        "{} waits since {text}, for {}",
        visible(&hop.owner),
        format::duration(wait.waited_ms)
    );
    let marks = view! {
        {grid}
        <rect class="waits" x=percent(x) y="12" width=percent(width) height="20"></rect>
        {vertical("closes", closed)}
        {anchored(percent(x), view! { <line class="waiting start" y1="11" y2="33"></line> }.into_any())}
        <text class=class x=percent(x) dx=if is_right { "-6" } else { "8" } y="26">{text}</text>
    };
    let (owner, on) = (
        visible(&hop.owner).into_owned(),
        format!("on {}", wait.lock.backend),
    );
    view! {
        <div class="lane">
            <div class="ln"><b><bdi>{owner}</bdi></b><small>{on}</small></div>
            {drawing("", LANE, title, false, marks.into_any())}
        </div>
    }
    .into_any()
}

/// The start of a wait; its latest possible start, if it was first seen then.
fn start_text(wait: &WaitView, scale: TimeScale) -> String {
    let at = moment(scale.until() - wait.waited_ms, scale);
    if wait.is_at_least {
        format!("\u{2264} {at}")
    } else {
        at
    }
}

fn table(waits: &[(&CycleHop, &WaitView)], scale: TimeScale) -> Table {
    let row = |(hop, wait): &(&CycleHop, &WaitView)| {
        vec![
            visible(&hop.owner).into_owned(),
            wait.lock.backend.to_string(),
            start_text(wait, scale),
            format::duration(wait.waited_ms),
        ]
    };
    Table {
        caption: "Waits of the cycle over time".to_owned(),
        head: ["waiter", "backend", "since", "waits for"]
            .map(str::to_owned)
            .into(),
        rows: waits.iter().map(row).collect(),
    }
}
