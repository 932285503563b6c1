//! Distribution of hold or wait times on a log scale, with the current one.

use std::sync::Arc;

use domain::charts::durations::{CurrentDuration, Distribution, DurationChart, DurationsOf, FEW};
use domain::charts::ticks;
use domain::escape::visible;
use domain::format;
use leptos::prelude::*;

use super::bars::{Bar, BarChart, Rule, Side};
use super::chart_frame::{ChartFrame, data_table};
use super::crosshair::Plot;
use crate::components::reactive::changing;

/// What the durations are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    Hold,
    Wait,
}

impl Measure {
    const fn id(self) -> &'static str {
        match self {
            Self::Hold => "hold-time",
            Self::Wait => "wait-time",
        }
    }

    const fn title(self) -> &'static str {
        match self {
            Self::Hold => "Hold time",
            Self::Wait => "Wait time",
        }
    }

    const fn nouns(self) -> (&'static str, &'static str) {
        match self {
            Self::Hold => ("hold", "holds"),
            Self::Wait => ("wait", "waits"),
        }
    }

    const fn empty_text(self) -> &'static str {
        match self {
            Self::Hold => "No completed hold yet. The comparison needs two.",
            Self::Wait => "No wait has ended in this range.",
        }
    }
}

#[component]
pub fn Durations(
    measure: Measure,
    #[prop(into)] chart: Signal<DurationChart>,
    /// URL of the form of a rule on them.
    #[prop(optional, into)]
    alert: Option<Signal<Option<String>>>,
) -> impl IntoView {
    let title = Signal::derive(move || chart.with(|chart| finding(measure, chart)));
    let note = Signal::derive(move || chart.with(|chart| chart_note(measure, chart)));
    let end =
        alert.map(|alert| changing(move || chart.with(|chart| alert_link(chart, alert.get()))).into_any());
    let end = end.unwrap_or_else(|| ().into_any());
    let readings = Arc::new(move || {
        let bars = chart.with(|chart| bars(measure, chart));
        vec![bars.map(|bars| bars.readings()).unwrap_or_default()]
    });
    let is_empty = Memo::new(move |_| chart.with(|chart| chart.distribution.is_none()));
    view! {
        <ChartFrame id=measure.id() title note end>
            {changing(move || {
                if is_empty.get() {
                    return view! { <p class="pad">{measure.empty_text()}</p> }.into_any();
                }
                let drawing = move || chart.with(|chart| bars(measure, chart)).map(|bars| bars.view());
                let label = format!("{}, by length", measure.title());
                view! {
                    <Plot class=BarChart::class(false) label readings=readings.clone()>{changing(drawing)}</Plot>
                }
                .into_any()
            })}
            {changing(move || {
                let caption = chart.with(|chart| caption(measure, chart));
                chart.with(|chart| bars(measure, chart)).map(|bars| data_table(bars.table(caption, measure.title())))
            })}
        </ChartFrame>
    }
    .into_any()
}

fn alert_link(chart: &DurationChart, href: Option<String>) -> Option<AnyView> {
    let text = format!(
        "Alert when above {}",
        format::period(chart.distribution.as_ref()?.p95)
    );
    Some(view! { <a class="link" href=href?>{text}</a> }.into_any())
}

fn subject(of: &DurationsOf) -> String {
    match of {
        DurationsOf::ThisLock => "of this lock".to_owned(),
        DurationsOf::Prefix(prefix) => format!("of {}", visible(prefix)),
        DurationsOf::AllLocks => "of all locks".to_owned(),
    }
}

fn counted(measure: Measure, chart: &DurationChart) -> String {
    let (singular, plural) = measure.nouns();
    format!(
        "{} {}",
        format::counted(chart.count(), singular, plural),
        subject(&chart.of)
    )
}

fn caption(measure: Measure, chart: &DurationChart) -> String {
    format!("{} by length, as drawn above", counted(measure, chart))
}

fn chart_note(measure: Measure, chart: &DurationChart) -> String {
    if chart.distribution.is_none() {
        return subject(&chart.of);
    }
    let (singular, plural) = measure.nouns();
    // A duration of uncertain length is drawn at the middle of its bounds.
    let uncertain = match chart.uncertain {
        0 => String::new(),
        count => format!(
            "; {} of uncertain length",
            format::counted(count, singular, plural)
        ),
    };
    format!("{}, log scale{uncertain}", counted(measure, chart))
}

fn finding(measure: Measure, chart: &DurationChart) -> String {
    let (title, (singular, plural)) = (measure.title(), measure.nouns());
    let Some(drawn) = &chart.distribution else {
        return title.to_owned();
    };
    match chart.current {
        _ if chart.count() < FEW => format!("{title}: too little data"),
        None => format!("{title}: p95 {}", format::period(round(drawn.p95))),
        Some(now) => match now.shorter_percent {
            100 => format!("Longest {singular} so far"),
            share @ 50..100 => format!("Longer than {share} % of past {plural}"),
            _ => format!("{title}: normal so far"),
        },
    }
}

