//! Firing alerts of a group in the last hour, in bars of 2 minutes on a common scale.

use leptos::prelude::*;

use crate::components::reactive::changing;
use crate::pages::alerts::data::{AlertGroup, RECENT_BARS};

const HEIGHT: u32 = 16;
const STEP: usize = 4;

#[component]
pub(super) fn RecentBars(group: Memo<Option<AlertGroup>>, scale: Memo<u32>) -> impl IntoView {
    let bars = Memo::new(move |_| {
        group.with(|group| {
            let group = group.as_ref()?;
            Some((group.recent.clone(), super::filters::hue(group.severity)))
        })
    });
    changing(move || bars.get().map(|(bars, hue)| draw(&bars, hue, scale.get())))
}

fn draw(bars: &[u32], hue: &'static str, scale: u32) -> AnyView {
    let last = bars.len().saturating_sub(1);
    let most = bars.iter().copied().max().unwrap_or(0);
    // Two paths, however many bars there are.
    let path = |is_last: bool| {
        let shown = bars
            .iter()
            .enumerate()
            .filter(|(at, count)| **count > 0 && (*at == last) == is_last);
        let bars = shown.map(|(at, count)| {
            let height = (count * HEIGHT / scale.max(1)).clamp(2, HEIGHT);
            format!("M{} {HEIGHT}v-{height}h{}v{height}z", at * STEP, STEP - 1)
        });
        bars.collect::<String>()
    };
    let label = format!("firing in the last hour, at most {most}");
    view! {
        <svg class=format!("ag-b {hue}") viewBox=format!("0 0 {} {HEIGHT}", RECENT_BARS * STEP) role="img" aria-label=label preserveAspectRatio="none">
            <path d=path(false)></path>
            <path d=path(true) class="now"></path>
        </svg>
    }
    .into_any()
}
