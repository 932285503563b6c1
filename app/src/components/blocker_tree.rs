//! Blocker tree: the root holds, its descendants wait.

use domain::blockers::Blocker;
use domain::escape::visible;
use leptos::prelude::*;

use crate::format;

/// A deeper chain is cut with a remark: no operator can act on a longer one.
const DEPTH_MAX: usize = 24;

#[component]
pub fn BlockerTree(blockers: Vec<Blocker>) -> impl IntoView {
    let roots: Vec<_> = blockers.into_iter().map(|blocker| node(blocker, 0)).collect();
    view! { <ul class="blockers">{roots}</ul> }
}

fn node(blocker: Blocker, depth: usize) -> AnyView {
    let Blocker {
        owner_id,
        pid,
        doing,
        holds,
        waited_ms,
        blocks,
    } = blocker;
    let pid = pid.map(|pid| view! { " "<span class="ink3">{format!("pid {pid}")}</span> }.into_any());
    let time =
        waited_ms.map(|ms| view! { <span class="waits waiting">{format::duration(ms)}</span> }.into_any());
    let doing = (!doing.is_empty())
        .then(|| view! { <bdi class="doing mono">{visible(&doing).into_owned()}</bdi> }.into_any());
    let holds = (!holds.is_empty())
        .then(|| view! { <bdi class="holds">{visible(&holds).into_owned()}</bdi> }.into_any());
    let children = match blocks.len() {
        0 => None,
        _ if depth >= DEPTH_MAX => {
            Some(view! { <ul><li class="ink3 small">"more below, not drawn"</li></ul> }.into_any())
        }
        _ => {
            let below: Vec<_> = blocks.into_iter().map(|child| node(child, depth + 1)).collect();
            Some(view! { <ul>{below}</ul> }.into_any())
        }
    };
    view! {
        <li>
            <div class="who">
                <span class="name"><bdi>{visible(&owner_id).into_owned()}</bdi>{pid}</span>
                {time}
                {doing}
                {holds}
            </div>
            {children}
        </li>
    }
    .into_any()
}
