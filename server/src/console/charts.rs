//! Charts of the hydrated pages, made here as strings: what is asked of history, the ledger and the unlocks for them.
//!
//! **Invariant:** a page never waits long for its charts and never fails because of them; what cannot be read is said.

mod lock;
mod overview;

use std::sync::Arc;
use std::time::Duration;

use app::charts::frame::{self, Frame, Table};
use app::charts::markup::Markup;
use app::charts::range_links::range_links;
use app::links;
use domain::charts::range::{Last, TimeRange};
use domain::charts::scale::TimeScale;

use crate::alerts::Alerts;
use crate::clock::Clock;
use crate::history::History;
use crate::lease::LeaseService;
use crate::unlock::Unlocks;

/// How long a page waits for them.
const PATIENCE: Duration = Duration::from_millis(800);

/// Where charts get their numbers. Cheap to clone.
#[derive(Clone)]
pub struct Sources {
    pub history: Arc<History>,
    pub leases: Arc<LeaseService>,
    pub unlocks: Arc<Unlocks>,
    pub alerts: Arc<Alerts>,
    pub clock: Clock,
}

impl Sources {
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

/// The time range of a page, read from its query string.
struct Ranged {
    range: TimeRange,
    /// Why what was asked for is not what is shown.
    fault: Option<String>,
    pairs: Vec<(String, String)>,
    scale: TimeScale,
    now: i64,
}

impl Ranged {
    fn read(search: &str, otherwise: Last, now: i64) -> Self {
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
        // In steps that the eye cannot tell, so that a chart in which nothing happened stays the same string.
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

    /// `last 6 h`, or what was wrong with what was asked for.
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

/// A chart that could not be made.
fn unread(id: &'static str, title: &str) -> Markup {
    let mut drawing = Markup::new();
    drawing.said(
        "p",
        &[("class", "pad")],
        "Not known: history could not be read in time. It is tried again with the next refresh.",
    );
    frame::frame(&Frame {
        id,
        title: title.to_owned(),
        note: String::new(),
        end: Markup::new(),
        drawing,
        legend: Vec::new(),
        table: Table::default(),
    })
}
