//! Live status on every page: connection, age of the data, oldest backend, waiting changes,
//! pause.

use leptos::prelude::*;

use super::state_badge::{Shape, status_badge};
use crate::components::reactive::changing;
use crate::focus::pass_on_focus;
use crate::format;
use crate::live::{Link, Live, use_live};

#[component]
pub fn LiveBar() -> impl IntoView {
    let live = use_live();
    let class = move || if live.is_cut() { "live is-off" } else { "live" };
    view! {
        <div class=class role="group" aria-label="age of the data">
            <LinkState live/>
            <DataAge live/>
            <OldestBackend live/>
            <ChangesWaiting live/>
            <Pause live/>
        </div>
    }
}

#[component]
fn LinkState(live: Live) -> impl IntoView {
    let state = move || match (live.link(), live.is_paused()) {
        (Link::Opening, _) => ("blind", "pending", "Not live yet"),
        (Link::Cut { .. }, _) => ("critical", "x", "disconnected"),
        (Link::Open, true) => ("blind", "pause", "Paused"),
        (Link::Open, false) => ("healthy", "healthy", "Live"),
    };
    let state = Memo::new(move |_| state());
    // Outside of the live region: a screen reader announces each change of it.
    let cut_for = Memo::new(move |_| match live.link() {
        Link::Cut { for_ms } => format!(", {}", seconds(for_ms)),
        Link::Opening | Link::Open => String::new(),
    });
    view! {
        <span class=move || state.get().0>
            {move || view! { <Shape name=state.get().1/> }.into_any()}
            <span><span role="status">{move || state.get().2}</span>{move || cut_for.get()}</span>
        </span>
    }
}

/// Whole seconds: tenths of a lost connection carry no information.
fn seconds(ms: i64) -> String {
    if ms < 60_000 {
        format!("{}\u{a0}s", ms / 1000)
    } else {
        format::duration(ms)
    }
}

#[component]
fn DataAge(live: Live) -> impl IntoView {
    let age = move || {
        live.data_age_ms()
            .map(|ms| format!("data {} old", format::duration(ms)))
    };
    let age = Memo::new(move |_| age());
    changing(move || age.get().map(|age| view! { <span>{age}</span> }.into_any()))
}

#[component]
fn OldestBackend(live: Live) -> impl IntoView {
    let oldest = Memo::new(move |_| live.oldest_backend());
    changing(move || {
        let oldest = oldest.get()?;
        let (shape, hue, label) = status_badge(oldest.status);
        let age = oldest.age_ms.map_or_else(|| "never read".to_owned(), seconds);
        Some(
            view! {
                <span class=format!("lv-old {hue}")>
                    <Shape name=shape/>
                    <span><span class="o">"oldest: "</span>{oldest.name}" "{age}", "{label}</span>
                </span>
            }
            .into_any(),
        )
    })
}

#[component]
fn ChangesWaiting(live: Live) -> impl IntoView {
    changing(move || match live.changes_waiting() {
        0 => ().into_any(),
        count => {
            pass_on_focus(".lv-ch:focus", ".lv-p");
            view! {
                <button class="lv-ch" type="button" on:click=move |_| live.show_waiting()>
                    {format::counted(u64::from(count), "change", "changes")}" waiting"
                </button>
            }
            .into_any()
        }
    })
}

#[component]
fn Pause(live: Live) -> impl IntoView {
    let label = move || if live.is_paused() { "Resume" } else { "Pause" };
    view! {
        <button class="lv-p" type="button" aria-keyshortcuts="p" on:click=move |_| live.toggle_pause()>
            {move || view! { <Shape name=if live.is_paused() { "play" } else { "pause" }/> }.into_any()}
            <span class="pw">{changing(label)}</span>
            <kbd aria-hidden="true">"p"</kbd>
        </button>
    }
}
