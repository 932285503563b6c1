//! A cycle of waits, drawn: an arrow points from a waiter to the owner that it waits for.
//!
//! Two drawings of the same cycle, for wide and for narrow screens; the style sheet shows one.

mod layout;

use domain::escape::visible;
use domain::format;
use domain::waits::graph::EdgeTrust;
use domain::waits::page::{CycleHop, DeadlockView, HIDDEN_LOCK, WaitView};
use leptos::prelude::*;

use self::layout::{Anchor, CycleLayout, WIDE_HOPS_MAX};
use super::chart_frame::{Table, data_table};

/// Owners drawn in one cycle; the table has all.
const DRAWN_MAX: usize = 8;
/// Characters of a line that fit: in a box, and at an arrow.
const BOX_CHARS: usize = 26;
const LINE_CHARS: usize = 38;

/// Both drawings, and the same as a table for screen readers.
pub fn wait_cycle(deadlock: &DeadlockView) -> AnyView {
    let hops = deadlock.hops.as_slice();
    let drawn = &hops[..hops.len().min(DRAWN_MAX)];
    let is_wide = (2..=WIDE_HOPS_MAX).contains(&drawn.len());
    let wide = is_wide.then(|| drawing("wg wgw", &CycleLayout::ring(drawn.len()), deadlock, drawn));
    let class = if is_wide { "wg wgn" } else { "wg wgl" };
    let tall = drawing(class, &CycleLayout::list(drawn.len()), deadlock, drawn);
    let more = (hops.len() > drawn.len()).then(|| {
        let more = format!("and {} more owners, listed below", hops.len() - drawn.len());
        view! { <p class="small ink3">{more}</p> }.into_any()
    });
    view! { <div class="cycle">{wide}{tall}{more}{data_table(table(deadlock))}</div> }.into_any()
}

fn drawing(class: &'static str, layout: &CycleLayout, deadlock: &DeadlockView, hops: &[CycleHop]) -> AnyView {
    let title = truncated(&deadlock.lines().join("; "), 600);
    let arrows: Vec<AnyView> = hops.iter().zip(&layout.edges).map(|(hop, edge)| {
        let class = match hop.wait.as_ref().map(|wait| wait.trust) {
            Some(EdgeTrust::Current | EdgeTrust::Partial) => "edge",
            Some(EdgeTrust::Stale) | None => "edge old",
        };
        view! { <path class=class d=edge.path.clone()></path><path class="head" d=edge.head.clone()></path> }.into_any()
    }).collect();
    let boxes: Vec<AnyView> = (0..hops.len())
        .map(|at| {
            let (x, y, width) = layout.boxes[at];
            let sub = holds(&hops[(at + hops.len() - 1) % hops.len()]);
            view! {
                <rect class="box" x=x y=y width=width height="60" rx="4"></rect>
                <text class="b" x=x + 15.5 y=y + 24.5>{truncated(&hops[at].owner, BOX_CHARS)}</text>
                <text class="s" x=x + 15.5 y=y + 44.5>{sub}</text>
            }
            .into_any()
        })
        .collect();
    let texts: Vec<AnyView> = hops
        .iter()
        .zip(&layout.edges)
        .map(|(hop, edge)| lines(hop, edge.text))
        .collect();
    let numbers: Vec<AnyView> = hops
        .iter()
        .zip(&layout.numbers)
        .filter_map(|(hop, place)| Some(number(deadlock.release_of(hop)?, *place)))
        .collect();
    let closed = layout.closed.map(|(x, y)| {
        let first = hops.first().map_or("", |hop| hop.owner.as_str());
        let text = format!("and {} again: the cycle is closed", truncated(first, 16));
        view! { <text class="s3" x=x y=y>{text}</text> }.into_any()
    });
    let label = title.clone();
    let view_box = format!("0 0 {} {}", layout.width, layout.height);
    view! {
        <svg class=class viewBox=view_box width="100%" role="img" aria-label=label>
            <title>{title}</title>
            {arrows}{numbers}{boxes}{texts}{closed}
        </svg>
    }
    .into_any()
}

