//! Nodes of a Redlock in a forced unlock: what each has, and what each did.

use domain::escape::visible;
use domain::force_release::{NodeRelease, NodeResult};
use domain::quorum::{NodeCell, Quorum};
use leptos::prelude::*;

use super::parts::notice;
use crate::components::redlock_strip::RedlockStrip;
use crate::components::state_badge::Shape;
use crate::format;

/// For the review: each node with its value.
pub(super) fn reviewed(quorum: Option<&Quorum>) -> AnyView {
    let Some(quorum) = quorum else {
        return ().into_any();
    };
    let (head, body) = quorum.sentence();
    let rows = quorum.nodes.iter().map(row).collect_view();
    view! {
        <h3>"Nodes "<RedlockStrip quorum=quorum.clone()/></h3>
        <p class="small"><b>{head}</b>" "{notice(&body)}</p>
        <table class="t">
            <thead><tr><th scope="col">"node"</th><th scope="col">"value"</th><th scope="col" class="num">"time left"</th></tr></thead>
            <tbody>{rows}</tbody>
        </table>
    }
    .into_any()
}

fn row(node: &NodeCell) -> AnyView {
    let owner = match (node.reachable, &node.owner_id) {
        (false, _) => "unknown".to_owned(),
        (true, None) => "no key".to_owned(),
        (true, Some(owner)) => visible(owner.as_str()).into_owned(),
    };
    let left = match node.remaining_ms {
        Some(ms) => format::duration(ms),
        None if node.has_no_ttl() => "no TTL".to_owned(),
        None => String::new(),
    };
    view! { <tr><td>{node.node.clone()}</td><td><bdi>{owner}</bdi></td><td class="num">{left}</td></tr> }
        .into_any()
}

/// For the result: what each node did.
pub(super) fn results(nodes: &[NodeRelease]) -> AnyView {
    if nodes.is_empty() {
        return ().into_any();
    }
    let rows = nodes
        .iter()
        .map(|node| {
            let (shape, hue) = match node.result {
                NodeResult::Deleted => ("ok", "healthy"),
                NodeResult::NoKey | NodeResult::OtherValue => ("pending", "blind"),
                NodeResult::Refused | NodeResult::Unreachable => ("x", "critical"),
                NodeResult::Unknown => ("unknown", "blind"),
            };
            let why = node.why.as_deref().map(notice);
            view! {
                <tr>
                    <td>{node.node.clone()}</td>
                    <td><span class=format!("st small {hue}")><Shape name=shape/>{node.result.label()}</span></td>
                    <td class="small ink2">{why}</td>
                </tr>
            }
            .into_any()
        })
        .collect_view();
    view! {
        <table class="t">
            <thead><tr><th scope="col">"node"</th><th scope="col">"result"</th><th scope="col">"reason"</th></tr></thead>
            <tbody>{rows}</tbody>
        </table>
    }
    .into_any()
}
