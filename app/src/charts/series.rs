//! Time series panels on one time axis: lines, steps or areas, with event marks below. Gaps are
//! hatched.

use domain::charts::path;
use domain::charts::scale::TimeScale;
use domain::charts::series::{ChartSpan, Drawn};
use domain::charts::ticks::{self, ChartTick, moment};
use domain::format;

use super::chart_frame::{Table, drawing};
use super::html_writer::{Markup, percent};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Draw {
    Line,
    /// Each value holds until the next.
    Steps,
    Area,
}

pub struct Panel {
    /// Name of the values: `held`, `waiting`.
    pub word: &'static str,
    /// Current value, at the left; `None`: unknown.
    pub figure: Option<String>,
    /// CSS class of a state, or empty.
    pub hue: &'static str,
    pub draw: Draw,
    pub height: u32,
    pub drawn: Drawn,
}

/// An event mark below the panels.
pub struct Event {
    pub at: i64,
    pub shape: &'static str,
    pub hue: &'static str,
    pub title: String,
    pub href: Option<String>,
}

pub struct SeriesChart {
    pub scale: TimeScale,
    pub panels: Vec<Panel>,
    /// `None`: no row of events.
    pub events: Option<Vec<Event>>,
    /// URL of the locks behind a time span; `None`: no links.
    pub href: Option<fn(&ChartSpan) -> String>,
}

/// Time labels that fit on a phone.
const TIMES_MAX: usize = 6;
const VALUES_MAX: usize = 2;

impl SeriesChart {
    pub fn markup(&self) -> Markup {
        let times = ticks::times(self.scale, TIMES_MAX);
        let mut it = Markup::new();
        it.wrap("div", &[("class", "series")], |it| {
            for panel in &self.panels {
                label(it, panel);
                it.wrap("div", &[("class", "cp")], |it| self.panel(it, panel, &times));
            }
            if let Some(events) = &self.events {
                it.wrap("div", &[("class", "cl ev")], |it| {
                    it.text_element("span", &[("class", "small ink2")], "events");
                });
                it.wrap("div", &[("class", "cp")], |it| self.events(it, events));
            }
            it.wrap("div", &[("class", "cp")], |it| {
                axis(it, &times);
            });
        });
        it
    }

    fn panel(&self, it: &mut Markup, panel: &Panel, times: &[ChartTick]) {
        let (values, labels) = ticks::counts(panel.drawn.low, panel.drawn.high, VALUES_MAX);
        drawing(
            it,
            panel.hue,
            panel.height,
            &summary(panel),
            self.href.is_some(),
            |it| {
                for tick in times {
                    let x = percent(tick.at);
                    it.mark(
                        "line",
                        &[("class", "grid"), ("x1", &x), ("x2", &x), ("y2", "100%")],
                    );
                }
                for tick in &labels {
                    let y = percent(100.0 - tick.at);
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
                gaps(it, self.scale, &panel.drawn.gaps);
                let view = [
                    ("viewBox", "0 0 1000 100"),
                    ("preserveAspectRatio", "none"),
                    ("width", "100%"),
                    ("height", "100%"),
                ];
                it.wrap("svg", &view, |it| {
                    if panel.draw == Draw::Area {
                        for path in panel.drawn.paths(values, path::area) {
                            it.mark("path", &[("class", "under"), ("d", &path)]);
                        }
                    }
                    let way = if panel.draw == Draw::Steps {
                        path::steps
                    } else {
                        path::line
                    };
                    for path in panel.drawn.paths(values, way) {
                        it.mark("path", &[("class", "ser"), ("d", &path)]);
                    }
                });
                for span in &panel.drawn.spans {
                    self.hit(it, panel, span);
                }
            },
        );
    }

    /// Tooltip of a time span, over the full height.
    fn hit(&self, it: &mut Markup, panel: &Panel, span: &ChartSpan) {
        let title = format!("{}: {}", between(span, self.scale), level(panel, span));
        let href = self.href.filter(|_| span.level.is_some()).map(|href| href(span));
        let (x, width) = (
            percent(self.scale.at(span.from)),
            percent(self.scale.width(span.from, span.until)),
        );
        it.linked(href.as_deref(), &title, |it| {
            it.titled_element(
                "rect",
                &[("class", "hit"), ("x", &x), ("width", &width), ("height", "100%")],
                &title,
            );
        });
    }

    fn events(&self, it: &mut Markup, events: &[Event]) {
        let count = format::counted(events.len() as u64, "event", "events");
        let has_links = events.iter().any(|event| event.href.is_some());
        drawing(it, "evs", 20, &count, has_links, |it| {
            it.mark(
                "line",
                &[("class", "axis"), ("x2", "100%"), ("y1", "19.5"), ("y2", "19.5")],
            );
            for event in events.iter().filter(|event| self.scale.contains(event.at)) {
                let title = format!("{} {}", moment(event.at, self.scale), event.title);
                let (x, href) = (percent(self.scale.at(event.at)), format!("#s-{}", event.shape));
                it.linked(event.href.as_deref(), &title, |it| {
                    it.wrap(
                        "svg",
                        &[
                            ("class", event.hue),
                            ("x", &x),
                            ("y", "3"),
                            ("overflow", "visible"),
                        ],
                        |it| {
                            it.text_element("title", &[], &title);
                            it.mark(
                                "rect",
                                &[("class", "hit"), ("x", "-8"), ("width", "16"), ("height", "14")],
                            );
                            it.mark(
                                "use",
                                &[("href", &href), ("x", "-6"), ("width", "11"), ("height", "11")],
                            );
                        },
                    );
                });
            }
        });
    }

    /// The same numbers, a row per span.
    pub fn table(&self, caption: impl Into<String>) -> Table {
        let mut head = vec!["from, UTC".to_owned(), "until".to_owned()];
        head.extend(self.panels.iter().map(|panel| panel.word.to_owned()));
        let spans = self
            .panels
            .first()
            .map_or(&[][..], |panel| &panel.drawn.spans[..]);
        let rows = spans.iter().enumerate().map(|(row, span)| {
            let mut cells = vec![moment(span.from, self.scale), moment(span.until, self.scale)];
            let told = self.panels.iter().map(|panel| {
                let span = panel.drawn.spans.get(row);
                span.map_or_else(String::new, |span| level(panel, span))
            });
            cells.extend(told);
            cells
        });
        Table {
            caption: caption.into(),
            head,
            rows: rows.collect(),
        }
    }
}

fn label(it: &mut Markup, panel: &Panel) {
    it.wrap("div", &[("class", "cl")], |it| {
        match &panel.figure {
            Some(figure) => it.text_element("b", &[], figure),
            None => it.text_element("b", &[("class", "ink3")], "unknown"),
        };
        it.text_element(
            "span",
            &[("class", &format!("small st {}", panel.hue))],
            panel.word,
        );
    });
}

/// Hatched over the full height.
pub fn gaps(it: &mut Markup, scale: TimeScale, gaps: &[(i64, i64)]) {
    for (from, until) in gaps {
        let (x, width) = (percent(scale.at(*from)), percent(scale.width(*from, *until)));
        let title = format!(
            "no history from {} to {}",
            moment(*from, scale),
            moment(*until, scale)
        );
        it.titled_element(
            "rect",
            &[
                ("class", "hatch"),
                ("x", &x),
                ("width", &width),
                ("height", "100%"),
            ],
            &title,
        );
    }
}

/// Time labels below a chart; its table has them too.
pub fn axis(it: &mut Markup, times: &[ChartTick]) {
    it.wrap(
        "svg",
        &[
            ("class", "ch times"),
            ("width", "100%"),
            ("height", "20"),
            ("aria-hidden", "true"),
        ],
        |it| {
            for tick in times {
                let class = match tick.at {
                    at if at < 3.0 => "",
                    at if at > 97.0 => "e",
                    _ => "mid",
                };
                it.text_element(
                    "text",
                    &[("class", class), ("x", &percent(tick.at)), ("y", "15")],
                    &tick.label,
                );
            }
        },
    );
}

fn between(span: &ChartSpan, scale: TimeScale) -> String {
    format!("{} to {}", moment(span.from, scale), moment(span.until, scale))
}

fn level(panel: &Panel, span: &ChartSpan) -> String {
    let Some(level) = span.level else {
        return "unknown: no history".to_owned();
    };
    let last = figure(level.last);
    if level.low == level.high {
        return format!("{last} {}", panel.word);
    }
    format!(
        "{} to {} {}, {last} at the end",
        figure(level.low),
        figure(level.high),
        panel.word
    )
}

/// With thousands separators; decimals only for fractions.
fn figure(value: f64) -> String {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a count of locks"
    )]
    let whole = value.round() as u64;
    if (value - value.round()).abs() < 0.005 {
        format::count(whole)
    } else {
        format::measure(value)
    }
}

