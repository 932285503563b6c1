//! Bar chart of counts, over time or over a distribution.

use domain::charts::ticks::{self, ChartTick};
use domain::format;
use leptos::prelude::*;

use super::chart_frame::Table;
use super::crosshair::Reading;
use super::svg::{anchored, drawing, horizontal, label_class, linked_untabbed, percent, px, shape};

#[derive(Debug, Clone, PartialEq)]
pub struct Bar {
    /// Left edge and width in per cent of the chart.
    pub at: f64,
    pub width: f64,
    pub value: u64,
    /// CSS class of a state, or empty.
    pub hue: &'static str,
    /// Label of the interval: `02:00 to 02:15`, `1 m to 2 m`.
    pub title: String,
    pub href: Option<String>,
}

/// A labelled vertical line: a percentile, a threshold, the current hold.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    pub at: f64,
    pub label: String,
    /// CSS classes: a hue, `now` for the emphasized one.
    pub class: &'static str,
    /// Sprite shape on top.
    pub shape: Option<&'static str>,
    /// Text rows from the top to the label.
    pub row: u32,
    /// Preferred side of the label.
    pub side: Side,
    /// Second part of the label.
    pub more: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Left,
    Right,
}

#[derive(Debug, Clone, PartialEq)]
pub struct BarChart {
    pub title: String,
    /// Counted unit: `holds`, `rejections`.
    pub unit: &'static str,
    pub bars: Vec<Bar>,
    pub rules: Vec<Rule>,
    pub ticks: Vec<ChartTick>,
    /// Shows the scale of counts at the left.
    pub has_scale: bool,
}

/// Baseline of the bars, and height of the highest.
const GROUND: f64 = 120.0;
const HIGHEST: f64 = 100.0;
const HEIGHT: u32 = 148;
/// Minimum height of a bar with a value above zero.
const LOWEST: f64 = 2.0;
/// Distance from an edge, in per cent, below which a label does not fit on that side.
const EDGE: f64 = 24.0;

impl BarChart {
    /// CSS class of the plot.
    pub const fn class(has_scale: bool) -> &'static str {
        if has_scale { "bar-plot scaled" } else { "bar-plot" }
    }

    pub fn view(&self) -> AnyView {
        let most = self.bars.iter().map(|bar| bar.value).max().unwrap_or(0);
        let (values, labels) = ticks::counts(0.0, most as f64, 2);
        let has_links = self.bars.iter().any(|bar| bar.href.is_some());
        let lines: Vec<AnyView> = labels.iter().filter(|_| self.has_scale).map(value_line).collect();
        let counted = self.bars.iter().filter(|bar| bar.value > 0);
        let bars: Vec<AnyView> = counted
            .map(|bar| self.bar(bar, values.at(bar.value as f64)))
            .collect();
        let ticks: Vec<AnyView> = self.ticks.iter().map(tick_mark).collect();
        let rules: Vec<AnyView> = self.rules.iter().map(rule).collect();
        let marks = view! { {lines}{bars}{horizontal("axis", "120.5")}{ticks}{rules} };
        drawing("bars", HEIGHT, self.title.clone(), has_links, marks.into_any())
    }

    fn bar(&self, bar: &Bar, height: f64) -> AnyView {
        let height = (height / 100.0 * HIGHEST).max(LOWEST);
        let title = self.text(bar);
        let class = format!("count {}", bar.hue);
        let mark = view! {
            <rect
                class=class.trim_end().to_owned()
                x=percent(bar.at)
                width=percent(bar.width)
                y=px(GROUND - height)
                height=px(height)
            >
                <title>{title.clone()}</title>
            </rect>
        };
        linked_untabbed(bar.href.clone(), &title, mark.into_any())
    }

    fn text(&self, bar: &Bar) -> String {
        format!("{}: {} {}", bar.title, bar.value, self.unit)
    }

    /// The same numbers: a row for each non-zero bar.
    pub fn table(&self, caption: impl Into<String>, head: &str) -> Table {
        let counted = self.bars.iter().filter(|bar| bar.value > 0);
        let bars = counted.map(|bar| vec![bar.title.clone(), bar.value.to_string()]);
        let rules = self
            .rules
            .iter()
            .map(|rule| vec![rule.label.clone(), rule.more.clone()]);
        Table {
            caption: caption.into(),
            head: vec![head.to_owned(), self.unit.to_owned()],
            rows: bars.chain(rules).collect(),
        }
    }

    /// A reading per bar, zeros too, with the lines in it.
    pub fn readings(&self) -> Vec<Reading> {
        let reading = |bar: &Bar| {
            let count = format!("{} {}", format::count(bar.value), self.unit);
            let inside = |rule: &&Rule| (bar.at..bar.at + bar.width).contains(&rule.at);
            let rules = self
                .rules
                .iter()
                .filter(inside)
                .map(|rule| ("ink3", rule_text(rule)));
            Reading {
                at: bar.at,
                width: bar.width,
                title: bar.title.clone(),
                values: std::iter::once((bar.hue, count)).chain(rules).collect(),
                href: bar.href.clone(),
            }
        };
        self.bars.iter().map(reading).collect()
    }
}

