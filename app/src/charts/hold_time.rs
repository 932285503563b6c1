//! Hold time distribution of a lock, with the current hold.

use domain::charts::hold_time::{Distribution, Holds};
use domain::charts::ticks;
use domain::format;

use super::bars::{Bar, BarChart, Rule, Side};
use super::chart_frame::{self, Frame};
use super::html_writer::Markup;

/// The current hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HoldNow {
    pub held_ms: i64,
    /// Long for this lock.
    pub is_long: bool,
}

/// With fewer holds the chart warns that the sample is small.
pub const FEW: u64 = 10;

/// `what` names the subject: `of this lock`, `of tenant_*:billing-*`. `alert` links to the form
/// of a rule on it.
pub fn hold_time(holds: &Holds, now: Option<HoldNow>, what: &str, alert: Option<&str>) -> Markup {
    let Some(told) = holds.distribution(now.map(|now| now.held_ms)) else {
        return none(what);
    };
    let mut end = Markup::new();
    if let Some(href) = alert {
        let word = format!("Alert when above {}", format::period(told.p95));
        end.text_element(
            "a",
            &[("class", "link"), ("href", href), ("rel", "external")],
            &word,
        );
    }
    let chart = chart(&told, now, what);
    let caption = format!("Holds {what} by length, as drawn above");
    chart_frame::frame(&Frame {
        id: "hold-time",
        title: finding(holds, now),
        note: format!(
            "{} {what}, log scale{}",
            format::counted(told.total, "hold", "holds"),
            uncertain(holds)
        ),
        end,
        drawing: chart.markup(),
        legend: Vec::new(),
        table: chart.table(caption, "held for"),
    })
}

/// Holds with an uncertain length count with the middle of their bounds.
fn uncertain(holds: &Holds) -> String {
    match holds.uncertain() {
        0 => String::new(),
        count => format!(
            "; {} of uncertain length",
            format::counted(count, "hold", "holds")
        ),
    }
}

fn finding(holds: &Holds, now: Option<HoldNow>) -> String {
    match now {
        _ if holds.count() < FEW => "Hold time: too little data".to_owned(),
        None => match holds.percentile(95) {
            Some(p95) => format!("Hold time: p95 {}", format::age(p95)),
            None => "Hold time".to_owned(),
        },
        Some(now) => match holds.shorter_than(now.held_ms) {
            100 => "Longest hold so far".to_owned(),
            share @ 50..100 => format!("Longer than {share} % of past holds"),
            _ => "Hold time: normal so far".to_owned(),
        },
    }
}

fn none(what: &str) -> Markup {
    let mut drawing = Markup::new();
    drawing.text_element(
        "p",
        &[("class", "pad")],
        "No completed hold yet. The comparison needs two.",
    );
    chart_frame::frame(&Frame {
        id: "hold-time",
        title: "Hold time".to_owned(),
        note: what.to_owned(),
        end: Markup::new(),
        drawing,
        legend: Vec::new(),
        table: chart_frame::Table {
            caption: "No holds yet".to_owned(),
            head: vec!["held for".to_owned(), "holds".to_owned()],
            rows: Vec::new(),
        },
    })
}

fn chart(told: &Distribution, now: Option<HoldNow>, what: &str) -> BarChart {
    let bars = told.bars.iter().map(|bar| {
        let (at, until) = (told.scale.at(bar.from_ms), told.scale.at(bar.until_ms));
        Bar {
            at,
            width: (until - at - 0.3).max(0.3),
            value: bar.count,
            hue: "",
            title: format!("{} to {}", length(bar.from_ms), length(bar.until_ms)),
            href: None,
        }
    });
    let percentiles = [
        ("p50", told.p50, 1, Side::Left),
        ("p95", told.p95, 0, Side::Left),
        ("p99", told.p99, 1, Side::Right),
    ];
    let mut rules: Vec<Rule> = percentiles
        .into_iter()
        .map(|(word, ms, row, side)| Rule {
            side,
            at: told.scale.at(ms as f64),
            word: word.to_owned(),
            class: "",
            shape: None,
            row,
            more: format::period(round(ms)),
            href: None,
        })
        .collect();
    // Lines at the same position share one label.
    rules.dedup_by(|later, earlier| (later.at - earlier.at).abs() < 0.01);
    if let Some(now) = now {
        rules.push(Rule {
            at: told.scale.at(now.held_ms as f64),
            word: "this lock".to_owned(),
            class: if now.is_long { "now warning" } else { "now" },
            shape: now.is_long.then_some("long_held"),
            row: 3,
            side: Side::Right,
            more: format::age(now.held_ms),
            href: None,
        });
    }
    BarChart {
        title: format!(
            "{} {what} by length",
            format::counted(told.total, "hold", "holds")
        ),
        word: "holds",
        bars: bars.collect(),
        rules,
        gaps: Vec::new(),
        ticks: ticks::durations(told.scale),
        has_scale: false,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_percentiles_and_table_agree() {
        // A hundred holds of 10 to 109 s, and one of 41 minutes.
        let holds = Holds::new((10..110).map(|s| s * 1_000).collect());
        let now = HoldNow {
            held_ms: 2_468_000,
            is_long: true,
        };
        let html = hold_time(
            &holds,
            Some(now),
            "of this lock",
            Some("/alerts/rules/new?threshold=104"),
        )
        .into_string();
        assert!(
            html.contains("Longest hold so far") && html.contains("100 holds of this lock"),
            "{html}"
        );
        assert!(
            html.contains("p95 1 m 44 s") && html.contains("this lock 41 m 08 s"),
            "{html}"
        );
        let table = chart(&holds.distribution(Some(2_468_000)).unwrap(), Some(now), "").table("", "");
        let counted: u64 = table
            .rows
            .iter()
            .filter_map(|row| row[1].parse::<u64>().ok())
            .sum();
        assert_eq!(counted, 100);
    }

    #[test]
    fn small_samples_are_marked_and_no_holds_explain_the_chart() {
        let html = hold_time(&Holds::new(vec![5_000]), None, "of this lock", None).into_string();
        assert!(html.contains("too little data") && html.contains("1 hold of this lock"));
        assert!(
            hold_time(&Holds::default(), None, "", None)
                .as_str()
                .contains("No completed hold yet")
        );
    }
}
