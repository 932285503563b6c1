//! Opens the event stream in the browser, detects silence, reopens a closed stream, and closes that of a hidden tab.

use std::time::Duration;

use leptos::prelude::*;
use wasm_bindgen::JsCast;
use wasm_bindgen::prelude::Closure;
use web_sys::{EventSource, MessageEvent};

use super::clock::{self, now_ms};
use super::event::LiveEvent;
use super::hidden_tab::{Rest, RestStep};
use super::topics::Topics;
use super::{Live, SILENCE_MS_MAX, Stream};

const ADDRESS: &str = "/v1/events";
const TICK: Duration = Duration::from_millis(250);
const TICK_CALM: Duration = Duration::from_secs(1);
/// Age at which data about activity is refetched without an event: events do not report activity of
/// other servers, and no activity to users with a limited scope.
const ACTIVITY_AGE_MS_MAX: i64 = 5_000;
/// Age at which other data is refetched: charts and other data of the last hours change with time, without an event.
const OTHER_AGE_MS_MAX: i64 = 60_000;
/// Interval between attempts to reopen a stream that the browser gave up.
const REOPEN_MS: i64 = 3_000;

type Handler = Closure<dyn FnMut(MessageEvent)>;

/// The open stream with its callbacks. Dropping it closes it.
struct Source {
    source: EventSource,
    /// Stored because the browser calls them while the source lives.
    _handlers: [Handler; 3],
    opened_at: i64,
}

impl Drop for Source {
    fn drop(&mut self) {
        self.source.close();
    }
}

pub(super) fn open_in_browser(live: Live) {
    // Effects do not run on the server.
    Effect::new(move |_| {
        // Removes what only pages without script need.
        if let Some(root) = document().document_element() {
            let _ = root.set_attribute("data-hydrated", "");
        }
        let source = StoredValue::new_local(open(live));
        live.received_at.set_value(Some(clock::received_ms()));
        live.now.set(Some(now_ms()));
        live.awake.set(true);
        let tick = if prefers_reduced_motion() { TICK_CALM } else { TICK };
        let ticker = set_interval_with_handle(move || on_tick(live, source), tick);
        // A tab that is shown does not wait for its next tick, which is slow while it is hidden.
        let shown = window_event_listener_untyped("visibilitychange", move |_| on_tick(live, source));
        on_cleanup(move || {
            shown.remove();
            if let Ok(ticker) = ticker {
                ticker.clear();
            }
            source.try_update_value(|source| *source = None);
        });
    });
    // On the whole document, including parts outside this tree.
    Effect::new(move |_| {
        if let Some(root) = document().document_element() {
            let _ = root.class_list().toggle_with_force("is-cut", live.is_cut());
        }
    });
}

fn prefers_reduced_motion() -> bool {
    matches!(window().match_media("(prefers-reduced-motion: reduce)"), Ok(Some(query)) if query.matches())
}

fn open(live: Live) -> Option<Source> {
    let source = EventSource::new(ADDRESS).ok()?;
    let (slept_ms, stream) = (clock::slept_ms(), source.clone());
    let on_message = move |message: MessageEvent| {
        // The computer has slept since the stream opened: the event may be from before the sleep.
        if clock::slept_ms() - slept_ms > SILENCE_MS_MAX {
            return;
        }
        if let Some(event) = message.data().as_string().and_then(|json| LiveEvent::read(&json)) {
            on_event(live, event);
        }
        if live.rest.try_get_value().is_some_and(Rest::is_resting) {
            stream.close();
            live.stream.try_set(Stream::Opening);
        }
    };
    let handlers: [Handler; 3] = [
        Closure::new(on_message.clone()),
        Closure::new(on_message),
        Closure::new(move |_| mark_cut(live)),
    ];
    for (name, handler) in ["hello", "revision", "error"].into_iter().zip(&handlers) {
        source
            .add_event_listener_with_callback(name, handler.as_ref().unchecked_ref())
            .ok()?;
    }
    Some(Source {
        source,
        _handlers: handlers,
        opened_at: now_ms(),
    })
}