fn value_line(tick: &ChartTick) -> AnyView {
    let y = px(GROUND - tick.at / 100.0 * HIGHEST);
    view! {
        {horizontal("grid", &y)}
        <text class="e" x="-8" y=y dy="4">{tick.label.clone()}</text>
    }
    .into_any()
}

fn tick_mark(tick: &ChartTick) -> AnyView {
    let x = percent(tick.at);
    view! {
        <line class="axis" x1=x.clone() x2=x.clone() y1="120" y2="125"></line>
        <text class=label_class(tick.at) x=x y="140">{tick.label.clone()}</text>
    }
    .into_any()
}

fn rule_text(rule: &Rule) -> String {
    if rule.more.is_empty() {
        rule.label.clone()
    } else {
        format!("{} {}", rule.label, rule.more)
    }
}

fn rule(rule: &Rule) -> AnyView {
    let top = 4 + rule.row * 14;
    let is_left = match rule.side {
        Side::Left => rule.at > EDGE,
        Side::Right => rule.at > 100.0 - EDGE,
    };
    let (side, from) = if is_left { ("e", "-6") } else { ("", "6") };
    let text = rule_text(rule);
    let shape = rule.shape.map(|name| {
        let at = format!("translate(0 {})", i64::from(top) - 4);
        view! { <g transform=at>{shape(name, ("-6", "0"), "12")}</g> }.into_any()
    });
    let marks = view! {
        <g class=format!("rule {}", rule.class)>
            <title>{text.clone()}</title>
            <line y1=top y2="120"></line>
            <text class=side x=from y=top + 8>{text}</text>
            {shape}
        </g>
    };
    anchored(percent(rule.at), marks.into_any())
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use super::*;

    #[test]
    fn bars_readings_and_table_count_the_same() {
        // Three bars, one of them empty, one with a link, and a rule.
        let bar = |at: f64, value, href: Option<&str>| Bar {
            at,
            width: 10.0,
            value,
            hue: "critical",
            title: format!("from {at}"),
            href: href.map(str::to_owned),
        };
        let chart = BarChart {
            title: "3 rejections".to_owned(),
            unit: "rejections",
            bars: vec![
                bar(0.0, 2, None),
                bar(10.0, 0, None),
                bar(20.0, 1, Some("/fencing?a=1&b=2")),
            ],
            rules: vec![Rule {
                at: 15.0,
                label: "p95".to_owned(),
                class: "",
                shape: None,
                row: 0,
                side: Side::Left,
                more: "12 m".to_owned(),
            }],
            ticks: Vec::new(),
            has_scale: true,
        };
        let html = Owner::new_root(None).with(|| chart.view().to_html().replace("<!>", ""));
        assert!(html.contains("role=\"group\"") && html.contains("href=\"/fencing?a=1&amp;b=2\""));
        let table = chart.table("", "when");
        assert_eq!(table.rows, [["from 0", "2"], ["from 20", "1"], ["p95", "12 m"]]);
        for row in &table.rows[..2] {
            assert!(
                html.contains(&format!("<title>{}: {} rejections</title>", row[0], row[1])),
                "{html}"
            );
        }
        let values: Vec<String> = chart
            .readings()
            .into_iter()
            .map(|reading| {
                reading
                    .values
                    .into_iter()
                    .map(|(_, text)| text)
                    .collect::<Vec<_>>()
                    .join("; ")
            })
            .collect();
        assert_eq!(values, ["2 rejections", "0 rejections; p95 12 m", "1 rejections"]);
    }
}
