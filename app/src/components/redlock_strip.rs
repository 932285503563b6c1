//! One cell per node of a Redlock, in configured order: filled with the value on most nodes, half
//! filled with the second one, outlined with another, empty without a key, dashed without an
//! answer.

use domain::quorum::{NodeCell, Quorum};
use leptos::prelude::*;

/// Width of a cell with the gap after it.
const STEP: usize = 9;

#[component]
pub fn RedlockStrip(quorum: Quorum) -> impl IntoView {
    let width = (STEP * quorum.nodes.len()).saturating_sub(2);
    let cells = quorum.nodes.iter().enumerate();
    let cells = cells.map(|(at, node)| cell(at * STEP, node)).collect_view();
    view! {
        <svg class="rstrip" role="img" width=width height="10" viewBox=format!("0 0 {width} 10")>
            <title>{label(&quorum)}</title>
            {cells}
        </svg>
    }
    .into_any()
}

fn cell(x: usize, node: &NodeCell) -> AnyView {
    let outline = |class: &'static str| {
        let x = format!("{x}.5");
        view! { <rect class=class x=x y="0.5" width="6" height="9"></rect> }.into_any()
    };
    match (node.reachable, node.rank) {
        (false, _) => outline("silent"),
        (true, None) => outline("none"),
        (true, Some(0)) => view! { <rect class="full" x=x y="0" width="7" height="10"></rect> }.into_any(),
        (true, Some(1)) => view! {
            {outline("other")}
            <rect class="full" x=x y="5" width="7" height="5"></rect>
        }
        .into_any(),
        (true, Some(_)) => outline("other"),
    }
}

/// Text alternative of the cells, for screen readers.
fn label(quorum: &Quorum) -> String {
    let labels: Vec<String> = quorum
        .nodes
        .iter()
        .map(|node| match (node.reachable, &node.owner_id) {
            (false, _) => format!("{} unreachable", node.node),
            (true, None) => format!("{} no key", node.node),
            (true, Some(owner)) => format!("{} {owner}", node.node),
        })
        .collect();
    labels.join(", ")
}
