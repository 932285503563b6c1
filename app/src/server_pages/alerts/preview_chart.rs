//! Chart of a preview: series, draggable threshold line, and a strip of firings per version;
//! server-rendered without script. Stretched parts and texts are separate drawings.

use chrono::DateTime;
use domain::alerts::{Param, Preview, ThresholdSlider, Unit};
use leptos::prelude::*;

const WIDTH: i64 = 600;
const HEIGHT: i64 = 130;
/// Closer labels, in per cent, would overlap.
const WORDS: i64 = 14;
const DAYS: i64 = 7;

/// The threshold of a series.
pub(super) struct Threshold {
    /// In the unit of the measure.
    pub at: Option<i64>,
    /// Of the saved version, if it differs.
    pub saved: Option<i64>,
    /// If it can be dragged.
    pub line: Option<(&'static Param, ThresholdSlider)>,
}

/// Vertical range of the chart, in the unit of the measure.
#[derive(Clone, Copy)]
struct Span {
    low: i64,
    high: i64,
}

impl Span {
    fn new(most: i64, threshold: &Threshold) -> Self {
        if let Some((_, line)) = &threshold.line {
            // Same scale as the slider's, so that both positions agree.
            return Self {
                low: line.min,
                high: line.max,
            };
        }
        let high = most.max(threshold.at.unwrap_or(0)).max(1) * 11 / 10 + 1;
        Self { low: 0, high }
    }

    fn y(self, value: i64) -> i64 {
        HEIGHT - (value.clamp(self.low, self.high) - self.low) * HEIGHT / (self.high - self.low).max(1)
    }
}

pub(super) fn series(preview: &Preview, unit: Unit, threshold: &Threshold) -> AnyView {
    let most = preview.series.iter().filter_map(|point| point.measure).max();
    let Some(most) = most else {
        return ().into_any();
    };
    let span = Span::new(most, threshold);
    let fixed = threshold.at.filter(|_| threshold.line.is_none());
    let rule =
        |at: i64, class| view! { <line x1="0" x2=WIDTH y1=span.y(at) y2=span.y(at) class=class></line> };
    let saved = threshold.saved.filter(|saved| Some(*saved) != threshold.at);
    let shown = threshold.at.map(|at| format!("; threshold {}", unit.format(at)));
    let was = saved.map(|at| format!("; saved {}, dashed", unit.format(at)));
    let mark = if threshold.line.is_some() {
        "pv-at pv-still"
    } else {
        "pv-at"
    };
    let marks = [
        threshold.at.map(|at| (at, mark)),
        saved.map(|at| (at, "")),
        Some((most, "")),
        Some((0, "")),
    ];
    let mut taken: Vec<i64> = Vec::new();
    let marks = marks.into_iter().flatten().filter_map(|(value, class)| {
        let place = span.y(value);
        let is_free = taken.iter().all(|other| (other - place).abs() >= WORDS);
        is_free.then(|| {
            taken.push(place);
            let place = (place + 4).clamp(10, HEIGHT);
            view! { <text x="100%" y=place text-anchor="end" class=class>{unit.format(value)}</text> }
        })
    });
    let marks = marks.collect_view();
    view! {
        <figure class="pv">
            <figcaption class="small ink2">{format!("worst of any match, at most {}", unit.format(most))}{shown}{was}</figcaption>
            <svg class="pv-y" aria-hidden="true">{marks}</svg>
            <svg class="pv-plot" viewBox=format!("0 0 {WIDTH} {HEIGHT}") preserveAspectRatio="none" role="img" aria-label="worst value over the preview range">
                {gaps(preview, HEIGHT)}
                <path d=path(preview, &|value| span.y(value)) class="pv-line"></path>
                {saved.map(|at| rule(at, "pv-limit pv-saved"))}
                {fixed.map(|at| rule(at, "pv-limit"))}
            </svg>
            {threshold.line.as_ref().map(|(_, line)| draggable(line))}
        </figure>
    }
    .into_any()
}

/// A range input whose thumb is the line. Part of the rule's form, without script; browsers
/// with the needed CSS show the number live (style/component/threshold_line.css).
fn draggable(line: &ThresholdSlider) -> AnyView {
    let label = match line.word {
        "" => "Threshold line".to_owned(),
        word => format!("Threshold line, in {word}"),
    };
    let ten = 10_i64.pow(u32::try_from(line.places).unwrap_or(0));
    let mark = if line.word == "times" { "×" } else { line.suffix };
    // As whole numbers of the last digit.
    let whole = |value: i64| line.number(value).replace('.', "");
    view! {
        <input class="pv-drag" form="rule" r#type="range" name="line" aria-label=label autocomplete="off"
            min=line.number(line.min) max=line.number(line.max) step=line.number(line.step) value=line.number(line.value)/>
        <span class="pv-now" aria-hidden="true" data-low=whole(line.min) data-high=whole(line.max) data-step=whole(line.step)
            data-ten=ten data-places=line.places data-unit=mark></span>
        <p class="pv-how small ink3">"Drag the line or move it with the arrow keys, then preview. A number in the form takes precedence."</p>
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

/// One tick per firing, for the edited rule and for the saved one if it differs.
pub(super) fn strips(preview: &Preview, saved: Option<&Preview>) -> AnyView {
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
