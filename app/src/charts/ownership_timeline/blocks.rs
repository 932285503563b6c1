//! Marks of one lane.

use chrono::DateTime;
use domain::charts::scale::TimeScale;
use domain::charts::ticks::moment;
use domain::charts::timeline::{Begin, Block, End, Queue, RejectedWrite, Wait, Zombie};
use domain::escape::visible;
use domain::format;

use super::Links;
use crate::charts::html_writer::{Markup, percent};
use crate::links;

/// Narrower than this, in per cent, a block has no room for its token, or for its label;
/// likewise on a phone.
const TOKEN_WIDTH: f64 = 4.0;
const TOKEN_WIDTH_PHONE: f64 = 15.0;
const WORDS_WIDTH: f64 = 9.0;
const WORDS_WIDTH_PHONE: f64 = 30.0;
/// Labels next to a mark need room up to the end of the chart.
const ASIDE_MAX: f64 = 84.0;

pub(super) fn block(it: &mut Markup, block: &Block, scale: TimeScale, links: &Links<'_>) {
    // The part hidden by an outage stays hatched.
    let until = block.ended_after.unwrap_or(block.until);
    let (at, width) = (scale.at(block.from), scale.width(block.from, until));
    let (x, wide) = (percent(at), percent(width));
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
    // At least a pixel: short leases stay visible.
    it.titled_element(
        "rect",
        &[
            ("class", class),
            ("x", &x),
            ("width", &wide),
            ("y", "12"),
            ("height", "20"),
        ],
        &title,
    );
    ticks(it, block, scale);
    let edge = if block.begin == Begin::Seen {
        "start"
    } else {
        "start unknown"
    };
    it.mark(
        "line",
        &[
            ("class", edge),
            ("x1", &x),
            ("x2", &x),
            ("y1", "10"),
            ("y2", "34"),
        ],
    );
    name(it, block, &x, width);
    if block.is_reclaim {
        anchored(it, &x, |it| {
            it.text_element("title", &[], "reclaimed: the previous lease had expired");
            it.mark(
                "use",
                &[
                    ("href", "#s-reclaim"),
                    ("x", "-2"),
                    ("y", "0"),
                    ("width", "10"),
                    ("height", "10"),
                ],
            );
        });
    }
    end(it, block, scale, links);
}

/// The token inside a block, or the number of merged leases, if there is room.
fn name(it: &mut Markup, block: &Block, x: &str, width: f64) {
    let token = block.token.filter(|_| width >= TOKEN_WIDTH && block.leases == 1);
    if let Some(token) = token {
        let class = match (block.holds_now(), width < TOKEN_WIDTH_PHONE) {
            (true, false) => "m on",
            (true, true) => "m on aside",
            (false, false) => "m k",
            (false, true) => "m k aside",
        };
        anchored(it, x, |it| {
            it.text_element(
                "text",
                &[("class", class), ("x", "7"), ("y", "26")],
                &token.to_string(),
            );
        });
    } else if block.leases > 1 && width >= TOKEN_WIDTH {
        anchored(it, x, |it| {
            it.text_element(
                "text",
                &[("class", "k"), ("x", "7"), ("y", "26")],
                &format!("{} leases", block.leases),
            );
        });
    }
}

/// One path for all: there may be hundreds.
fn ticks(it: &mut Markup, block: &Block, scale: TimeScale) {
    let mut path = String::with_capacity(block.ticks.len() * 9);
    for tick in &block.ticks {
        path.push('M');
        path.push_str(&format::measure((scale.at(*tick) * 10.0).round()));
        path.push_str(" 34v4");
    }
    if !path.is_empty() {
        stretched(it, 44, |it| {
            it.mark("path", &[("class", "fine"), ("d", &path)]);
        });
    }
}

/// A viewport 1000 wide that is stretched, with constant line width.
pub(super) fn stretched(it: &mut Markup, height: u32, inside: impl FnOnce(&mut Markup)) {
    let view = format!("0 0 1000 {height}");
    let attributes = [
        ("viewBox", &*view),
        ("preserveAspectRatio", "none"),
        ("width", "100%"),
        ("height", "100%"),
    ];
    it.wrap("svg", &attributes, inside);
}