fn on_event(live: Live, event: LiveEvent) {
    let was_cut = matches!(live.stream.try_get_untracked(), Some(Stream::Cut { .. }));
    let (shown, revisions) = (live.shown.try_get_untracked().flatten(), event.revisions);
    let Some(mut before) = live.seen.try_get_value() else {
        return;
    };
    if let Some(shown) = shown.filter(|shown| shown.topics.has(Topics::INVENTORY)) {
        before.inventory = shown.revisions.inventory;
    }
    let changed = revisions.changed_since(before);
    if live.paused.try_get_untracked() == Some(true) {
        let topics = shown.map_or(Topics::INVENTORY, |shown| shown.topics);
        let of_rows = if topics.has(Topics::INVENTORY) {
            event.changes
        } else {
            0
        };
        let others = Topics::ALERTS.and(Topics::ACTIVITY);
        let of_others = u32::from(!changed.within(topics).within(others).is_none());
        live.unseen
            .try_update(|unseen| *unseen = unseen.saturating_add(of_rows + of_others));
    }
    live.session
        .update(event.firing_groups, event.alerts_overdue, event.is_read_only);
    live.last_event_at.try_set(now_ms());
    if live.refusal_checked_at.try_get_untracked().flatten().is_some() {
        live.refusal_checked_at.try_set(None);
    }
    live.seen.try_set_value(revisions);
    live.last_event.try_set(Some(event));
    live.stream.try_set(Stream::Open);
    // A hidden tab refetches its data when it is shown. Until then it sends no requests, so that its session can end unused.
    if !live.rest.try_get_value().is_some_and(Rest::is_resting) {
        live.on_change(if was_cut { Topics::ALL } else { changed });
    }
}

fn mark_cut(live: Live) {
    // Silence counts from the last event, not from its detection.
    if !matches!(live.stream.try_get_untracked(), Some(Stream::Cut { .. })) {
        let last_event_at = live.last_event_at.try_get_untracked().filter(|at| *at > 0);
        live.stream.try_set(Stream::Cut {
            since: last_event_at.unwrap_or_else(now_ms),
        });
    }
}

fn on_tick(live: Live, source: StoredValue<Option<Source>, LocalStorage>) {
    let now = now_ms();
    live.now.try_set(Some(now));
    // A paused page keeps its stream open, to count the waiting changes.
    let is_hidden = document().hidden() && live.paused.try_get_untracked() != Some(true);
    let step = live.rest.try_update_value(|rest| rest.next(is_hidden, now));
    match step.unwrap_or(RestStep::Awake) {
        RestStep::Awake => check_stream(live, source, now),
        RestStep::Resting => {}
        RestStep::Begin => {
            source.try_set_value(None);
            live.stream.try_set(Stream::Opening);
        }
        RestStep::Check => {
            source.try_set_value(open(live));
        }
        RestStep::Wake => {
            live.stream.try_set(Stream::Opening);
            source.try_set_value(open(live));
            live.on_change(Topics::ALL);
        }
    }
}

fn check_stream(live: Live, source: StoredValue<Option<Source>, LocalStorage>, now: i64) {
    let (opened_at, closed) = source
        .try_with_value(|source| {
            source.as_ref().map(|source| {
                (
                    source.opened_at,
                    source.source.ready_state() == EventSource::CLOSED,
                )
            })
        })
        .flatten()
        .unwrap_or((0, true));
    let silent = now - live.last_event_at.try_get_untracked().unwrap_or(0).max(opened_at) > SILENCE_MS_MAX;
    if silent || closed {
        mark_cut(live);
    }
    if closed {
        live.on_refused(now);
    }
    refetch_old(live, now);
    // A half-open connection reports no error; a refused one is given up by the browser.
    if silent || (closed && now - opened_at > REOPEN_MS) {
        source.try_set_value(open(live));
    }
}

/// Refetches data that is too old. A failed refetch is repeated at the same interval.
pub(super) fn refetch_old(live: Live, now: i64) {
    let is_open = matches!(live.stream.try_get_untracked(), Some(Stream::Open));
    let Some(shown) = live.shown.try_get_untracked().flatten().filter(|_| is_open) else {
        return;
    };
    let (topics, age_ms_max) = match shown.topics {
        topics if topics.has(Topics::ACTIVITY) => (Topics::ACTIVITY, ACTIVITY_AGE_MS_MAX),
        topics => (topics, OTHER_AGE_MS_MAX),
    };
    let is_old = live.fetching.try_update_value(|fetching| {
        let is_old = now - shown.arrived_at.max(fetching.renewed_at) > age_ms_max;
        if is_old {
            fetching.renewed_at = now;
        }
        is_old
    });
    if is_old == Some(true) {
        live.on_change(topics);
    }
}
