//! Time series panels on one time axis: lines, steps or areas, with event marks below. Gaps are
//! hatched over the full height.

use domain::charts::path;
use domain::charts::scale::TimeScale;
use domain::charts::series::{ChartSpan, Drawn};
use domain::charts::ticks::{self, ChartTick, moment};
use domain::format;
use leptos::prelude::*;

use super::chart_frame::Table;
use super::crosshair::Reading;
use super::svg::{
    column, drawing, horizontal, label_class, linked, linked_untabbed, percent, shape, vertical,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Draw {
    Line,
    /// Each value holds until the next.
    Steps,
    Area,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Panel {
    /// Name of the values: `held`, `waiting`.
    pub name: &'static str,
    /// Current value, at the left; `None`: unknown.
    pub figure: Option<String>,
    /// CSS class of a state, or empty.
    pub hue: &'static str,
    pub draw: Draw,
    pub height: u32,
    pub drawn: Drawn,
    /// The preceding span of the same length, on the same scale.
    pub before: Option<Drawn>,
}

/// An event mark below the panels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub at: i64,
    pub shape: &'static str,
    pub hue: &'static str,
    pub title: String,
    pub href: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct SeriesChart {
    pub scale: TimeScale,
    pub panels: Vec<Panel>,
    /// `None`: no row of events.
    pub events: Option<Vec<Event>>,
}

/// URL of the locks behind a time span, from and until in milliseconds since 1970.
pub type HrefOf<'a> = &'a dyn Fn(i64, i64) -> String;

/// Time labels that fit on a phone.
const TIMES_MAX: usize = 6;
const VALUES_MAX: usize = 2;

impl SeriesChart {
    /// Parts of the `series` grid. `href`: `None`: no links.
    pub fn view(&self, href: Option<HrefOf<'_>>) -> AnyView {
        let times = ticks::times(self.scale, TIMES_MAX);
        let panels: Vec<AnyView> = self
            .panels
            .iter()
            .map(|panel| {
                view! { {label(panel)}<div class="cp">{self.panel(panel, &times, href)}</div> }.into_any()
            })
            .collect();
        let events = self.events.as_ref().map(|events| {
            view! {
                <div class="cl ev"><span class="small ink2">"events"</span></div>
                <div class="cp">{self.event_row(events)}</div>
            }
            .into_any()
        });
        view! { {panels}{events}<div class="cp">{axis(&times)}</div> }.into_any()
    }

    fn panel(&self, panel: &Panel, times: &[ChartTick], href: Option<HrefOf<'_>>) -> AnyView {
        let before = panel.before.as_ref();
        let (low, high) = before
            .filter(|before| !before.is_empty())
            .map_or((panel.drawn.low, panel.drawn.high), |before| {
                (panel.drawn.low.min(before.low), panel.drawn.high.max(before.high))
            });
        let (values, labels) = ticks::counts(low, high, VALUES_MAX);
        let columns: Vec<AnyView> = times.iter().map(|tick| vertical("grid", tick.at)).collect();
        let lines: Vec<AnyView> = labels.iter().map(value_line).collect();
        let under = (panel.draw == Draw::Area).then(|| paths("under", panel.drawn.paths(values, path::area)));
        let way = if panel.draw == Draw::Steps {
            path::steps
        } else {
            path::line
        };
        let dashed = before.map(|before| paths("ser before", before.paths(values, way)));
        let line = paths("ser", panel.drawn.paths(values, way));
        let hits: Vec<AnyView> = panel
            .drawn
            .spans
            .iter()
            .map(|span| self.hit(panel, span, href))
            .collect();
        let marks = view! {
            {columns}
            {lines}
            {gaps(self.scale, &panel.drawn.gaps)}
            <svg viewBox="0 0 1000 100" preserveAspectRatio="none" width="100%" height="100%">
                {under}
                {dashed}
                {line}
            </svg>
            {hits}
        };
        drawing(
            panel.hue,
            panel.height,
            summary(panel),
            href.is_some(),
            marks.into_any(),
        )
    }

    fn hit(&self, panel: &Panel, span: &ChartSpan, href: Option<HrefOf<'_>>) -> AnyView {
        let title = format!("{}: {}", between(span, self.scale), level(panel.name, span));
        let href = href.filter(|_| span.level.is_some());
        let place = (self.scale.at(span.from), self.scale.width(span.from, span.until));
        let mark = column("hit", place, title.clone());
        linked_untabbed(href.map(|href| href(span.from, span.until)), &title, mark)
    }

    fn event_row(&self, events: &[Event]) -> AnyView {
        let inside = events.iter().filter(|event| self.scale.contains(event.at));
        let marks: Vec<AnyView> = inside.map(|event| self.event(event)).collect();
        let count = format::counted(events.len() as u64, "event", "events");
        let has_links = events.iter().any(|event| event.href.is_some());
        let marks = view! { {horizontal("axis", "19.5")}{marks} };
        drawing("evs", 20, count, has_links, marks.into_any())
    }

    fn event(&self, event: &Event) -> AnyView {
        let title = format!("{} {}", moment(event.at, self.scale), event.title);
        let mark = view! {
            <svg class=event.hue x=percent(self.scale.at(event.at)) y="3" overflow="visible">
                <title>{title.clone()}</title>
                <rect class="hit" x="-8" width="16" height="14"></rect>
                {shape(event.shape, ("-6", "0"), "11")}
            </svg>
        };
        linked(event.href.clone(), &title, mark.into_any())
    }

    /// The same numbers, a row per span.
    pub fn table(&self, caption: impl Into<String>) -> Table {
        let mut head = vec!["from, UTC".to_owned(), "until".to_owned()];
        for panel in &self.panels {
            head.push(panel.name.to_owned());
            head.extend(panel.before.as_ref().map(|_| format!("{} before", panel.name)));
        }
        let rows = self.spans().iter().enumerate().map(|(row, span)| {
            let mut cells = vec![moment(span.from, self.scale), moment(span.until, self.scale)];
            for panel in &self.panels {
                let of = |drawn: &Drawn| {
                    let span = drawn.spans.get(row);
                    span.map_or_else(String::new, |span| level(panel.name, span))
                };
                cells.push(of(&panel.drawn));
                cells.extend(panel.before.as_ref().map(of));
            }
            cells
        });
        Table {
            caption: caption.into(),
            head,
            rows: rows.collect(),
        }
    }

    fn spans(&self) -> &[ChartSpan] {
        self.panels.first().map_or(&[], |panel| &panel.drawn.spans)
    }

    /// A reading per span, with the values of all panels and the events in it.
    pub fn readings(&self, href: Option<HrefOf<'_>>) -> Vec<Reading> {
        let spans = self.spans().iter().enumerate();
        // Spans in the future have no values.
        let known = spans.filter(|(_, span)| span.from < self.scale.until());
        known
            .map(|(place, span)| self.reading(place, span, href))
            .collect()
    }

    fn reading(&self, place: usize, span: &ChartSpan, href: Option<HrefOf<'_>>) -> Reading {
        let mut values = Vec::new();
        for panel in &self.panels {
            let of = |drawn: &Drawn| drawn.spans.get(place).map(|span| level(panel.name, span));
            values.extend(of(&panel.drawn).map(|text| (panel.hue, text)));
            let before = panel.before.as_ref().and_then(of);
            values.extend(before.map(|text| ("ink3", format!("before: {text}"))));
        }
        let events = self.events.iter().flatten();
        let inside = events.filter(|event| (span.from..span.until).contains(&event.at));
        values.extend(inside.map(|event| (event.hue, event.title.clone())));
        let is_known = self.panels.iter().any(|panel| {
            panel
                .drawn
                .spans
                .get(place)
                .is_some_and(|span| span.level.is_some())
        });
        Reading {
            at: self.scale.at(span.from),
            width: self.scale.width(span.from, span.until),
            title: between(span, self.scale),
            values,
            href: href.filter(|_| is_known).map(|href| href(span.from, span.until)),
        }
    }
}

fn value_line(tick: &ChartTick) -> AnyView {
    let y = percent(100.0 - tick.at);
    view! {
        {horizontal("grid", &y)}
        <text class="e" x="-8" y=y dy="4">{tick.label.clone()}</text>
    }
    .into_any()
}

fn paths(class: &'static str, paths: Vec<String>) -> Vec<AnyView> {
    let path = |path| view! { <path class=class d=path></path> }.into_any();
    paths.into_iter().map(path).collect()
}

fn label(panel: &Panel) -> AnyView {
    let figure = match panel.figure.clone() {
        Some(figure) => view! { <b>{figure}</b> }.into_any(),
        None => view! { <b class="ink3">"unknown"</b> }.into_any(),
    };
    view! { <div class="cl">{figure}<span class=format!("small st {}", panel.hue)>{panel.name}</span></div> }
        .into_any()
}

pub fn gaps(scale: TimeScale, gaps: &[(i64, i64)]) -> Vec<AnyView> {
    let gap = |(from, until): &(i64, i64)| {
        let title = format!(
            "no history from {} to {}",
            moment(*from, scale),
            moment(*until, scale)
        );
        column("hatch", (scale.at(*from), scale.width(*from, *until)), title)
    };
    gaps.iter().map(gap).collect()
}

/// Time labels below a chart; its table has them too.
pub fn axis(times: &[ChartTick]) -> AnyView {
    let label = |tick: &ChartTick| {
        view! { <text class=label_class(tick.at) x=percent(tick.at) y="15">{tick.label.clone()}</text> }
            .into_any()
    };
    let labels: Vec<AnyView> = times.iter().map(label).collect();
    view! { <svg class="ch times" width="100%" height="20" aria-hidden="true">{labels}</svg> }.into_any()
}

fn between(span: &ChartSpan, scale: TimeScale) -> String {
    format!("{} to {}", moment(span.from, scale), moment(span.until, scale))
}

fn level(name: &str, span: &ChartSpan) -> String {
    let Some(level) = span.level else {
        return "unknown: no history".to_owned();
    };
    let last = figure(level.last);
    if level.low == level.high {
        return format!("{last} {name}");
    }
    format!(
        "{} to {} {name}, {last} at the end",
        figure(level.low),
        figure(level.high),
    )
}

/// With thousands separators; decimals only for fractions.
fn figure(value: f64) -> String {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a count of locks"
    )]
    let rounded = value.round() as u64;
    if (value - value.round()).abs() < 0.005 {
        format::count(rounded)
    } else {
        format::measure(value)
    }
}

