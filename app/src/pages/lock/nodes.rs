//! Nodes of a Redlock: the finding, the values counted against the quorum, and one cell per node.

use domain::escape::visible;
use domain::lock_detail::LockDetail;
use domain::quorum::{NodeCell, Quorum, ValueTally};
use leptos::prelude::*;

use crate::charts::svg::percent;
use crate::components::elapsed::{Age, RunningDown};
use crate::components::reactive::changing;
use crate::components::redlock_strip::RedlockStrip;
use crate::components::state_badge::Shape;
use crate::format;

#[component]
pub fn Nodes(detail: Signal<LockDetail>) -> impl IntoView {
    let shown = Memo::new(move |_| {
        detail.with(|detail| {
            let quorum = detail.fresh.known()?.quorum.clone()?;
            Some((quorum, detail.lock.track_ms))
        })
    });
    changing(move || shown.get().map(|(quorum, track_ms)| section(quorum, track_ms)))
}

fn section(quorum: Quorum, track_ms: Option<i64>) -> AnyView {
    let note = format!("quorum is {} of {}", quorum.needed, quorum.nodes.len());
    let (head, body) = quorum.sentence();
    let tallies = tallies(&quorum);
    let cells = quorum
        .nodes
        .iter()
        .map(|node| node_cell(node, track_ms))
        .collect_view();
    view! {
        <section class="sec nodes" aria-labelledby="nodes-head">
            <header>
                <h2 id="nodes-head">"Nodes"</h2>
                <span class="note">{note}</span>
                <span class="end"><RedlockStrip quorum=quorum.clone()/></span>
            </header>
            <div class="quorum">
                <p><b>{head}</b>" "{body}</p>
                {tallies}
            </div>
            <ol class="ncs">{cells}</ol>
        </section>
    }
    .into_any()
}

fn tallies(quorum: &Quorum) -> AnyView {
    let total = quorum.nodes.len();
    let rows = quorum
        .tallies()
        .iter()
        .enumerate()
        .map(|(rank, one)| tally(rank, one, quorum))
        .collect_view();
    let silent = quorum.unreachable().count();
    let silent = (silent > 0)
        .then(|| view! { <span class="ink3">{format!("{silent} of {total} unknown")}</span> }.into_any());
    view! { <div class="tally">{rows}{silent}</div> }.into_any()
}

/// One bar per node, and the mark of the quorum.
fn tally(rank: usize, votes: &ValueTally<'_>, quorum: &Quorum) -> AnyView {
    let total = quorum.nodes.len();
    let share = |nodes: u32| 100.0 * f64::from(nodes) / f64::from(u32::try_from(total).unwrap_or(1).max(1));
    let class = if rank == 0 { "full" } else { "half" };
    let mark = percent(share(quorum.needed));
    view! {
        <bdi>{visible(votes.owner).into_owned()}</bdi>
        <svg role="img" class="tally-bar">
            <title>{format!("{} of {total} nodes", votes.nodes)}</title>
            <rect class="track" y="2" width="100%" height="12"></rect>
            <rect class=class y="2" width=percent(share(votes.nodes)) height="12"></rect>
            <line class="mark" x1=mark.clone() x2=mark y1="0" y2="16"></line>
        </svg>
        <span class="num ink2">{format!("{} of {total}", votes.nodes)}</span>
    }
    .into_any()
}

fn node_cell(node: &NodeCell, track_ms: Option<i64>) -> AnyView {
    let badge = if node.reachable {
        view! { <span class="st healthy quiet small"><Shape name="healthy"/>"answering"</span> }.into_any()
    } else {
        view! { <span class="st critical small"><Shape name="x"/>"unreachable"</span> }.into_any()
    };
    view! {
        <li class="nc">
            <header><b>{node.node.clone()}</b>{badge}</header>
            {value(node)}
            {time_left(node, track_ms)}
            <dl>{facts(node)}</dl>
        </li>
    }
    .into_any()
}

fn value(node: &NodeCell) -> AnyView {
    let owner = node.owner_id.as_ref();
    let owner = owner.map_or_else(
        || "unknown owner".to_owned(),
        |owner| visible(owner.as_str()).into_owned(),
    );
    let text = node.value.clone();
    match (node.reachable, node.rank) {
        (false, _) => view! { <div class="vcell x"><Shape name="unknown"/>"unknown"</div> }.into_any(),
        (true, None) => view! { <div class="vcell none">"no key"</div> }.into_any(),
        (true, Some(rank)) => {
            let class = match rank {
                0 => "vcell a",
                1 => "vcell b",
                _ => "vcell",
            };
            view! { <div class=class><bdi title=owner.clone()>{owner.clone()}</bdi><span class="m">{text}</span></div> }
                .into_any()
        }
    }
}

fn time_left(node: &NodeCell, track_ms: Option<i64>) -> AnyView {
    let text = match (node.reachable, node.rank, node.remaining_ms) {
        (false, ..) => view! { <b class="ink2">"unknown"</b> }.into_any(),
        (true, None, _) => view! { <b class="ink3">"none"</b> }.into_any(),
        (true, Some(_), None) => view! { <b class="warning">"no TTL"</b> }.into_any(),
        (true, Some(_), Some(ms)) => view! { <b><RunningDown ms/></b> }.into_any(),
    };
    let bar = match (node.remaining_ms, track_ms.filter(|ms| *ms > 0)) {
        (Some(left), Some(track)) => {
            #[expect(clippy::cast_precision_loss, reason = "a share of a bar")]
            let share = (100.0 * left as f64 / track as f64).clamp(0.0, 100.0);
            view! {
                <rect class="track" y="5" width="100%" height="6"></rect>
                <rect class="left" y="5" width=percent(share) height="6"></rect>
            }
            .into_any()
        }
        _ => view! { <rect class="void" x="0.5" y="5.5" width="99%" height="5"></rect> }.into_any(),
    };
    view! { <span class="rw healthy"><svg role="img"><title>"time left"</title>{bar}</svg>{text}</span> }
        .into_any()
}

fn facts(node: &NodeCell) -> AnyView {
    let row =
        |name: &'static str, value: AnyView| view! { <div><dt>{name}</dt><dd>{value}</dd></div> }.into_any();
    let seen = match node.age_ms {
        Some(ms) => view! { <Age ms/>" ago" }.into_any(),
        None => view! { "never" }.into_any(),
    };
    if !node.reachable {
        let fault = node.fault.clone().unwrap_or_default();
        let why = view! { <span title=fault.clone()>{fault.clone()}</span> }.into_any();
        return view! { {row("last answer", seen)}{row("error", why)} }.into_any();
    }
    let answered = node
        .answer_ms
        .map(|ms| row("answered in", view! { {format::latency(ms)} }.into_any()));
    let clock = node
        .clock_offset_ms
        .map(|ms| row("clock", view! { {format::offset(ms)} }.into_any()));
    view! { {row("observed", seen)}{answered}{clock} }.into_any()
}
