//! Charts of a preview: per part of the condition the measured value in its own unit, the
//! threshold as a line that can be dragged, the saved one dashed; a strip of firings per version.

use chrono::DateTime;
use domain::alerts::{ConditionKind, Param, ThresholdSlider, Unit};
use leptos::prelude::*;

use crate::pages::rule_editor::data::{PreviewData, PreviewPart};

const WIDTH: i64 = 600;
const HEIGHT: i64 = 130;
/// Minimum distance of two labels, in pixels: closer ones overlap.
const WORDS: i64 = 14;
const DAYS: i64 = 7;

/// Vertical range of a chart, in the unit of the measure.
#[derive(Clone, Copy)]
struct Span {
    low: i64,
    high: i64,
}

impl Span {
    fn y(self, value: i64) -> i64 {
        HEIGHT - (value.clamp(self.low, self.high) - self.low) * HEIGHT / (self.high - self.low).max(1)
    }
}

pub(super) fn param_of(part: &PreviewPart) -> Option<&'static Param> {
    ConditionKind::parse(&part.condition)?.param(&part.param)
}

pub(super) fn highest_measure(part: &PreviewPart) -> i64 {
    let measured = part.points.iter().filter_map(|(_, measure)| *measure);
    measured.max().unwrap_or(0)
}

#[component]
pub(super) fn PartChart(
    part: PreviewPart,
    /// The vertical range reaches at least this value.
    most: i64,
    range: (i64, i64),
    gaps: Vec<(i64, i64)>,
    saved: Option<i64>,
    letter: Option<char>,
    /// The threshold line of this part can be dragged.
    is_main: bool,
) -> impl IntoView {
    let param = param_of(&part);
    let unit = part_unit(&part, param);
    let line = param.zip(part.threshold).filter(|_| is_main);
    let line = line.map(|(param, at)| (param, ThresholdSlider::new(param, at, most)));
    let span = match &line {
        // The slider's scale, so that both positions agree.
        Some((_, line)) => Span {
            low: line.min,
            high: line.max,
        },
        None => Span {
            low: 0,
            high: most
                .max(part.threshold.unwrap_or(0))
                .max(saved.unwrap_or(0))
                .max(1)
                * 11
                / 10
                + 1,
        },
    };
    let saved = saved.filter(|saved| Some(*saved) != part.threshold);
    let rule = |at: i64, class: &'static str| {
        view! { <line x1="0" x2=WIDTH y1=span.y(at) y2=span.y(at) class=class></line> }.into_any()
    };
    let caption = caption_text(&part, param, unit);
    let worst = if part.is_falling { "lowest" } else { "highest" };
    let label = format!(
        "{caption}; the {worst} value of any match, at most {}",
        unit.format(highest_measure(&part))
    );
    let letter = letter.map(|letter| view! { <b class="part">{letter.to_string()}</b>" " }.into_any());
    view! {
        <figure class="pv">
            <figcaption class="small ink2">{letter}{caption}{saved.map(|at| format!(", saved {} dashed", unit.format(at)))}</figcaption>
            <svg class="pv-y" aria-hidden="true">{marks(span, unit, line.is_some(), &[part.threshold, saved, Some(highest_measure(&part)), Some(0)])}</svg>
            <svg class="pv-plot" viewBox=format!("0 0 {WIDTH} {HEIGHT}") preserveAspectRatio="none" role="img" aria-label=label>
                {hatch(&gaps, range, HEIGHT)}
                <path d=path(&part, range, span) class="pv-line"></path>
                {part.threshold.map(|at| view! { <path d=above(&part, range, span, at) class="pv-above"></path> }.into_any())}
                {saved.map(|at| rule(at, "pv-limit pv-saved"))}
                {part.threshold.filter(|_| line.is_none()).map(|at| rule(at, "pv-limit"))}
            </svg>
            {line.map(|(param, line)| draggable(param, &line))}
        </figure>
    }
    .into_any()
}

