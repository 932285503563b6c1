//! Deadlocks, each with its cycle drawn. Nothing is shown if there is no deadlock.

use domain::overview::Overview;
use domain::waits::page::DeadlockView;
use leptos::prelude::*;

use crate::charts::wait_cycle::wait_cycle;
use crate::components::reactive::changing;
use crate::pages::waits::deadlock::badge;

#[component]
pub fn Deadlocks(data: Signal<Overview>) -> impl IntoView {
    let deadlocks = Memo::new(move |_| data.with(|data| data.deadlocks.clone()));
    let total = Memo::new(move |_| data.with(|data| data.deadlocks_total));
    changing(move || {
        deadlocks.with(|deadlocks| match deadlocks.is_empty() {
            true => None,
            false => Some(section(deadlocks, total.get())),
        })
    })
}

fn section(deadlocks: &[DeadlockView], total: usize) -> AnyView {
    let note = match deadlocks.len() < total {
        true => format!("worst {} of {total}", deadlocks.len()),
        false => "owners that wait for each other".to_owned(),
    };
    let cycles: Vec<AnyView> = deadlocks
        .iter()
        .map(|deadlock| {
            view! { <div><p class="pad"><b>{deadlock.title()}</b>" "{badge(deadlock)}</p>{wait_cycle(deadlock)}</div> }
                .into_any()
        })
        .collect();
    view! {
        <section class="sec overview-deadlocks" aria-labelledby="deadlocks-head">
            <header>
                <h2 id="deadlocks-head">"Deadlocks"</h2>
                <span class="note">{note}</span>
                <a class="end link" href="/waits">"Reasons and releases"</a>
            </header>
            {cycles}
        </section>
    }
    .into_any()
}
