//! The canned console: the server's own use cases over an inventory that is fed made-up observations. Fresh readings of
//! a lock and the histories of the charts are made up too.

use std::sync::Arc;

use ::backends::BackendRegistry;
use app::console::{Console, ConsoleCharts, ConsoleFuture};
use chrono::{DateTime, Utc};
use domain::access::Visible;
use domain::alerts::{Draft, KnownNames, Rule, builtin, parse};
use domain::backend::BackendView;
use domain::lock_detail::{LockCharts, LockDetail};
use domain::name_tree::PrefixNode;
use domain::names::{BackendName, Source};
use domain::overview::{Overview, OverviewCharts};
use domain::query::{InventoryPage, InventoryQuery};
use domain::waits::page::WaitsPage;
use inventory::{Alerted, Inventory, Summary};
use leasehold::console::ServerConsole;
use parking_lot::{Mutex, MutexGuard};
use runtime::clock::Clock;

use crate::events::Stream;
use crate::feed::Feeds;
use crate::locks::LONG_HELD;
use crate::scenes::Scene;
use crate::{charts, detail};

/// Something changes once per beat, in milliseconds.
pub(crate) const BEAT_MS: i64 = 1_500;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    pub(crate) wall: DateTime<Utc>,
    /// Since the gallery opened.
    pub(crate) elapsed_ms: i64,
    pub(crate) beat: u64,
}

pub(crate) struct Canned {
    clock: Clock,
    inventory: Arc<Inventory>,
    console: ServerConsole,
    feeds: Mutex<Feeds>,
    stream: Mutex<Stream>,
}

impl Canned {
    pub(crate) fn new(scene: Scene) -> Self {
        let (clock, inventory) = (Clock::start(), Inventory::new(Vec::new()));
        let feeds = Feeds::open(scene, &inventory, moment(&clock));
        inventory.follow_long_held(long_held_rule().into_iter().collect(), Alerted::new());
        let backends = BackendRegistry::new(Vec::new());
        Self {
            console: ServerConsole::new(inventory.clone(), backends, clock.clone()),
            feeds: Mutex::new(feeds),
            stream: Mutex::new(Stream::On),
            inventory,
            clock,
        }
    }

    pub(crate) fn set_scene(&self, scene: Scene) {
        let mut feeds = self.feeds();
        *feeds = Feeds::open(scene, &self.inventory, self.now());
    }

    pub(crate) fn streaming(&self) -> Stream {
        *self.stream.lock()
    }

    pub(crate) fn set_stream(&self, stream: Stream) {
        *self.stream.lock() = stream;
    }

    pub(crate) fn now(&self) -> Moment {
        moment(&self.clock)
    }

    /// Content of a live event.
    pub(crate) fn summary(&self) -> Summary {
        self.current_console();
        self.inventory.summary(&Visible::default(), self.clock.now())
    }

    fn feeds(&self) -> MutexGuard<'_, Feeds> {
        self.feeds.lock()
    }

    /// The console, whose inventory has seen this beat.
    fn current_console(&self) -> &ServerConsole {
        self.feeds().advance(self.now());
        &self.console
    }
}

fn moment(clock: &Clock) -> Moment {
    let now = clock.now();
    Moment {
        wall: now.wall,
        elapsed_ms: now.tick.0,
        beat: u64::try_from(now.tick.0 / BEAT_MS).unwrap_or(0),
    }
}

/// One lock is held for longer than it allows.
fn long_held_rule() -> Option<Rule> {
    let rule = builtin().into_iter().find(Rule::is_long_held)?;
    let mut draft = Draft {
        prefix: LONG_HELD.to_owned(),
        ..Draft::from(&rule)
    };
    draft.with.insert("longer_than".to_owned(), "40m".to_owned());
    let known = KnownNames {
        backends: &[],
        prefix: None,
        receivers: None,
    };
    parse(&draft, &known).ok()
}

impl Console for Canned {
    fn overview(&self) -> ConsoleFuture<'_, Overview> {
        self.current_console().overview()
    }

    fn inventory(&self, query: InventoryQuery) -> ConsoleFuture<'_, InventoryPage> {
        self.current_console().inventory(query)
    }

    fn prefixes(&self, prefix: String) -> ConsoleFuture<'_, PrefixNode> {
        self.current_console().prefixes(prefix)
    }

    fn lock(
        &self,
        backend: BackendName,
        source: Option<Source>,
        resource: String,
    ) -> ConsoleFuture<'_, LockDetail> {
        Box::pin(async move {
            let detail = self.current_console().lock(backend, source, resource).await?;
            Ok(detail::with_fresh_reading(detail, self.now()))
        })
    }

    fn backends(&self) -> ConsoleFuture<'_, Vec<BackendView>> {
        self.current_console().backends()
    }

    fn waits(&self) -> ConsoleFuture<'_, WaitsPage> {
        self.current_console().waits()
    }

    fn lock_charts<'a>(&'a self, detail: &'a LockDetail, search: &'a str) -> ConsoleCharts<'a, LockCharts> {
        Box::pin(async move { Some(charts::lock_charts(detail, search, self.now())) })
    }

    fn overview_charts<'a>(&'a self, _: &'a Overview, search: &'a str) -> ConsoleCharts<'a, OverviewCharts> {
        Box::pin(async move { Some(charts::overview(search, self.now())) })
    }
}