fn summary(panel: &Panel) -> String {
    let drawn = &panel.drawn;
    match drawn.last {
        None => format!("{}: no history in this range", panel.name),
        Some(last) => format!(
            "{}: {} to {}, {} at the end",
            panel.name,
            figure(drawn.low),
            figure(drawn.high),
            figure(last)
        ),
    }
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use domain::charts::series::ChartSeries;

    use super::*;
    use crate::charts::chart_frame::data_table;

    fn chart(points: Vec<(i64, f64)>, gaps: Vec<(i64, i64)>, length: i64) -> SeriesChart {
        let scale = TimeScale::new(0, length);
        let drawn = Drawn::from_series(&ChartSeries { points, gaps }, scale, 600, 24);
        SeriesChart {
            scale,
            panels: vec![Panel {
                name: "held",
                figure: Some("12,847".to_owned()),
                hue: "healthy",
                draw: Draw::Line,
                height: 112,
                before: None,
                drawn,
            }],
            events: Some(Vec::new()),
        }
    }

    fn html(chart: &SeriesChart) -> String {
        Owner::new_root(None).with(|| {
            let (drawing, table) = (chart.view(None), data_table(chart.table("held over time")));
            view! { {drawing}{table} }.into_any().to_html().replace("<!>", "")
        })
    }

    #[test]
    fn ten_thousand_points_are_small_and_their_table_agrees() {
        // A sawtooth of 10,000 points: chart, tooltips, readings and table show the same values.
        let points = (0..10_000_i64)
            .map(|at| (at * 1_000, ((at * 7919) % 1_000) as f64))
            .collect();
        let chart = chart(points, vec![(3_000_000, 4_000_000)], 10_000_000);
        let html = html(&chart);
        assert!(html.len() < 30_000, "{} bytes", html.len());
        let readings = chart.readings(None);
        for (row, reading) in chart.table("").rows.iter().zip(&readings) {
            let tooltip = format!("{} to {}: {}", row[0], row[1], row[2]);
            assert!(html.contains(&tooltip), "{tooltip}");
            assert_eq!(reading.values, [("healthy", row[2].clone())]);
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
        let html = html(&chart(Vec::new(), vec![(0, 100_000)], 100_000));
        assert!(html.contains("no history in this range") && !html.contains("class=\"ser\""));
        assert!(html.contains("unknown: no history"));
    }

    #[test]
    fn the_span_before_is_drawn_read_and_listed() {
        let mut chart = chart(vec![(50_000, 4.0)], Vec::new(), 240_000);
        let before = ChartSeries {
            points: vec![(50_000, 9.0)],
            gaps: Vec::new(),
        };
        let before = Drawn::from_series(&before, chart.scale, 600, 24);
        chart.panels[0].before = Some(before);
        let html = html(&chart);
        assert!(
            html.contains("ser before") && html.contains("<td>9 held</td>"),
            "{html}"
        );
        let reading = &chart.readings(Some(&|from, until| format!("/x?{from}-{until}")))[5];
        assert_eq!(reading.values[1].1, "before: 9 held");
        assert_eq!(reading.href.as_deref(), Some("/x?50000-60000"));
    }
}
