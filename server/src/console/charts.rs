//! Charts of the hydrated pages, rendered to strings from history, fencing rejections and unlocks.
//!
//! **Invariant:** charts never delay a page for long nor make it fail; unavailable data is shown as such.

mod lock;
mod overview;

use std::sync::Arc;
use std::time::Duration;

use app::charts::chart_frame::{self, Frame, Table};
use app::charts::html_writer::Markup;
use app::charts::range_links::range_links;
use app::links;
use domain::charts::range::{RangePreset, TimeRange};
use domain::charts::scale::TimeScale;

use crate::alerts::Alerts;
use crate::history::History;
use crate::unlock::Unlocks;
use lease::LeaseService;
use runtime::clock::Clock;

/// Timeout of a page's charts.
const PATIENCE: Duration = Duration::from_millis(800);

/// Data sources of charts. Cheap to clone.
#[derive(Clone)]
pub struct ChartSources {
    pub history: Arc<History>,
    pub leases: Arc<LeaseService>,
    pub unlocks: Arc<Unlocks>,
    pub alerts: Arc<Alerts>,
    pub clock: Clock,
}

impl ChartSources {
    pub fn new(
        history: &Arc<History>,
        leases: &Arc<LeaseService>,
        (unlocks, alerts): (&Arc<Unlocks>, &Arc<Alerts>),
        clock: &Clock,
    ) -> Self {
        Self {
            history: history.clone(),
            leases: leases.clone(),
            unlocks: unlocks.clone(),
            alerts: alerts.clone(),
            clock: clock.clone(),
        }
    }
}

/// The time range of a page, from its query string.
struct Ranged {
    range: TimeRange,
    /// Why the requested range is not used.
    fault: Option<String>,
    pairs: Vec<(String, String)>,
    scale: TimeScale,
    now: i64,
}

impl Ranged {
    fn read(search: &str, otherwise: RangePreset, now: i64) -> Self {
        let pairs = links::pairs(search);
        let given = pairs.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let (range, fault) = match TimeRange::from_pairs(given, otherwise) {
            Ok(range) => (range, None),
            Err(error) => (
                TimeRange::Last(otherwise),
                Some(format!("{} {}", error.field, error.message)),
            ),
        };
        let whole = range.scale(now);
        // Rounded to less than a pixel, so that a chart without changes stays identical.
        let step = (whole.length_ms() / 720).max(1_000);
        let now = (now / step + 1) * step;
        Self {
            scale: range.scale(now),
            range,
            fault,
            pairs,
            now,
        }
    }

    /// `last 6 h`, or what was wrong with the requested range.
    fn words(&self) -> String {
        match &self.fault {
            None => self.range.words(),
            Some(fault) => format!("{fault}; shown is {}", self.range.words()),
        }
    }

    fn links(&self) -> Markup {
        range_links(self.range, "", &self.pairs)
    }
}

/// Placeholder of a chart that could not be made.
fn unread(id: &'static str, title: &str) -> Markup {
    let mut drawing = Markup::new();
    drawing.text_element(
        "p",
        &[("class", "pad")],
        "Unknown: history could not be read in time. The next refresh tries again.",
    );
    chart_frame::frame(&Frame {
        id,
        title: title.to_owned(),
        note: String::new(),
        end: Markup::new(),
        drawing,
        legend: Vec::new(),
        table: Table::default(),
    })
}
