//! Derives the holdings of one lock from its events; used by the live rules and the preview.

use super::hold_times::HoldLength;
use crate::history::HistoryEvent;
use crate::lock_detail::EventKind;

/// One event, without its names.
#[derive(Debug, Clone, Copy)]
pub(super) struct Occurrence {
    pub(super) at: i64,
    pub(super) kind: EventKind,
    /// First seen after an outage of the backend: it happened at any time before.
    pub(super) is_uncertain: bool,
    pub(super) ttl_ms: Option<i64>,
    pub(super) waiters: Option<u32>,
    /// Number of renewals that the row sums up.
    pub(super) renewals: u32,
}

impl From<&HistoryEvent> for Occurrence {
    fn from(event: &HistoryEvent) -> Self {
        Self {
            at: event.at,
            kind: event.kind,
            is_uncertain: event.not_before.is_some(),
            ttl_ms: event.ttl_ms,
            waiters: event.waiters,
            renewals: event.run.map_or(1, |run| run.count),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Entry {
    Acquired,
    /// The first waiter of a holding arrived.
    Contended,
    /// A waiter acquired the lock or gave up.
    Waited(HoldLength),
    /// A holding that never renewed ended.
    Held {
        length: HoldLength,
        ttl_ms: i64,
    },
    Lost,
}

/// The current holding, if there is one.
#[derive(Debug, Clone, Default)]
pub(super) struct Holdings {
    open: Option<OpenHolding>,
}

#[derive(Debug, Clone)]
struct OpenHolding {
    at: i64,
    is_uncertain: bool,
    ttl_ms: Option<i64>,
    renewals: u32,
    waiting_since: Option<WaitStart>,
}

/// Start of a wait.
#[derive(Debug, Clone, Copy)]
struct WaitStart {
    at: i64,
    is_uncertain: bool,
}

impl WaitStart {
    fn length(self, event: &Occurrence) -> HoldLength {
        HoldLength::new(event.at - self.at, self.is_uncertain || event.is_uncertain)
    }
}

impl Holdings {
    pub(super) const fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Passes the entries of the prefix to `emit`. Returns the length of a holding that the
    /// event ends.
    pub(super) fn apply(&mut self, event: &Occurrence, emit: &mut dyn FnMut(Entry)) -> Option<HoldLength> {
        match event.kind {
            EventKind::Acquired | EventKind::Reclaimed => {
                if let Some(wait) = self.open.take().and_then(|open| open.waiting_since) {
                    emit(Entry::Waited(wait.length(event)));
                }
                emit(Entry::Acquired);
                self.open = Some(OpenHolding {
                    at: event.at,
                    is_uncertain: event.is_uncertain,
                    ttl_ms: event.ttl_ms,
                    renewals: 0,
                    waiting_since: None,
                });
                if event.waiters.is_some_and(|waiters| waiters > 0) {
                    self.begin_wait(event, emit);
                }
                None
            }
            EventKind::Renewed => {
                if let Some(open) = &mut self.open {
                    open.renewals = open.renewals.saturating_add(event.renewals);
                    open.ttl_ms = event.ttl_ms.or(open.ttl_ms);
                }
                None
            }
            EventKind::Waiting => {
                self.begin_wait(event, emit);
                None
            }
            EventKind::FewerWaiting => {
                // The last waiter gave up.
                let open = self.open.as_mut().filter(|_| event.waiters == Some(0));
                if let Some(wait) = open.and_then(|open| open.waiting_since.take()) {
                    emit(Entry::Waited(wait.length(event)));
                }
                None
            }
            EventKind::Released | EventKind::Expired | EventKind::Revoked => self.end(event, emit),
            // Rejections have a table of their own; a late renewal follows an expiry, a grant
            // after a wait follows its grant.
            EventKind::GrantedAfterWait
            | EventKind::Rejected
            | EventKind::Lost
            | EventKind::Unwatched
            | EventKind::WatchedAgain => None,
        }
    }

    fn begin_wait(&mut self, event: &Occurrence, emit: &mut dyn FnMut(Entry)) {
        let Some(open) = &mut self.open else { return };
        if open.waiting_since.is_none() {
            open.waiting_since = Some(WaitStart {
                at: event.at,
                is_uncertain: event.is_uncertain,
            });
            emit(Entry::Contended);
        }
    }

    fn end(&mut self, event: &Occurrence, emit: &mut dyn FnMut(Entry)) -> Option<HoldLength> {
        let open = self.open.take()?;
        let length = HoldLength::new(event.at - open.at, open.is_uncertain || event.is_uncertain);
        if event.kind == EventKind::Expired {
            emit(Entry::Lost);
        }
        if let Some(ttl_ms) = open.ttl_ms.filter(|_| open.renewals == 0) {
            emit(Entry::Held { length, ttl_ms });
        }
        if let Some(wait) = open.waiting_since {
            // The backend does not report which waiter acquires next or gives up.
            emit(Entry::Waited(wait.length(event)));
        }
        Some(length)
    }
}
