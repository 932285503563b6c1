//! Values over time, one panel above the other on one axis of time: lines, steps or areas, and marks of what happened below.
//! Times that nobody watched are hatched.

use domain::charts::path;
use domain::charts::scale::TimeScale;
use domain::charts::series::{Drawn, Span};
use domain::charts::ticks::{self, Tick, moment};
use domain::human;

use super::frame::{Table, drawing};
use super::markup::{Markup, percent};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Draw {
    Line,
    /// What holds until the next is known.
    Steps,
    Area,
}

pub struct Panel {
    /// What the numbers are: `held`, `waiting`.
    pub word: &'static str,
    /// The number now, at the left; none: it is not known.
    pub figure: Option<String>,
    /// Class of a state, or nothing.
    pub hue: &'static str,
    pub draw: Draw,
    pub height: u32,
    pub drawn: Drawn,
}

/// Something that happened, below the panels.
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
    /// None: there is no row for them.
    pub events: Option<Vec<Event>>,
    /// Where the locks behind a span of time are; none: nowhere.
    pub href: Option<fn(&Span) -> String>,
}

/// Labels of time that fit a phone.
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
                    it.said("span", &[("class", "small ink2")], "events");
                });
                it.wrap("div", &[("class", "cp")], |it| self.events(it, events));
            }
            it.wrap("div", &[("class", "cp")], |it| {
                axis(it, &times);
            });
        });
        it
    }

    fn panel(&self, it: &mut Markup, panel: &Panel, times: &[Tick]) {
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
                    it.said(
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

    /// The tooltip of a span of time, over the whole height.
    fn hit(&self, it: &mut Markup, panel: &Panel, span: &Span) {
        let title = format!("{}: {}", between(span, self.scale), level(panel, span));
        let href = self.href.filter(|_| span.level.is_some()).map(|href| href(span));
        let (x, width) = (
            percent(self.scale.at(span.from)),
            percent(self.scale.width(span.from, span.until)),
        );
        it.linked(href.as_deref(), &title, |it| {
            it.told(
                "rect",
                &[("class", "hit"), ("x", &x), ("width", &width), ("height", "100%")],
                &title,
            );
        });
    }

    fn events(&self, it: &mut Markup, events: &[Event]) {
        let count = human::counted(events.len() as u64, "event", "events");
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
                            it.said("title", &[], &title);
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

    /// The same numbers, a row for each span.
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
            Some(figure) => it.said("b", &[], figure),
            None => it.said("b", &[("class", "ink3")], "unknown"),
        };
        it.said(
            "span",
            &[("class", &format!("small st {}", panel.hue))],
            panel.word,
        );
    });
}

/// Hatched over the whole height of a drawing.
pub fn gaps(it: &mut Markup, scale: TimeScale, gaps: &[(i64, i64)]) {
    for (from, until) in gaps {
        let (x, width) = (percent(scale.at(*from)), percent(scale.width(*from, *until)));
        let title = format!(
            "no history from {} to {}",
            moment(*from, scale),
            moment(*until, scale)
        );
        it.told(
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

/// Labels of time below a drawing; the drawing's own table has them too.
pub fn axis(it: &mut Markup, times: &[Tick]) {
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
                it.said(
                    "text",
                    &[("class", class), ("x", &percent(tick.at)), ("y", "15")],
                    &tick.label,
                );
            }
        },
    );
}

fn between(span: &Span, scale: TimeScale) -> String {
    format!("{} to {}", moment(span.from, scale), moment(span.until, scale))
}

fn level(panel: &Panel, span: &Span) -> String {
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

/// With thousands marks; parts of a whole where there are any.
fn figure(value: f64) -> String {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a count of locks"
    )]
    let whole = value.round() as u64;
    if (value - value.round()).abs() < 0.005 {
        human::count(whole)
    } else {
        human::measure(value)
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
    use domain::charts::series::Series;

    use super::*;
    use crate::charts::frame::{self, Frame};

    fn chart(points: Vec<(i64, f64)>, gaps: Vec<(i64, i64)>, length: i64) -> SeriesChart {
        let scale = TimeScale::new(0, length);
        let drawn = Drawn::of(&Series { points, gaps }, scale, 600, 24);
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
        let framed = frame::frame(&Frame {
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
        // A saw of 10,000 points: what is drawn, what the tooltips say and what the table says are the same.
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
    fn without_history_nothing_is_drawn_and_it_is_said() {
        let html = framed(&chart(Vec::new(), vec![(0, 100_000)], 100_000));
        assert!(html.contains("no history in this range") && !html.contains("class=\"ser\""));
        assert!(html.contains("unknown: no history"));
    }
}