/// The condition with its threshold. Only thresholds of `long_held` may be left out.
fn caption_text(part: &PreviewPart, param: Option<&Param>, unit: Unit) -> String {
    match (param, part.threshold.map(|at| unit.format(at))) {
        (Some(param), Some(value)) => {
            let clause = param.clause.strip_prefix("or ").unwrap_or(param.clause);
            clause.replace('…', &value)
        }
        (Some(_), None) => "hold time: no threshold".to_owned(),
        (None, _) => "measured value".to_owned(),
    }
}

fn part_unit(part: &PreviewPart, param: Option<&'static Param>) -> Unit {
    // A left-out main threshold of `long_held` leaves the hold time as the measure.
    match param {
        Some(param) if param.name == "times_p95" && part.threshold.is_none() => Unit::Duration,
        Some(param) => param.unit,
        None => Unit::Count,
    }
}

/// Labels of the values. Where labels would overlap, the earlier value has precedence.
fn marks(span: Span, unit: Unit, is_moving: bool, values: &[Option<i64>]) -> AnyView {
    let mut label_positions: Vec<i64> = Vec::new();
    let marks: Vec<AnyView> = values
        .iter()
        .enumerate()
        .filter_map(|(at, value)| {
            let value = (*value)?;
            let place = span.y(value);
            if label_positions.iter().any(|other| (other - place).abs() < WORDS) {
                return None;
            }
            label_positions.push(place);
            let place = (place + 4).clamp(10, HEIGHT);
            let class = match (at, is_moving) {
                (0, true) => "pv-at pv-still",
                (0, false) => "pv-at",
                _ => "",
            };
            Some(
                view! { <text x="100%" y=place text-anchor="end" class=class>{unit.format(value)}</text> }
                    .into_any(),
            )
        })
        .collect();
    marks.into_any()
}

/// A range input whose thumb is the line; part of the rule's form. Without a script it counts
/// when the form is sent, unless the number was typed.
fn draggable(param: &'static Param, line: &ThresholdSlider) -> AnyView {
    let label = match line.unit_name {
        "" => "Threshold line".to_owned(),
        unit_name => format!("Threshold line, in {unit_name}"),
    };
    let threshold = param.unit.text(line.value);
    let ten = 10_i64.pow(u32::try_from(line.places).unwrap_or(0));
    let mark = if line.unit_name == "times" {
        "×"
    } else {
        line.suffix
    };
    // As whole numbers of the last digit.
    let digits = |value: i64| line.number(value).replace('.', "");
    view! {
        <input class="pv-drag" form="rule" r#type="range" name="line" aria-label=label autocomplete="off" data-param=param.name data-suffix=line.suffix
            min=line.number(line.min) max=line.number(line.max) step=line.number(line.step) value=line.number(line.value)/>
        <span class="pv-now" aria-hidden="true" data-low=digits(line.min) data-high=digits(line.max) data-step=digits(line.step)
            data-ten=ten data-places=line.places data-unit=mark></span>
        <p class="pv-how small ink3">"Drag the line or move it with the arrow keys."</p>
        <input form="rule" r#type="hidden" name="line.was" value=line.number(line.value)/>
        <input form="rule" r#type="hidden" name="line.unit" value=line.suffix/>
        <input form="rule" r#type="hidden" name="line.typed" value=threshold/>
    }
    .into_any()
}

fn x((from, to): (i64, i64), at: i64) -> i64 {
    let span = (to - from).max(1);
    (at - from).clamp(0, span) * WIDTH / span
}

fn path(part: &PreviewPart, range: (i64, i64), span: Span) -> String {
    let mut path = String::new();
    let mut is_open = false;
    for (at, measure) in &part.points {
        match measure {
            Some(measure) => {
                let verb = if is_open { 'L' } else { 'M' };
                path.push_str(&format!("{verb}{} {}", x(range, *at), span.y(*measure)));
                is_open = true;
            }
            None => is_open = false,
        }
    }
    path
}

