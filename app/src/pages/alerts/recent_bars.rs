//! Firing alerts of a group in the last hour, in bars of 2 minutes on a common scale.

use leptos::prelude::*;

use crate::components::reactive::changing;
use crate::page_data::alerts::{AlertGroup, RECENT_BARS};

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
    let rects = bars.iter().enumerate().filter(|(_, count)| **count > 0);
    let rects = rects.map(|(at, count)| {
        let height = (count * HEIGHT / scale.max(1)).clamp(2, HEIGHT);
        let class = if at == last { "now" } else { "" };
        view! { <rect x=at * STEP y=HEIGHT - height width=STEP - 1 height=height class=class></rect> }
            .into_any()
    });
    let label = format!("firing in the last hour, at most {most}");
    view! {
        <svg class=format!("ag-b {hue}") viewBox=format!("0 0 {} {HEIGHT}", RECENT_BARS * STEP) role="img" aria-label=label preserveAspectRatio="none">
            {rects.collect_view()}
        </svg>
    }
    .into_any()
}
