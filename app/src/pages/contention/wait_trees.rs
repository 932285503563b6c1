//! Current wait trees, the largest first.

use domain::contention::{ContentionPage, trees};
use leptos::prelude::*;

use crate::components::blocker_tree::BlockerTree;
use crate::components::reactive::changing;
use crate::format;
use crate::links::PageUrl;

#[component]
pub fn WaitTrees(data: Signal<ContentionPage>, url: Signal<PageUrl>) -> impl IntoView {
    let all = move || {
        let (shown, total) = data.with(|data| (data.trees.len(), data.trees_total));
        let href = url.get().with(&[("trees", "all")]).href();
        (shown < total).then(|| {
            view! { <a class="end link" href=href data-noscroll="">{format!("All {total} trees")}</a> }
                .into_any()
        })
    };
    view! {
        <section class="sec" aria-labelledby="trees">
            <header>
                <h2 id="trees">"Blocker trees"</h2>
                <span class="note">"now, most waiters first"</span>
                {changing(all)}
            </header>
            {changing(move || data.with(content))}
        </section>
    }
    .into_any()
}

fn content(data: &ContentionPage) -> AnyView {
    let fault = data
        .trees_fault
        .clone()
        .map(|why| view! { <p class="small ink2 pad">{why}</p> }.into_any());
    if data.trees.is_empty() {
        let title = match fault.is_some() {
            true => "No known waiters",
            false => "No waiters now",
        };
        return view! {
            {fault}
            <div class="empty"><h3>{title}</h3><p>"Queues are read at each refresh of this page."</p></div>
        }
        .into_any();
    }
    let below: usize = data.trees.iter().map(|tree| trees::size(tree) - 1).sum();
    let note = format::counted(below as u64, "owner waits", "owners wait");
    view! { {fault}<p class="sr">{note}</p><BlockerTree blockers=data.trees.clone()/> }.into_any()
}