/// The parts of the curve beyond the threshold.
fn above(part: &PreviewPart, range: (i64, i64), span: Span, threshold: i64) -> String {
    let is_beyond = |measure: i64| match part.is_falling {
        true => measure < threshold,
        false => measure > threshold,
    };
    let mut path = String::new();
    let base = span.y(threshold);
    for (at, measure) in &part.points {
        if let Some(measure) = measure.filter(|measure| is_beyond(*measure)) {
            let place = x(range, *at);
            path.push_str(&format!("M{place} {base}L{place} {}", span.y(measure)));
        }
    }
    path
}

fn hatch(gaps: &[(i64, i64)], range: (i64, i64), height: i64) -> AnyView {
    let gaps = gaps.iter().map(|(from, to)| {
        let (from, to) = (x(range, *from), x(range, *to));
        view! { <rect x=from y="0" width=(to - from).max(2) height=height fill="url(#hatch)"></rect> }
            .into_any()
    });
    gaps.collect_view().into_any()
}

/// One tick per firing, for the edited rule and for the saved one if it differs.
pub(super) fn strips(edited: &PreviewData, saved: Option<&PreviewData>) -> AnyView {
    let range = (edited.from, edited.to);
    let name = if saved.is_some() { "edited" } else { "fires" };
    let days = (0..DAYS).map(|index| {
        let at = edited.from + (edited.to - edited.from) * index / DAYS;
        let at = DateTime::from_timestamp_millis(at).unwrap_or_default();
        view! { <text x=format!("{}%", index * 100 / DAYS) y="12">{at.format("%a %-d").to_string()}</text> }
            .into_any()
    });
    let saved = saved.map(|saved| {
        strip(
            saved,
            range,
            "saved",
            "pv-strip pv-was",
            "when the saved rule would have fired",
        )
    });
    view! {
        <div class="pv-strips">
            {strip(edited, range, name, "pv-strip", "when it would have fired")}
            {saved}
            <svg class="pv-days" aria-hidden="true">{days.collect_view()}<text x="100%" y="12" text-anchor="end" class="pv-at">"now"</text></svg>
        </div>
    }
    .into_any()
}

fn strip(
    preview: &PreviewData,
    range: (i64, i64),
    name: &'static str,
    class: &'static str,
    label: &'static str,
) -> AnyView {
    let ticks = preview.spans.iter().map(|(from, to)| {
        let (from, to) = (x(range, *from), x(range, *to));
        view! { <rect x=from.min(WIDTH - 3) y="2" width=(to - from).max(3) height="12"></rect> }.into_any()
    });
    view! {
        <span class="small ink2">{name}</span>
        <svg class=class viewBox=format!("0 0 {WIDTH} 16") preserveAspectRatio="none" role="img" aria-label=label>{hatch(&preview.gaps, range, 16)}{ticks.collect_view()}</svg>
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_has_the_threshold_of_its_own_condition() {
        // Several conditions have a threshold of the same name.
        for (condition, name, threshold, expected) in [
            (
                "contention",
                "share",
                Some(500),
                "more than 50 % of attempts waited or were refused",
            ),
            (
                "wait_p95",
                "longer_than",
                Some(180_000),
                "the p95 wait is longer than 3 m",
            ),
            (
                "long_held",
                "longer_than",
                Some(7_200_000),
                "held longer than 2 h",
            ),
            ("long_held", "times_p95", None, "hold time: no threshold"),
        ] {
            let part = PreviewPart {
                condition: condition.to_owned(),
                param: name.to_owned(),
                threshold,
                is_falling: false,
                points: Vec::new(),
            };
            let param = param_of(&part);
            assert_eq!(caption_text(&part, param, part_unit(&part, param)), expected);
        }
    }
}
