//! Marks of one lane.

use chrono::DateTime;
use domain::charts::scale::TimeScale;
use domain::charts::ticks::moment;
use domain::charts::timeline::{Begin, Block, End, Queue, RejectedWrite, Wait, Zombie};
use domain::escape::visible;
use domain::format;
use leptos::prelude::*;

use super::MarkLinks;
use crate::charts::svg::{anchored, linked, percent, shape, stretched};
use crate::links;

/// Minimum width of a block, in per cent, for its token, and for its label; then the same on a phone.
const TOKEN_WIDTH: f64 = 4.0;
const TOKEN_WIDTH_PHONE: f64 = 15.0;
const WORDS_WIDTH: f64 = 9.0;
const WORDS_WIDTH_PHONE: f64 = 30.0;
/// Position, in per cent, beyond which a label next to a mark does not fit.
const ASIDE_MAX: f64 = 84.0;

pub(super) fn block(block: &Block, scale: TimeScale, links: &MarkLinks) -> AnyView {
    // The part hidden by an outage stays hatched.
    let until = block.ended_after.unwrap_or(block.until);
    let (at, width) = (scale.at(block.from), scale.width(block.from, until));
    let class = match (block.holds_now(), block.begin) {
        (true, _) => "held now",
        (false, _) if block.leases > 1 => "held many",
        _ => "held",
    };
    let title = format!(
        "{} to {}: {}",
        moment(block.from, scale),
        moment(block.until, scale),
        describe_block(block)
    );
    let edge = if block.begin == Begin::Seen {
        "start"
    } else {
        "start unknown"
    };
    let reclaim = block.is_reclaim.then(|| {
        let mark = view! {
            <g>
                <title>"reclaimed: the previous lease had expired"</title>
                {shape("reclaim", ("-2", "0"), "10")}
            </g>
        };
        anchored(percent(at), mark.into_any())
    });
    view! {
        // At least a pixel: short leases stay visible.
        {strip(class, (at, width), (12, 20), title)}
        {ticks(block, scale)}
        {edge_line(edge, at, (10, 34))}
        {name(block, at, width)}
        {reclaim}
        {end(block, scale, links)}
    }
    .into_any()
}

/// A rectangle with a tooltip: place in per cent, top and height in pixels.
fn strip(class: &'static str, (at, width): (f64, f64), (top, height): (u32, u32), title: String) -> AnyView {
    view! {
        <rect class=class x=percent(at) width=percent(width) y=top height=height><title>{title}</title></rect>
    }
    .into_any()
}

fn edge_line(class: &'static str, at: f64, (top, bottom): (u32, u32)) -> AnyView {
    view! { <line class=class x1=percent(at) x2=percent(at) y1=top y2=bottom></line> }.into_any()
}

/// A text, in pixels from a position.
fn text_at(at: f64, class: &'static str, (x, y): (u32, u32), text: String) -> AnyView {
    anchored(
        percent(at),
        view! { <text class=class x=x y=y>{text}</text> }.into_any(),
    )
}

/// The token inside a block, or the number of merged leases, if there is room.
fn name(block: &Block, at: f64, width: f64) -> Option<AnyView> {
    let token = block.token.filter(|_| width >= TOKEN_WIDTH && block.leases == 1);
    if let Some(token) = token {
        let class = match (block.holds_now(), width < TOKEN_WIDTH_PHONE) {
            (true, false) => "m on",
            (true, true) => "m on aside",
            (false, false) => "m k",
            (false, true) => "m k aside",
        };
        return Some(text_at(at, class, (7, 26), token.to_string()));
    }
    (block.leases > 1 && width >= TOKEN_WIDTH)
        .then(|| text_at(at, "k", (7, 26), format!("{} leases", block.leases)))
}

/// One path for all: there may be hundreds.
fn ticks(block: &Block, scale: TimeScale) -> Option<AnyView> {
    let mut path = String::with_capacity(block.ticks.len() * 9);
    for tick in &block.ticks {
        path.push('M');
        path.push_str(&format::measure((scale.at(*tick) * 10.0).round()));
        path.push_str(" 34v4");
    }
    (!path.is_empty()).then(|| stretched(44, view! { <path class="fine" d=path></path> }.into_any()))
}

fn end(block: &Block, scale: TimeScale, links: &MarkLinks) -> Option<AnyView> {
    let at = scale.at(block.until);
    match &block.end {
        End::Expired => Some(edge_line("ran-out", at, (10, 34))),
        End::Revoked { by, id } => {
            let title = format!("revoked by {} at {}", visible(by), moment(block.until, scale));
            let href = links
                .may_audit
                .then(|| links::with_query("/audit", [("unlockId", id)]));
            let mark = view! { <g><title>{title.clone()}</title>{shape("revoke", ("-6", "16"), "12")}</g> };
            let mark = linked(href, &title, anchored(percent(at), mark.into_any()));
            let label = (at < ASIDE_MAX)
                .then(|| text_at(at, "k2 aside", (10, 26), format!("revoked by {}", visible(by))));
            Some(view! { {mark}{label} }.into_any())
        }
        End::Now | End::Released | End::Displaced | End::Unseen => None,
    }
}

