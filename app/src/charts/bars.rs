//! Bar chart of counts, over time or over a distribution.

use domain::charts::ticks::{self, ChartTick};

use super::chart_frame::{Table, drawing};
use super::html_writer::{Markup, percent};

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
pub struct Rule {
    pub at: f64,
    pub word: String,
    /// CSS classes: a hue, `now` for the emphasized one.
    pub class: &'static str,
    /// Sprite shape on top.
    pub shape: Option<&'static str>,
    /// Text rows from the top to the label.
    pub row: u32,
    /// Preferred side of the label.
    pub side: Side,
    /// Second line of the label.
    pub more: String,
    pub href: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Left,
    Right,
}

pub struct BarChart {
    pub title: String,
    /// Counted unit: `holds`, `rejections`.
    pub word: &'static str,
    pub bars: Vec<Bar>,
    pub rules: Vec<Rule>,
    /// Begin and width in per cent, and the label.
    pub gaps: Vec<(f64, f64, String)>,
    pub ticks: Vec<ChartTick>,
    /// Shows the scale of counts at the left.
    pub has_scale: bool,
}

/// Baseline of the bars, and height of the highest.
const GROUND: f64 = 120.0;
const HIGHEST: f64 = 100.0;
const HEIGHT: u32 = 148;
/// Least height of a bar above zero.
const LOWEST: f64 = 2.0;
/// Closer to an edge than this, in per cent, a label does not fit on that side.
const EDGE: f64 = 24.0;

impl BarChart {
    pub fn markup(&self) -> Markup {
        let most = self.bars.iter().map(|bar| bar.value).max().unwrap_or(0);
        let (values, labels) = ticks::counts(0.0, most as f64, 2);
        let has_links = self.bars.iter().any(|bar| bar.href.is_some())
            || self.rules.iter().any(|rule| rule.href.is_some());
        let mut it = Markup::new();
        let class = if self.has_scale { "bars scaled" } else { "bars" };
        drawing(&mut it, class, HEIGHT, &self.title, has_links, |it| {
            for (at, width, title) in &self.gaps {
                let (x, width) = (percent(*at), percent(*width));
                let hatch = [
                    ("class", "hatch"),
                    ("x", &*x),
                    ("width", &*width),
                    ("y", "20"),
                    ("height", "100"),
                ];
                it.titled_element("rect", &hatch, title);
            }
            for tick in labels.iter().filter(|_| self.has_scale) {
                let y = px(GROUND - tick.at / 100.0 * HIGHEST);
                it.mark(
                    "line",
                    &[("class", "grid"), ("x2", "100%"), ("y1", &y), ("y2", &y)],
                );
                it.text_element(
                    "text",
                    &[("class", "e"), ("x", "-8"), ("y", &y), ("dy", "4")],
                    &tick.label,
                );
            }
            for bar in self.bars.iter().filter(|bar| bar.value > 0) {
                self.bar(it, bar, values.at(bar.value as f64));
            }
            it.mark(
                "line",
                &[
                    ("class", "axis"),
                    ("x2", "100%"),
                    ("y1", "120.5"),
                    ("y2", "120.5"),
                ],
            );
            for tick in &self.ticks {
                place(it, tick);
            }
            for line in &self.rules {
                rule(it, line);
            }
        });
        it
    }

    fn bar(&self, it: &mut Markup, bar: &Bar, height: f64) {
        let height = (height / 100.0 * HIGHEST).max(LOWEST);
        let title = format!("{}: {} {}", bar.title, bar.value, self.word);
        let (x, width) = (percent(bar.at), percent(bar.width));
        let (y, height) = (px(GROUND - height), px(height));
        let class = format!("count {}", bar.hue);
        it.linked(bar.href.as_deref(), &title, |it| {
            let place = [
                ("class", class.trim_end()),
                ("x", &*x),
                ("width", &*width),
                ("y", &*y),
                ("height", &*height),
            ];
            it.titled_element("rect", &place, &title);
        });
    }

    /// The same numbers: a row for each non-zero bar.
    pub fn table(&self, caption: impl Into<String>, head: &str) -> Table {
        let counted = self.bars.iter().filter(|bar| bar.value > 0);
        let bars = counted.map(|bar| vec![bar.title.clone(), bar.value.to_string()]);
        let rules = self
            .rules
            .iter()
            .map(|rule| vec![rule.word.clone(), rule.more.clone()]);
        Table {
            caption: caption.into(),
            head: vec![head.to_owned(), self.word.to_owned()],
            rows: bars.chain(rules).collect(),
        }
    }
}

fn px(value: f64) -> String {
    domain::format::measure((value * 10.0).round() / 10.0)
}

fn place(it: &mut Markup, tick: &ChartTick) {
    let x = percent(tick.at);
    it.mark(
        "line",
        &[
            ("class", "axis"),
            ("x1", &x),
            ("x2", &x),
            ("y1", "120"),
            ("y2", "125"),
        ],
    );
    let class = match tick.at {
        at if at < 3.0 => "",
        at if at > 97.0 => "e",
        _ => "mid",
    };
    it.text_element("text", &[("class", class), ("x", &x), ("y", "140")], &tick.label);
}

fn rule(it: &mut Markup, rule: &Rule) {
    let (x, top) = (percent(rule.at), 4 + rule.row * 14);
    let text = (top + 8).to_string();
    let class = format!("rule {}", rule.class);
    let is_left = match rule.side {
        Side::Left => rule.at > EDGE,
        Side::Right => rule.at > 100.0 - EDGE,
    };
    let (side, from) = if is_left { ("e", "-6") } else { ("", "6") };
    let said = if rule.more.is_empty() {
        rule.word.clone()
    } else {
        format!("{} {}", rule.word, rule.more)
    };
    it.linked(rule.href.as_deref(), &said, |it| {
        it.wrap(
            "svg",
            &[("class", &class), ("x", &x), ("overflow", "visible")],
            |it| {
                it.text_element("title", &[], &said);
                it.mark("line", &[("y1", &top.to_string()), ("y2", "120")]);
                it.text_element("text", &[("class", side), ("x", from), ("y", &text)], &said);
                if let Some(shape) = rule.shape {
                    let href = format!("#s-{shape}");
                    let at = (top - 4).to_string();
                    it.mark(
                        "use",
                        &[
                            ("href", &href),
                            ("x", "-6"),
                            ("y", &at),
                            ("width", "12"),
                            ("height", "12"),
                        ],
                    );
                }
            },
        );
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_and_their_table_count_the_same() {
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
            word: "rejections",
            bars: vec![
                bar(0.0, 2, None),
                bar(10.0, 0, None),
                bar(20.0, 1, Some("/fencing?a=1&b=2")),
            ],
            rules: vec![Rule {
                at: 15.0,
                word: "p95".to_owned(),
                class: "",
                shape: None,
                row: 0,
                side: Side::Left,
                more: "12 m".to_owned(),
                href: None,
            }],
            gaps: Vec::new(),
            ticks: Vec::new(),
            has_scale: true,
        };
        let html = chart.markup().into_string();
        assert!(html.contains("role=\"group\"") && html.contains("href=\"/fencing?a=1&amp;b=2\""));
        let table = chart.table("", "when");
        assert_eq!(table.rows, [["from 0", "2"], ["from 20", "1"], ["p95", "12 m"]]);
        for row in &table.rows[..2] {
            assert!(
                html.contains(&format!("<title>{}: {} rejections</title>", row[0], row[1])),
                "{html}"
            );
        }
    }
}
