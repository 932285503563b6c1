//! The series of a preview with its threshold, and a strip of ticks for each version where it would have fired; drawn whole, no
//! script. What is stretched to the width stands in one drawing, words in others that are not.

use chrono::DateTime;
use domain::alerts::{Preview, Unit};
use leptos::prelude::*;

const WIDTH: i64 = 600;
const HEIGHT: i64 = 130;
/// Words closer than this would lie on each other.
const WORDS: i64 = 14;
const DAYS: i64 = 7;

/// `limit` is the threshold, in the unit of the measure.
pub fn series(preview: &Preview, unit: Unit, limit: Option<i64>) -> AnyView {
    let most = preview.series.iter().filter_map(|point| point.measure).max();
    let Some(most) = most else {
        return ().into_any();
    };
    let top = (most.max(limit.unwrap_or(0)).max(1)) * 11 / 10 + 1;
    let y = |value: i64| HEIGHT - value.clamp(0, top) * HEIGHT / top;
    let line = limit.map(|limit| {
        view! { <line x1="0" x2=WIDTH y1=y(limit) y2=y(limit) class="pv-limit"></line> }
    });
    let shown = limit.map(|limit| format!("; threshold {}", unit.shown(limit)));
    let marks = [
        limit.map(|limit| (limit, "pv-at")),
        Some((most, "")),
        Some((0, "")),
    ];
    let mut taken: Vec<i64> = Vec::new();
    let marks = marks.into_iter().flatten().filter_map(|(value, class)| {
        let place = y(value);
        let is_free = taken.iter().all(|other| (other - place).abs() >= WORDS);
        is_free.then(|| {
            taken.push(place);
            let place = (place + 4).clamp(10, HEIGHT);
            view! { <text x="100%" y=place text-anchor="end" class=class>{unit.shown(value)}</text> }
        })
    });
    let marks = marks.collect_view();
    view! {
        <figure class="pv">
            <figcaption class="small ink2">{format!("worst of any match, at most {}", unit.shown(most))}{shown}</figcaption>
            <svg class="pv-y" aria-hidden="true">{marks}</svg>
            <svg class="pv-plot" viewBox=format!("0 0 {WIDTH} {HEIGHT}") preserveAspectRatio="none" role="img" aria-label="worst measure over the time of the preview">
                {gaps(preview, HEIGHT)}
                <path d=path(preview, &y) class="pv-line"></path>
                {line}
            </svg>
        </figure>
    }
    .into_any()
}

fn x(preview: &Preview, at: i64) -> i64 {
    let span = (preview.to - preview.from).max(1);
    (at - preview.from).clamp(0, span) * WIDTH / span
}

fn path(preview: &Preview, y: &dyn Fn(i64) -> i64) -> String {
    let mut path = String::new();
    let mut is_open = false;
    for point in &preview.series {
        match point.measure {
            Some(measure) => {
                let verb = if is_open { 'L' } else { 'M' };
                path.push_str(&format!("{verb}{} {}", x(preview, point.at), y(measure)));
                is_open = true;
            }
            None => is_open = false,
        }
    }
    path
}

fn gaps(preview: &Preview, height: i64) -> AnyView {
    let gaps = preview.gaps.iter().map(|(from, to)| {
        let (from, to) = (x(preview, *from), x(preview, *to));
        view! { <rect x=from y="0" width=(to - from).max(2) height=height fill="url(#hatch)"></rect> }
    });
    gaps.collect_view().into_any()
}

/// One tick for each firing: of the rule as it is written, and as it is saved where that is another.
pub fn strips(preview: &Preview, saved: Option<&Preview>) -> AnyView {
    let word = if saved.is_some() { "edited" } else { "fires" };
    let days = (0..DAYS).map(|index| {
        let at = preview.from + (preview.to - preview.from) * index / DAYS;
        let at = DateTime::from_timestamp_millis(at).unwrap_or_default();
        view! { <text x=format!("{}%", index * 100 / DAYS) y="12">{at.format("%a %-d").to_string()}</text> }
    });
    let days = days.collect_view();
    view! {
        <div class="pv-strips">
            {strip(preview, word, "pv-strip", "when it would have fired")}
            {saved.map(|saved| strip(saved, "saved", "pv-strip pv-was", "when the saved rule would have fired"))}
            <svg class="pv-days" aria-hidden="true">{days}<text x="100%" y="12" text-anchor="end" class="pv-at">"now"</text></svg>
        </div>
    }
    .into_any()
}

fn strip(preview: &Preview, word: &'static str, class: &'static str, label: &'static str) -> AnyView {
    let ticks = preview.firings.iter().map(|firing| {
        let (from, to) = (
            x(preview, firing.at),
            x(preview, firing.until.unwrap_or(firing.at)),
        );
        view! { <rect x=from y="2" width=(to - from).max(3) height="12"></rect> }
    });
    view! {
        <span class="small ink2">{word}</span>
        <svg class=class viewBox=format!("0 0 {WIDTH} 16") preserveAspectRatio="none" role="img" aria-label=label>{gaps(preview, 16)}{ticks.collect_view()}</svg>
    }
    .into_any()
}
