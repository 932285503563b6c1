//! Live updates in the browser: connection, event data, pause, waiting changes. One per tab,
//! shared by context.
//!
//! Events only announce changes: pages refetch what they show. Nothing here runs on the server;
//! its first HTML and the browser's both start from [`Link::Opening`]. All times are
//! milliseconds of [`clock`].

pub mod clock;
pub mod event;
pub mod event_source;
mod hidden_tab;
pub mod resource;
pub mod topics;

use leptos::prelude::*;

use event::{LiveBackend, LiveEvent};
use hidden_tab::Rest;
use topics::{Revisions, Topics};

use crate::session::{CurrentSession, Session};

/// Time without an event after which the connection counts as lost and data does not count as live.
pub const SILENCE_MS_MAX: i64 = 12_000;
/// Interval at which the page requests the reason for a refused stream, which may change.
const REFUSAL_CHECK_MS: i64 = 15_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    /// Before the first event; always without script.
    Opening,
    Open,
    Cut {
        for_ms: i64,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stream {
    Opening,
    Open,
    Cut { since: i64 },
}

#[derive(Clone, Copy)]
pub struct Live {
    stream: RwSignal<Stream>,
    last_event: RwSignal<Option<LiveEvent>>,
    /// Arrival of the last event.
    last_event_at: RwSignal<i64>,
    /// Hydrated and ticking.
    awake: RwSignal<bool>,
    /// The shared ticker; `None` before hydration.
    now: RwSignal<Option<i64>>,
    /// When the first HTML arrived; `None` before hydration.
    received_at: StoredValue<Option<i64>>,
    /// Each increment refetches the page's resources of this kind: inventory, alerts, activity.
    epochs: [RwSignal<u64>; 3],
    /// Each increment makes tables apply held-back changes.
    flush: RwSignal<u64>,
    paused: RwSignal<bool>,
    /// Changes received while paused, and those that a table holds back under the pointer.
    unseen: RwSignal<u32>,
    held_back: RwSignal<u32>,
    /// Data on screen.
    shown: RwSignal<Option<ShownData>>,
    /// Revisions of the last event; before the first, of the server's HTML.
    seen: StoredValue<Revisions>,
    fetching: StoredValue<Fetching>,
    rest: StoredValue<Rest>,
    /// When the reason for a refused stream was last requested; `None`: the stream is not refused.
    refusal_checked_at: RwSignal<Option<i64>>,
    session: CurrentSession,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ShownData {
    topics: Topics,
    revisions: Revisions,
    /// When the data arrived.
    arrived_at: i64,
}

/// Fetches in progress. Later events wait for them: a refetch for each event would never let a slow response arrive.
#[derive(Debug, Clone, Copy, Default)]
struct Fetching {
    running: u32,
    again: Topics,
    /// When old data was last fetched again without an event.
    renewed_at: i64,
}

/// The shared state. Requires the shell, which provides it.
pub fn use_live() -> Live {
    use_context::<Live>().unwrap_or_else(|| Live::new(CurrentSession::new(Session::open())))
}

impl Live {
    fn new(session: CurrentSession) -> Self {
        Self {
            session,
            seen: StoredValue::new(session.with_untracked(|session| session.revisions)),
            stream: RwSignal::new(Stream::Opening),
            last_event: RwSignal::new(None),
            last_event_at: RwSignal::new(0),
            awake: RwSignal::new(false),
            now: RwSignal::new(None),
            received_at: StoredValue::new(None),
            epochs: [RwSignal::new(0), RwSignal::new(0), RwSignal::new(0)],
            flush: RwSignal::new(0),
            paused: RwSignal::new(false),
            unseen: RwSignal::new(0),
            held_back: RwSignal::new(0),
            shown: RwSignal::new(None),
            fetching: StoredValue::new(Fetching::default()),
            rest: StoredValue::new(Rest::default()),
            refusal_checked_at: RwSignal::new(None),
        }
    }

    /// Creates the state; in the browser also opens the stream and starts the ticker.
    pub fn start(session: CurrentSession) -> Self {
        let live = Self::new(session);
        event_source::open_in_browser(live);
        live
    }

    /// Records the inventory revision that a page shows from now on.
    pub fn set_shown(self, revision: u64) {
        let seen = self.seen.get_value();
        let before = self.shown.get_untracked();
        self.shown.try_set(Some(ShownData {
            topics: Topics::INVENTORY,
            revisions: Revisions {
                inventory: revision,
                ..seen
            },
            arrived_at: clock::now_ms(),
        }));
        // Fetches changes between the first HTML and the opening of the stream, but only once: a restarted server counts its
        // revisions again from the start, so its data stays behind until its first event.
        let was_behind = before.is_some_and(|before| {
            before.topics.has(Topics::INVENTORY) && before.revisions.inventory < seen.inventory
        });
        if seen.inventory > revision && !was_behind {
            self.on_change(Topics::INVENTORY);
        }
    }

    /// For data without a revision: it counts as new as the last event, and before the first event as older than any.
    pub fn set_arrived(self, topics: Topics) {
        let mut revisions = self.seen.get_value();
        if self.last_event.with_untracked(Option::is_none) {
            revisions.inventory = 0;
        }
        self.shown.try_set(Some(ShownData {
            topics,
            revisions,
            arrived_at: clock::now_ms(),
        }));
    }

    /// Refetches the data of these topics. Ignored while paused, because resuming refetches everything. Changes that arrive
    /// during a fetch cause one refetch after it.
    fn on_change(self, topics: Topics) {
        if topics.is_none() || self.paused.get_untracked() {
            return;
        }
        let busy = self.fetching.try_update_value(|fetching| {
            let is_busy = fetching.running > 0;
            if is_busy {
                fetching.again = fetching.again.and(topics);
            }
            is_busy
        });
        if busy == Some(false) {
            self.refetch(topics);
        }
    }

    /// The browser does not report why a stream was refused. The response to a request of the page has the reason, such as a
    /// session that has ended, so the page's data is fetched again, at an interval that an overloaded server can answer.
    fn on_refused(self, now: i64) {
        let checked_at = self.refusal_checked_at.try_get_untracked().flatten();
        if checked_at.is_none_or(|at| now - at >= REFUSAL_CHECK_MS) {
            self.refusal_checked_at.try_set(Some(now));
            self.on_change(Topics::ALL);
        }
    }

    /// The server refuses the stream; tracked, and notifies at each check of the reason.
    pub fn is_refused(self) -> bool {
        self.refusal_checked_at.with(Option::is_some)
    }

    /// Holds events back until the guard is dropped.
    pub fn hold_refetches(self) -> FetchGuard {
        FetchGuard::begin(self)
    }

    fn refetch(self, topics: Topics) {
        let kinds = [Topics::INVENTORY, Topics::ALERTS, Topics::ACTIVITY];
        for (kind, epoch) in kinds.into_iter().zip(self.epochs) {
            if topics.has(kind) {
                epoch.try_update(|epoch| *epoch += 1);
            }
        }
    }

    /// Tracks refetches of these kinds.
    fn epoch(self, topics: Topics) -> u64 {
        let kinds = [Topics::INVENTORY, Topics::ALERTS, Topics::ACTIVITY];
        let epochs = kinds.into_iter().zip(self.epochs);
        epochs
            .filter(|(kind, _)| topics.has(*kind))
            .map(|(_, epoch)| epoch.get())
            .sum()
    }

    pub fn link(self) -> Link {
        match self.stream.get() {
            Stream::Opening => Link::Opening,
            Stream::Open => Link::Open,
            Stream::Cut { since } => Link::Cut {
                for_ms: self.now.get().map_or(0, |now| (now - since).max(0)),
            },
        }
    }

    pub fn is_cut(self) -> bool {
        matches!(self.stream.get(), Stream::Cut { .. })
    }

    /// Hydrated and ticking.
    pub fn is_awake(self) -> bool {
        self.awake.get()
    }

    /// The shared ticker, in the browser's milliseconds; `None` before hydration.
    pub fn now_ms(self) -> Option<i64> {
        self.now.get()
    }

    /// Milliseconds since this call; 0 on the server and before hydration. Drives expiry bars.
    pub fn elapsed(self) -> Elapsed {
        Elapsed {
            live: self,
            started_at: self.now.get_untracked(),
        }
    }

    /// Age of the data on screen: since the last event if the data has the revision of that event, otherwise since its arrival.
    /// Revisions are compared for equality, because a restarted server counts them again from the start.
    pub fn data_age_ms(self) -> Option<i64> {
        let now = self.now.get()?;
        let shown = self.shown.get()?;
        let is_confirmed = self.last_event.with(|event| {
            event.as_ref().is_some_and(|event| {
                let changed = event.revisions.changed_since(shown.revisions);
                changed.within(shown.topics).is_none()
            })
        });
        let since = if is_confirmed {
            self.last_event_at.get().max(shown.arrived_at)
        } else {
            shown.arrived_at
        };
        Some((now - since).max(0))
    }

    pub fn held_total(self) -> Option<u64> {
        self.last_event
            .with(|event| event.as_ref().map(|event| event.held_total))
    }

    /// Backends of the last event, with their ages increased since.
    pub fn backends(self) -> Vec<LiveBackend> {
        let elapsed_ms = self
            .now
            .get()
            .map_or(0, |now| (now - self.last_event_at.get()).max(0));
        self.last_event.with(|event| {
            event
                .as_ref()
                .map(|event| event.backends_after(elapsed_ms))
                .unwrap_or_default()
        })
    }

    /// Of the backends that are not live, the one with the oldest data.
    pub fn oldest_backend(self) -> Option<LiveBackend> {
        event::oldest_not_live(self.backends())
    }

    pub fn is_paused(self) -> bool {
        self.paused.get()
    }

    pub fn toggle_pause(self) {
        self.paused.update(|paused| *paused = !*paused);
        if !self.paused.get_untracked() {
            self.show_waiting();
        }
    }

    pub fn changes_waiting(self) -> u32 {
        self.unseen.get().saturating_add(self.held_back.get())
    }

    /// Number of changes that a table holds back under the pointer.
    pub fn hold_back(self, changes: u32) {
        if self.held_back.get_untracked() != changes {
            self.held_back.set(changes);
        }
    }

    /// Applies all waiting changes now; a pause continues.
    pub fn show_waiting(self) {
        self.unseen.set(0);
        self.held_back.set(0);
        self.flush.update(|flush| *flush += 1);
        self.refetch(Topics::ALL);
    }

    /// Tracks requests to apply held-back changes.
    pub fn flushes(self) -> u64 {
        self.flush.get()
    }
}

/// A running duration. Without a signal of its own: a page has hundreds of them.
#[derive(Clone, Copy)]
pub struct Elapsed {
    live: Live,
    /// `None`: created before hydration, and counted from the arrival of the HTML.
    started_at: Option<i64>,
}

impl Elapsed {
    /// Tracked; in milliseconds.
    pub fn get(self) -> i64 {
        let Some(now) = self.live.now.get() else { return 0 };
        let started_at = self.started_at.or_else(|| self.live.received_at.get_value());
        started_at.map_or(0, |started_at| (now - started_at).max(0))
    }

    /// Tracked; in whole seconds, as milliseconds.
    pub fn whole_seconds(self) -> i64 {
        self.get() / 1_000 * 1_000
    }
}

/// There is one ticker per page.
impl PartialEq for Elapsed {
    fn eq(&self, other: &Self) -> bool {
        self.started_at == other.started_at
    }
}

/// Counts one fetch until dropped, including abandoned ones.
/// Events wait while it lives.
#[must_use]
pub struct FetchGuard(Live);

impl FetchGuard {
    fn begin(live: Live) -> Self {
        live.fetching.try_update_value(|fetching| fetching.running += 1);
        Self(live)
    }

    /// Forgets the events that waited for this fetch alone: another page opens, and fetches its data by itself.
    pub fn discard(self) {
        self.0.fetching.try_update_value(|fetching| {
            if fetching.running == 1 {
                fetching.again = Topics::NONE;
            }
        });
    }
}

impl Drop for FetchGuard {
    fn drop(&mut self) {
        let again = self.0.fetching.try_update_value(|fetching| {
            fetching.running = fetching.running.saturating_sub(1);
            if fetching.running == 0 {
                std::mem::take(&mut fetching.again)
            } else {
                Topics::NONE
            }
        });
        if let Some(again) = again.filter(|again| !again.is_none()) {
            self.0.refetch(again);
        }
    }
}

#[cfg(test)]
mod tests;