fn end(it: &mut Markup, block: &Block, scale: TimeScale, links: &Links<'_>) {
    let x = percent(scale.at(block.until));
    match &block.end {
        End::Expired => {
            it.mark(
                "line",
                &[
                    ("class", "ran-out"),
                    ("x1", &x),
                    ("x2", &x),
                    ("y1", "10"),
                    ("y2", "34"),
                ],
            );
        }
        End::Revoked { by, id } => {
            let title = format!("revoked by {} at {}", visible(by), moment(block.until, scale));
            let href = links
                .may_audit
                .then(|| links::with_query("/audit", [("unlockId", id)]));
            it.linked(href.as_deref(), &title, |it| {
                anchored(it, &x, |it| {
                    it.text_element("title", &[], &title);
                    let shape = [
                        ("href", "#s-revoke"),
                        ("x", "-6"),
                        ("y", "16"),
                        ("width", "12"),
                        ("height", "12"),
                    ];
                    it.mark("use", &shape);
                });
            });
            if scale.at(block.until) < ASIDE_MAX {
                anchored(it, &x, |it| {
                    let words = format!("revoked by {}", visible(by));
                    it.text_element("text", &[("class", "k2 aside"), ("x", "10"), ("y", "26")], &words);
                });
            }
        }
        End::Now | End::Released | End::Displaced | End::Unseen => {}
    }
}

pub(super) fn wait(it: &mut Markup, wait: &Wait, scale: TimeScale) {
    let width = scale.width(wait.from, wait.until);
    let (x, wide) = (percent(scale.at(wait.from)), percent(width));
    let words = wait_text(wait);
    it.titled_element(
        "rect",
        &[
            ("class", "waits"),
            ("x", &x),
            ("width", &wide),
            ("y", "12"),
            ("height", "20"),
        ],
        &words,
    );
    it.mark(
        "line",
        &[
            ("class", "waiting start"),
            ("x1", &x),
            ("x2", &x),
            ("y1", "12"),
            ("y2", "32"),
        ],
    );
    if width < WORDS_WIDTH {
        return;
    }
    let class = if width < WORDS_WIDTH_PHONE {
        "waiting said aside"
    } else {
        "waiting said"
    };
    anchored(it, &x, |it| {
        it.text_element("text", &[("class", class), ("x", "8"), ("y", "26")], &words);
    });
}

pub(super) fn zombie(it: &mut Markup, zombie: &Zombie, scale: TimeScale) {
    let (at, width) = (scale.at(zombie.from), scale.width(zombie.from, zombie.until));
    let (x, wide) = (percent(at), percent(width));
    let words = zombie_text(zombie);
    it.titled_element(
        "rect",
        &[
            ("class", "zombie"),
            ("x", &x),
            ("width", &wide),
            ("y", "8"),
            ("height", "28"),
        ],
        &words,
    );
    // Without room, the lane's label has the text.
    if at + width > ASIDE_MAX {
        return;
    }
    let writes = format::counted(zombie.writes as u64, "write", "writes");
    anchored(it, &percent(at + width), |it| {
        let late = format!("zombie window {}", format::age(zombie.until - zombie.from));
        it.text_element(
            "text",
            &[("class", "critical said aside"), ("x", "14"), ("y", "18")],
            &late,
        );
        let refused = format!("{writes} with {} refused", zombie.token);
        it.text_element(
            "text",
            &[("class", "k2 said aside"), ("x", "14"), ("y", "33")],
            &refused,
        );
    });
}

pub(super) fn refused(it: &mut Markup, write: &RejectedWrite, scale: TimeScale, links: &Links<'_>) {
    let title = format!("{}: {}", moment(write.at, scale), super::rejection_text(write));
    it.linked(Some(links.fencing), &title, |it| {
        it.wrap(
            "svg",
            &[
                ("class", "critical refused"),
                ("x", &percent(scale.at(write.at))),
                ("overflow", "visible"),
            ],
            |it| {
                it.text_element("title", &[], &title);
                it.mark(
                    "use",
                    &[
                        ("href", "#s-x"),
                        ("x", "-6"),
                        ("y", "16"),
                        ("width", "12"),
                        ("height", "12"),
                    ],
                );
            },
        );
    });
}

pub(super) fn queue(it: &mut Markup, queue: &Queue, scale: TimeScale) {
    let width = scale.width(queue.from, queue.until);
    let (x, wide) = (percent(scale.at(queue.from)), percent(width));
    let title = format!(
        "{} to {}: {}",
        moment(queue.from, scale),
        moment(queue.until, scale),
        super::queue_text(queue)
    );
    it.titled_element(
        "rect",
        &[
            ("class", "waits"),
            ("x", &x),
            ("width", &wide),
            ("y", "4"),
            ("height", "20"),
        ],
        &title,
    );
    if width >= TOKEN_WIDTH {
        anchored(it, &x, |it| {
            it.text_element(
                "text",
                &[("class", "waiting said"), ("x", "6"), ("y", "18")],
                &queue.count.to_string(),
            );
        });
    }
}

/// Content at a position of the chart, in pixels from there.
fn anchored(it: &mut Markup, x: &str, inside: impl FnOnce(&mut Markup)) {
    it.wrap("svg", &[("x", x), ("overflow", "visible")], inside);
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
    let since = match (wait.is_told, wait.is_cut) {
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
        "{window}{writes} with token {} refused after it had lost the lock",
        zombie.token
    )
}