fn bars(measure: Measure, chart: &DurationChart) -> Option<BarChart> {
    let drawn = chart.distribution.as_ref()?;
    let bars = drawn.bars.iter().map(|bar| {
        let (at, until) = (drawn.scale.at(bar.from_ms), drawn.scale.at(bar.until_ms));
        Bar {
            at,
            width: (until - at - 0.3).max(0.3),
            value: bar.count,
            hue: "",
            title: format!("{} to {}", length(bar.from_ms), length(bar.until_ms)),
            href: None,
        }
    });
    let mut rules = percentiles(drawn);
    rules.extend(chart.current.map(|now| current(drawn, now)));
    Some(BarChart {
        title: format!("{} by length", counted(measure, chart)),
        unit: measure.nouns().1,
        bars: bars.collect(),
        rules,
        ticks: ticks::durations(drawn.scale),
        has_scale: false,
    })
}

fn percentiles(drawn: &Distribution) -> Vec<Rule> {
    let percentiles = [
        ("p50", drawn.p50, 1, Side::Left),
        ("p95", drawn.p95, 0, Side::Left),
        ("p99", drawn.p99, 1, Side::Right),
    ];
    let rule = |(label, ms, row, side): (&str, i64, u32, Side)| Rule {
        side,
        at: drawn.scale.at(ms as f64),
        label: label.to_owned(),
        class: "",
        shape: None,
        row,
        more: format::period(round(ms)),
    };
    let mut rules: Vec<Rule> = percentiles.into_iter().map(rule).collect();
    // Lines at the same position share one label.
    rules.dedup_by(|later, earlier| (later.at - earlier.at).abs() < 0.01);
    rules
}

fn current(drawn: &Distribution, now: CurrentDuration) -> Rule {
    Rule {
        at: drawn.scale.at(now.ms as f64),
        label: "this lock".to_owned(),
        class: if now.is_long { "now warning" } else { "now" },
        shape: now.is_long.then_some("long_held"),
        row: 3,
        side: Side::Right,
        more: format::age(now.ms),
    }
}

fn length(ms: f64) -> String {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "an edge of a bar, some days at most"
    )]
    let ms = ms.round() as i64;
    format::period(round(ms))
}

/// Displayed precision: tenths below ten seconds, then seconds, minutes above an hour.
const fn round(ms: i64) -> i64 {
    let step = match ms {
        ..1_000 => 1,
        1_000..10_000 => 100,
        10_000..3_600_000 => 1_000,
        _ => 60_000,
    };
    (ms + step / 2) / step * step
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use domain::charts::durations::Holds;

    use super::*;
    use crate::charts::tests::html;

    fn page(chart: DurationChart, alert: Option<&str>) -> String {
        let alert = alert.map(str::to_owned);
        html(move || {
            let (chart, alert) = (Signal::stored(chart.clone()), Signal::stored(alert.clone()));
            view! { <Durations measure=Measure::Hold chart alert/> }.into_any()
        })
    }

    #[test]
    fn bars_percentiles_and_table_agree() {
        // A hundred holds of 10 to 109 s, and one of 41 minutes.
        let holds = Holds::new((10..110).map(|s| s * 1_000).collect());
        let chart = DurationChart::new(&holds, Some(2_468_000), DurationsOf::ThisLock);
        let html = page(chart.clone(), Some("/alerts/rules/new?threshold=104"));
        assert!(
            html.contains("Longest hold so far") && html.contains("100 holds of this lock"),
            "{html}"
        );
        assert!(
            html.contains("p95 1 m 44 s") && html.contains("this lock 41 m 08 s"),
            "{html}"
        );
        assert!(html.contains("Alert when above 1 m 44 s"), "{html}");
        let table = bars(Measure::Hold, &chart).unwrap().table("", "");
        let counted: u64 = table
            .rows
            .iter()
            .filter_map(|row| row[1].parse::<u64>().ok())
            .sum();
        assert_eq!(counted, 100);
    }

    #[test]
    fn small_samples_are_marked_and_no_holds_explain_the_chart() {
        let chart = |holds: &Holds| DurationChart::new(holds, None, DurationsOf::Prefix("<b>".to_owned()));
        let html = page(chart(&Holds::new(vec![5_000])), None);
        assert!(
            html.contains("too little data") && html.contains("1 hold of &lt;b&gt;"),
            "{html}"
        );
        assert!(page(chart(&Holds::default()), None).contains("No completed hold yet"));
    }
}