pub(super) fn wait(wait: &Wait, scale: TimeScale) -> AnyView {
    let (at, width) = (scale.at(wait.from), scale.width(wait.from, wait.until));
    let length = wait_text(wait);
    let class = if width < WORDS_WIDTH_PHONE {
        "waiting said aside"
    } else {
        "waiting said"
    };
    let text = (width >= WORDS_WIDTH).then(|| text_at(at, class, (8, 26), length.clone()));
    view! {
        {strip("waits", (at, width), (12, 20), length)}
        {edge_line("waiting start", at, (12, 32))}
        {text}
    }
    .into_any()
}

pub(super) fn zombie(zombie: &Zombie, scale: TimeScale) -> AnyView {
    let (at, width) = (scale.at(zombie.from), scale.width(zombie.from, zombie.until));
    let writes = format::counted(zombie.writes as u64, "write", "writes");
    // Without room here, the text is in the label of the lane only.
    let text = (at + width <= ASIDE_MAX).then(|| {
        let late = format!("zombie window {}", format::age(zombie.until - zombie.from));
        let rejected = format!("{writes} with {} rejected", zombie.token);
        view! {
            {text_at(at + width, "critical said aside", (14, 18), late)}
            {text_at(at + width, "k2 said aside", (14, 33), rejected)}
        }
        .into_any()
    });
    view! { {strip("zombie", (at, width), (8, 28), zombie_text(zombie))}{text} }.into_any()
}

pub(super) fn refused(write: &RejectedWrite, scale: TimeScale, links: &MarkLinks) -> AnyView {
    let title = format!("{}: {}", moment(write.at, scale), super::rejection_text(write));
    let mark = view! {
        <svg class="critical refused" x=percent(scale.at(write.at)) overflow="visible">
            <title>{title.clone()}</title>
            {shape("x", ("-6", "16"), "12")}
        </svg>
    };
    linked(Some(links.fencing.clone()), &title, mark.into_any())
}

pub(super) fn queue(queue: &Queue, scale: TimeScale) -> AnyView {
    let (at, width) = (scale.at(queue.from), scale.width(queue.from, queue.until));
    let title = format!(
        "{} to {}: {}",
        moment(queue.from, scale),
        moment(queue.until, scale),
        super::queue_text(queue)
    );
    let count = (width >= TOKEN_WIDTH).then(|| text_at(at, "waiting said", (6, 18), queue.count.to_string()));
    view! { {strip("waits", (at, width), (4, 20), title)}{count} }.into_any()
}

pub(super) fn describe_block(block: &Block) -> String {
    let length = length(block.length_range_ms());
    if block.leases > 1 {
        return format!("{} leases", format::count(u64::from(block.leases)));
    }
    let token = block
        .token
        .map_or_else(String::new, |token| format!(" under token {token}"));
    let begin = if block.begin == Begin::Unseen {
        ", start not observed"
    } else {
        ""
    };
    let end = match &block.end {
        End::Now => ", holds it now".to_owned(),
        End::Released => ", released".to_owned(),
        End::Expired => ", lease expired".to_owned(),
        End::Displaced => ", then taken over".to_owned(),
        End::Revoked { by, .. } => format!(", revoked by {}", visible(by)),
        End::Unseen => ", end not observed".to_owned(),
    };
    let end = format!("{end}{}", window(block.ended_after, block.until));
    let begin = match block.began_after {
        Some(_) => format!(", acquired{}", window(block.began_after, block.from)),
        None => begin.to_owned(),
    };
    let renewals = match block.renewals {
        0 => String::new(),
        count => format!(", {}", format::counted(u64::from(count), "renewal", "renewals")),
    };
    format!("held {length}{token}{renewals}{begin}{end}")
}

/// `1 m 07 s`, or `between 1 m 02 s and 1 m 52 s` if an outage hid one end.
pub(super) fn length((shortest, longest): (i64, i64)) -> String {
    if shortest == longest {
        return format::age(longest);
    }
    format!("between {} and {}", format::age(shortest), format::age(longest))
}

/// Interval of an event first seen after an outage.
fn window(after: Option<i64>, seen: i64) -> String {
    let at = |ms| DateTime::from_timestamp_millis(ms);
    let Some((after, seen)) = after.and_then(at).zip(at(seen)) else {
        return String::new();
    };
    format!(" {}", domain::time_format::between(after, seen))
}

pub(super) fn wait_text(wait: &Wait) -> String {
    let length = format::age(wait.until - wait.from);
    let since = match (wait.is_begin_known, wait.is_cut) {
        (false, _) => "start unknown".to_owned(),
        (true, true) => format!("more than {length}"),
        (true, false) => length,
    };
    match wait.place {
        None => format!("waited {since}, then granted"),
        Some(1) => format!("1st, {since}"),
        Some(2) => format!("2nd, {since}"),
        Some(3) => format!("3rd, {since}"),
        Some(place) => format!("{place}th, {since}"),
    }
}

pub(super) fn zombie_text(zombie: &Zombie) -> String {
    let writes = format::counted(zombie.writes as u64, "write", "writes");
    let window = match zombie.until - zombie.from {
        ..=0 => String::new(),
        length => format!("zombie window of {}: ", format::age(length)),
    };
    format!(
        "{window}{writes} with token {} rejected after it had lost the lock",
        zombie.token
    )
}
