//! How long a lock is usually held, and where this hold stands in it.

use domain::charts::hold::{Distribution, Holds};
use domain::charts::ticks;
use domain::human;

use super::bars::{Bar, BarChart, Rule, Side};
use super::frame::{self, Frame};
use super::markup::Markup;

/// One hold that lasts now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    pub held_ms: i64,
    /// Long for this lock.
    pub is_long: bool,
}

/// Fewer holds than this say little about the next.
pub const FEW: u64 = 10;

/// `what` says whose holds they are: `of this lock`, `of tenant_*:billing-*`. `alert` is where a rule about it is made.
pub fn hold_time(holds: &Holds, now: Option<Now>, what: &str, alert: Option<&str>) -> Markup {
    let Some(told) = holds.distribution(now.map(|now| now.held_ms)) else {
        return none(what);
    };
    let mut end = Markup::new();
    if let Some(href) = alert {
        let word = format!("Alert when above {}", human::period(told.p95));
        end.said(
            "a",
            &[("class", "link"), ("href", href), ("rel", "external")],
            &word,
        );
    }
    let chart = chart(&told, now, what);
    let caption = format!("Holds {what} by length, as drawn above");
    frame::frame(&Frame {
        id: "hold-time",
        title: finding(holds, now),
        note: format!(
            "{} {what}, log scale{}",
            human::counted(told.total, "hold", "holds"),
            uncertain(holds)
        ),
        end,
        drawing: chart.markup(),
        legend: Vec::new(),
        table: chart.table(caption, "held for"),
    })
}

/// Holds whose length is an interval count with its middle.
fn uncertain(holds: &Holds) -> String {
    match holds.uncertain() {
        0 => String::new(),
        count => format!("; {} of uncertain length", human::counted(count, "hold", "holds")),
    }
}

fn finding(holds: &Holds, now: Option<Now>) -> String {
    match now {
        _ if holds.count() < FEW => "Hold time: too few to compare with".to_owned(),
        None => match holds.percentile(95) {
            Some(p95) => format!("Hold time: 95 of 100 are shorter than {}", human::age(p95)),
            None => "Hold time".to_owned(),
        },
        Some(now) => match holds.shorter_than(now.held_ms) {
            100 => "Longer than every hold before".to_owned(),
            share @ 50..100 => format!("Longer than {share} of 100 holds before"),
            _ => "Hold time: nothing unusual so far".to_owned(),
        },
    }
}

fn none(what: &str) -> Markup {
    let mut drawing = Markup::new();
    drawing.said(
        "p",
        &[("class", "pad")],
        "No hold has been seen from its beginning to its end yet. From the second one on they can be compared here.",
    );
    frame::frame(&Frame {
        id: "hold-time",
        title: "Hold time".to_owned(),
        note: what.to_owned(),
        end: Markup::new(),
        drawing,
        legend: Vec::new(),
        table: frame::Table {
            caption: "No holds yet".to_owned(),
            head: vec!["held for".to_owned(), "holds".to_owned()],
            rows: Vec::new(),
        },
    })
}

fn chart(told: &Distribution, now: Option<Now>, what: &str) -> BarChart {
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
            more: human::period(round(ms)),
            href: None,
        })
        .collect();
    // Where they stand together one word is enough.
    rules.dedup_by(|later, earlier| (later.at - earlier.at).abs() < 0.01);
    if let Some(now) = now {
        rules.push(Rule {
            at: told.scale.at(now.held_ms as f64),
            word: "this lock".to_owned(),
            class: if now.is_long { "now warning" } else { "now" },
            shape: now.is_long.then_some("long_held"),
            row: 3,
            side: Side::Right,
            more: human::age(now.held_ms),
            href: None,
        });
    }
    BarChart {
        title: format!("{} {what} by length", human::counted(told.total, "hold", "holds")),
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
    human::period(round(ms))
}

/// To what a chart can show: tenths below ten seconds, then seconds, minutes from an hour on.
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
    fn the_bars_the_percentiles_and_the_table_tell_the_same() {
        // A hundred holds of 10 to 109 s, and one of 41 minutes.
        let holds = Holds::new((10..110).map(|s| s * 1_000).collect());
        let now = Now {
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
            html.contains("Longer than every hold before") && html.contains("100 holds of this lock"),
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
    fn few_holds_are_called_few_and_none_are_taught() {
        let html = hold_time(&Holds::new(vec![5_000]), None, "of this lock", None).into_string();
        assert!(html.contains("too few to compare") && html.contains("1 hold of this lock"));
        assert!(
            hold_time(&Holds::default(), None, "", None)
                .as_str()
                .contains("from its beginning to its end")
        );
    }
}