fn summary(panel: &Panel) -> String {
    let drawn = &panel.drawn;
    match drawn.last {
        None => format!("{}: no history in this range", panel.word),
        Some(last) => format!(
            "{}: {} to {}, {} at the end",
            panel.word,
            figure(drawn.low),
            figure(drawn.high),
            figure(last)
        ),
    }
}

#[cfg(test)]
mod tests {
    use domain::charts::series::ChartSeries;

    use super::*;
    use crate::charts::chart_frame::{self, Frame};

    fn chart(points: Vec<(i64, f64)>, gaps: Vec<(i64, i64)>, length: i64) -> SeriesChart {
        let scale = TimeScale::new(0, length);
        let drawn = Drawn::from_series(&ChartSeries { points, gaps }, scale, 600, 24);
        SeriesChart {
            scale,
            panels: vec![Panel {
                word: "held",
                figure: Some("12,847".to_owned()),
                hue: "healthy",
                draw: Draw::Line,
                height: 112,
                drawn,
            }],
            events: Some(Vec::new()),
            href: None,
        }
    }

    fn framed(chart: &SeriesChart) -> String {
        let framed = chart_frame::frame(&Frame {
            id: "held",
            title: "Held and waiting".to_owned(),
            note: "last 6 h".to_owned(),
            end: Markup::new(),
            drawing: chart.markup(),
            legend: Vec::new(),
            table: chart.table("held over time"),
        });
        framed.into_string()
    }

    #[test]
    fn ten_thousand_points_are_small_and_their_table_agrees() {
        // A sawtooth of 10,000 points: chart, tooltips and table show the same values.
        let points = (0..10_000_i64)
            .map(|at| (at * 1_000, ((at * 7919) % 1_000) as f64))
            .collect();
        let chart = chart(points, vec![(3_000_000, 4_000_000)], 10_000_000);
        let html = framed(&chart);
        assert!(html.len() < 30_000, "{} bytes", html.len());
        for row in chart.table("").rows {
            let tooltip = format!("{} to {}: {}", row[0], row[1], row[2]);
            assert!(html.contains(&tooltip), "{tooltip}");
        }
        assert_eq!(html.matches("class=\"hatch\"").count(), 1);
        assert!(
            html.contains("aria-label=\"held: 0 to 999, 81 at the end\""),
            "{}",
            &html[..2_000]
        );
    }

    #[test]
    fn without_history_the_chart_has_an_empty_state() {
        let html = framed(&chart(Vec::new(), vec![(0, 100_000)], 100_000));
        assert!(html.contains("no history in this range") && !html.contains("class=\"ser\""));
        assert!(html.contains("unknown: no history"));
    }
}
