//! What the browser knows of the stream: connection, pulse, pause, what waits. One per tab, shared by context.
//!
//! The stream only hints: pages refetch what they show. Nothing here runs on the server; its first HTML and
//! the browser's both start from [`Link::Opening`]. All times are the browser's monotonic milliseconds.

pub mod load;
pub mod pulse;
pub mod stream;

use leptos::prelude::*;

use pulse::{BackendPulse, Pulse};

/// Silence of the stream after which nothing on screen may pass for live.
pub const SILENCE_MS_MAX: i64 = 12_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    /// Before the first event; also the whole life of a page without script.
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
    pulse: RwSignal<Option<Pulse>>,
    /// When the pulse came.
    heard_at: RwSignal<i64>,
    /// Hydrated and ticking.
    awake: RwSignal<bool>,
    /// The shared ticker; none until the page is alive.
    now: RwSignal<Option<i64>>,
    /// Each step makes every resource on the page fetch again.
    epoch: RwSignal<u64>,
    /// Each step asks tables to take in what they hold back.
    flush: RwSignal<u64>,
    paused: RwSignal<bool>,
    /// Changes that came while paused, and those that a table holds back under the pointer.
    unseen: RwSignal<u32>,
    held_back: RwSignal<u32>,
    /// Revision and arrival of the data on screen.
    shown: RwSignal<Option<(u64, i64)>>,
    fetching: StoredValue<Fetching>,
}

/// Fetches under way; news that comes meanwhile waits for them, so that a slow answer is not starved.
#[derive(Debug, Clone, Copy, Default)]
struct Fetching {
    running: u32,
    again: bool,
}

/// The shared state. Every page is inside the shell that provides it.
pub fn use_live() -> Live {
    use_context::<Live>().unwrap_or_else(Live::new)
}

impl Live {
    fn new() -> Self {
        Self {
            stream: RwSignal::new(Stream::Opening),
            pulse: RwSignal::new(None),
            heard_at: RwSignal::new(0),
            awake: RwSignal::new(false),
            now: RwSignal::new(None),
            epoch: RwSignal::new(0),
            flush: RwSignal::new(0),
            paused: RwSignal::new(false),
            unseen: RwSignal::new(0),
            held_back: RwSignal::new(0),
            shown: RwSignal::new(None),
            fetching: StoredValue::new(Fetching::default()),
        }
    }

    /// Makes the state, and in the browser opens the stream and starts the ticker.
    pub fn start() -> Self {
        let live = Self::new();
        stream::open_in_browser(live);
        live
    }

    /// A page says which revision it shows now, and that it has just come.
    pub fn note_shown(self, revision: u64) {
        let now = stream::now_ms();
        self.shown.try_set(Some((revision, now)));
        // What came between the first HTML and the opening of the stream.
        if self
            .pulse
            .with_untracked(|pulse| pulse.as_ref().is_some_and(|pulse| pulse.revision > revision))
        {
            self.news();
        }
    }

    /// As [`Self::note_shown`], for data that carries no revision: it is as new as the last event, and until
    /// there was one it counts as older than any.
    pub fn note_arrived(self) {
        let revision = self
            .pulse
            .with_untracked(|pulse| pulse.as_ref().map_or(0, |pulse| pulse.revision));
        self.shown.try_set(Some((revision, stream::now_ms())));
    }

    fn news(self) {
        if self.paused.get_untracked() {
            return;
        }
        let busy = self.fetching.try_update_value(|fetching| {
            fetching.again = fetching.running > 0;
            fetching.again
        });
        if busy == Some(false) {
            self.epoch.try_update(|epoch| *epoch += 1);
        }
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

    /// The page is alive: hydrated and ticking.
    pub fn is_awake(self) -> bool {
        self.awake.get()
    }

    /// The shared ticker, in the milliseconds of the browser; none until the page is alive.
    pub fn now_ms(self) -> Option<i64> {
        self.now.get()
    }

    /// Milliseconds since this was called, 0 on the server and until the page is alive: what runways run down by.
    pub fn elapsed(self) -> Signal<i64> {
        let born = StoredValue::new(self.now.get_untracked());
        Signal::derive(move || {
            let Some(now) = self.now.get() else { return 0 };
            match born.get_value() {
                Some(born) => now - born,
                None => {
                    born.set_value(Some(now));
                    0
                }
            }
        })
    }

    /// Age of what is on screen: since the last event where it is of that event's revision, else since it came.
    pub fn data_age_ms(self) -> Option<i64> {
        let now = self.now.get()?;
        let (revision, came) = self.shown.get()?;
        let confirmed = self
            .pulse
            .with(|pulse| pulse.as_ref().is_some_and(|pulse| pulse.revision <= revision));
        let since = if confirmed {
            self.heard_at.get().max(came)
        } else {
            came
        };
        Some((now - since).max(0))
    }

    pub fn held_total(self) -> Option<u64> {
        self.pulse
            .with(|pulse| pulse.as_ref().map(|pulse| pulse.held_total))
    }

    /// Whether alert rules are overdue; none before the first event.
    pub(crate) fn alerts_overdue(self) -> Option<bool> {
        self.pulse
            .with(|pulse| pulse.as_ref().map(|pulse| pulse.alerts_overdue))
    }

    /// Backends as the last event had them, their ages grown since.
    pub fn backends(self) -> Vec<BackendPulse> {
        let grown = self.now.get().map_or(0, |now| (now - self.heard_at.get()).max(0));
        self.pulse
            .with(|pulse| pulse.as_ref().map(|pulse| pulse.grown(grown)).unwrap_or_default())
    }

    /// The backend whose data is oldest; one that never answered is the oldest of all.
    pub fn oldest_backend(self) -> Option<BackendPulse> {
        self.backends()
            .into_iter()
            .max_by_key(|backend| backend.age_ms.unwrap_or(i64::MAX))
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

    /// A table says how many changes it holds back under the pointer.
    pub fn hold_back(self, changes: u32) {
        if self.held_back.get_untracked() != changes {
            self.held_back.set(changes);
        }
    }

    /// Takes in all that waits, now; a pause stays a pause.
    pub fn show_waiting(self) {
        self.unseen.set(0);
        self.held_back.set(0);
        self.flush.update(|flush| *flush += 1);
        self.epoch.update(|epoch| *epoch += 1);
    }

    /// Tracks requests to take in what is held back.
    pub fn flushes(self) -> u64 {
        self.flush.get()
    }
}

/// Counts one fetch until it is dropped, also when it is abandoned half way.
struct FetchGuard(Live);

impl FetchGuard {
    fn begin(live: Live) -> Self {
        live.fetching.try_update_value(|fetching| fetching.running += 1);
        Self(live)
    }
}

impl Drop for FetchGuard {
    fn drop(&mut self) {
        let again = self.0.fetching.try_update_value(|fetching| {
            fetching.running = fetching.running.saturating_sub(1);
            fetching.running == 0 && std::mem::take(&mut fetching.again)
        });
        if again == Some(true) {
            self.0.epoch.try_update(|epoch| *epoch += 1);
        }
    }
}