/// Number of the wait's release in the list of suggested releases.
fn number(place: usize, (x, y): (f64, f64)) -> AnyView {
    view! {
        <rect class="no" x=x - 9.5 y=y - 10.5 width="19" height="21" rx="3"></rect>
        <text class="n mid" x=x y=y + 4.5>{place}</text>
    }
    .into_any()
}

/// What an owner holds in the cycle: the lock that the owner before it waits for.
fn holds(before: &CycleHop) -> String {
    match &before.wait {
        Some(wait) => {
            let held = wait
                .held_ms
                .map(|ms| format!(", {}", format::duration(ms)))
                .unwrap_or_default();
            let room = BOX_CHARS.saturating_sub(6 + held.chars().count());
            format!("holds {}{held}", ending(&wait.lock.resource.text(), room))
        }
        None => "holds another lock".to_owned(),
    }
}

fn lines(hop: &CycleHop, at: Anchor) -> AnyView {
    let (first, name, evidence, waited) = match &hop.wait {
        Some(wait) => (
            format!("waits on {} for", wait.lock.backend),
            ending(&wait.lock.resource.text(), LINE_CHARS),
            evidence(wait),
            waited(wait),
        ),
        None => (
            "waits for".to_owned(),
            HIDDEN_LOCK.to_owned(),
            String::new(),
            String::new(),
        ),
    };
    let class = |kind: &str| format!("{kind} {}", at.class).trim_end().to_owned();
    view! {
        <text class=class("s") x=at.x y=at.y>{first}</text>
        <text class=class("m") x=at.x y=at.y + 20.0>{name}</text>
        <text class=class("s") x=at.x y=at.y + 40.0>{evidence}</text>
        <text class=class("w") x=at.x y=at.y + 62.0>{waited}</text>
    }
    .into_any()
}

/// Source of the wait, and whether its data is partial or stale.
pub fn evidence(wait: &WaitView) -> String {
    match wait.trust {
        EdgeTrust::Current => wait.evidence.clone(),
        EdgeTrust::Partial => format!("{}, partial scan", wait.evidence),
        EdgeTrust::Stale => format!("stale, read {} ago", format::age(wait.age_ms)),
    }
}

pub fn waited(wait: &WaitView) -> String {
    let ms = format::duration(wait.waited_ms);
    if wait.is_at_least {
        format!("\u{2265} {ms}")
    } else {
        ms
    }
}

/// Hidden characters made visible; the beginning of a long text.
fn truncated(text: &str, chars: usize) -> String {
    let text = visible(text);
    if text.chars().count() <= chars {
        return text.into_owned();
    }
    let start: String = text.chars().take(chars.saturating_sub(1)).collect();
    format!("{start}\u{2026}")
}

/// The end of a long name: names differ at their end.
fn ending(text: &str, chars: usize) -> String {
    let text = visible(text);
    let count = text.chars().count();
    if count <= chars {
        return text.into_owned();
    }
    let end: String = text.chars().skip(count + 1 - chars.max(1)).collect();
    format!("\u{2026}{end}")
}

fn table(deadlock: &DeadlockView) -> Table {
    let owner = |at: usize| truncated(&deadlock.hops[at % deadlock.hops.len()].owner, 200);
    let row = |(at, hop): (usize, &CycleHop)| {
        let (lock, backend, how, since) = match &hop.wait {
            Some(wait) => (
                truncated(&wait.lock.resource.text(), 200),
                wait.lock.backend.to_string(),
                evidence(wait),
                waited(wait),
            ),
            None => (
                HIDDEN_LOCK.to_owned(),
                String::new(),
                String::new(),
                String::new(),
            ),
        };
        vec![owner(at), lock, backend, owner(at + 1), how, since]
    };
    let head = ["waiter", "lock", "backend", "holder", "evidence", "waits for"];
    Table {
        caption: deadlock.title(),
        head: head.map(str::to_owned).into(),
        rows: deadlock.hops.iter().enumerate().map(row).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_keep_the_part_that_differs() {
        assert_eq!(ending("tenant_1:billing-close", 8), "\u{2026}g-close");
        assert_eq!(ending("short", 8), "short");
        assert_eq!(truncated("worker-7-of-billing", 8), "worker-\u{2026}");
        assert!(!truncated("a\u{202e}b", 20).contains('\u{202e}'));
        assert!(!ending("a\u{202e}b", 20).contains('\u{202e}'));
    }
}
