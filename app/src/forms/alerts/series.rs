//! The series of a preview with its threshold, and the strip of ticks where it would have fired; drawn whole, no script.

use chrono::DateTime;
use domain::alerts::{Preview, Unit};
use domain::moment;
use leptos::prelude::*;

const WIDTH: i64 = 600;
const HEIGHT: i64 = 130;

/// `limit` is the threshold, in the unit of the measure.
pub fn series(preview: &Preview, unit: Unit, limit: Option<i64>) -> AnyView {
    let most = preview.series.iter().filter_map(|point| point.measure).max();
    let Some(most) = most else {
        return ().into_any();
    };
    let top = (most.max(limit.unwrap_or(0)).max(1)) * 11 / 10 + 1;
    let y = |value: i64| HEIGHT - value.clamp(0, top) * HEIGHT / top;
    let span = (preview.to - preview.from).max(1);
    let x = |at: i64| (at - preview.from).clamp(0, span) * WIDTH / span;
    let mut path = String::new();
    let mut is_open = false;
    for point in &preview.series {
        match point.measure {
            Some(measure) => {
                let verb = if is_open { 'L' } else { 'M' };
                path.push_str(&format!("{verb}{} {}", x(point.at), y(measure)));
                is_open = true;
            }
            None => is_open = false,
        }
    }
    let gaps = preview.gaps.iter().map(|(from, to)| {
        view! { <rect x=x(*from) y="0" width=(x(*to) - x(*from)).max(2) height=HEIGHT fill="url(#hatch)"></rect> }
    });
    let line = limit.map(|limit| {
        view! { <line x1="0" x2=WIDTH y1=y(limit) y2=y(limit) class="pv-limit"></line> }
    });
    let shown = limit.map(|limit| format!("threshold {}", unit.shown(limit)));
    view! {
        <figure class="pv">
            <figcaption class="small ink2">{format!("worst of any match, at most {}", unit.shown(most))}{shown.map(|shown| format!("; {shown}"))}</figcaption>
            <svg viewBox=format!("0 0 {WIDTH} {HEIGHT}") preserveAspectRatio="none" role="img" aria-label="worst measure over the last seven days">
                {gaps.collect_view()}
                <path d=path class="pv-line"></path>
                {line}
            </svg>
        </figure>
    }
    .into_any()
}

/// One tick for each firing.
pub fn strip(preview: &Preview) -> AnyView {
    let span = (preview.to - preview.from).max(1);
    let x = |at: i64| (at - preview.from).clamp(0, span) * WIDTH / span;
    let ticks = preview.firings.iter().map(|firing| {
        let width = (x(firing.until.unwrap_or(firing.at)) - x(firing.at)).max(3);
        view! { <rect x=x(firing.at) y="2" width=width height="12"></rect> }
    });
    let day = |at: i64| {
        let at = DateTime::from_timestamp_millis(at).unwrap_or_default();
        moment::dated(at).chars().take(10).collect::<String>()
    };
    view! {
        <svg class="pv-strip" viewBox=format!("0 0 {WIDTH} 16") preserveAspectRatio="none" role="img" aria-label="when it would have fired">{ticks.collect_view()}</svg>
        <p class="pv-days small ink3"><span>{day(preview.from)}</span><span>"now"</span></p>
    }
    .into_any()
}
