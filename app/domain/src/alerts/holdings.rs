//! Derives the holdings of one lock from its events; used by the live rules and the preview.
//!
//! **Invariant:** the length of a holding is known only if its end names the holder of its beginning: after a time
//! without records, the end may be that of another holding.

use super::usual_hold_time::HoldLength;
use crate::fnv1a::fnv1a_64;
use crate::history::HistoryEvent;
use crate::lock_detail::EventKind;
use crate::names::OwnerId;
use crate::token::FencingToken;

/// Owners of a shared lock whose holds are measured, besides the first.
pub(super) const SHARES_MAX: usize = 1_000;

/// The holder that an event names: by its token or, without one, by its owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HolderKey {
    Token(u64),
    Owner(u64),
    /// Neither was reported.
    Unknown,
}

impl HolderKey {
    pub(super) fn new(owner: Option<&str>, token: Option<u64>) -> Self {
        match (token, owner) {
            (Some(token), _) => Self::Token(token),
            (None, Some(owner)) => Self::Owner(fnv1a_64(owner.bytes())),
            (None, None) => Self::Unknown,
        }
    }

    /// An event that names no holder may be of any.
    pub(super) fn may_be(self, other: Self) -> bool {
        self == other || self == Self::Unknown || other == Self::Unknown
    }
}

/// One event, without its names.
#[derive(Debug, Clone, Copy)]
pub(super) struct Occurrence {
    pub(super) at: i64,
    pub(super) kind: EventKind,
    pub(super) holder: HolderKey,
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
            holder: HolderKey::new(
                event.owner.as_ref().map(OwnerId::as_str),
                event.token.map(FencingToken::number),
            ),
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
    /// Of the other owners of a shared lock, in the order of their grants.
    shares: Vec<HoldStart>,
}

#[derive(Debug, Clone)]
struct OpenHolding {
    /// `None`: when its present owner acquired it is not known.
    start: Option<HoldStart>,
    ttl_ms: Option<i64>,
    renewals: u32,
    waiting_since: Option<WaitStart>,
}

/// Start of the hold of one owner.
#[derive(Debug, Clone, Copy)]
pub(super) struct HoldStart {
    pub(super) holder: HolderKey,
    pub(super) at: i64,
    /// In an outage of its backend.
    pub(super) is_uncertain: bool,
}

impl HoldStart {
    /// `None`: the event ends the hold of another owner.
    pub(super) fn length(self, (holder, at, is_uncertain): (HolderKey, i64, bool)) -> Option<HoldLength> {
        let length = HoldLength::new(at - self.at, self.is_uncertain || is_uncertain);
        self.holder.may_be(holder).then_some(length)
    }
}

impl OpenHolding {
    const fn begin(event: &Occurrence) -> Self {
        Self {
            start: Some(event.start()),
            ttl_ms: event.ttl_ms,
            renewals: 0,
            waiting_since: None,
        }
    }
}

impl Occurrence {
    const fn start(&self) -> HoldStart {
        HoldStart {
            holder: self.holder,
            at: self.at,
            is_uncertain: self.is_uncertain,
        }
    }

    /// As the end of a hold.
    const fn end(&self) -> (HolderKey, i64, bool) {
        (self.holder, self.at, self.is_uncertain)
    }
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
                self.acquired(event, emit);
                self.shares = Vec::new();
                self.open = Some(OpenHolding::begin(event));
                self.begin_reported_wait(event, emit);
                None
            }
            EventKind::ShareAcquired => {
                self.acquired(event, emit);
                match self.open {
                    None => self.open = Some(OpenHolding::begin(event)),
                    Some(_) if self.shares.len() < SHARES_MAX => self.shares.push(event.start()),
                    Some(_) => {}
                }
                self.begin_reported_wait(event, emit);
                None
            }
            EventKind::ShareReleased => self.end_share(event),
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

    /// The longest waiter acquired the lock.
    fn acquired(&mut self, event: &Occurrence, emit: &mut dyn FnMut(Entry)) {
        let wait = self.open.as_mut().and_then(|open| open.waiting_since.take());
        if let Some(wait) = wait {
            emit(Entry::Waited(wait.length(event)));
        }
        emit(Entry::Acquired);
    }

    fn begin_reported_wait(&mut self, event: &Occurrence, emit: &mut dyn FnMut(Entry)) {
        if event.waiters.is_some_and(|waiters| waiters > 0) {
            self.begin_wait(event, emit);
        }
    }

    /// One owner of several: the lock stays held.
    fn end_share(&mut self, event: &Occurrence) -> Option<HoldLength> {
        let is_its = |share: &HoldStart| share.holder == event.holder;
        if let Some(place) = self.shares.iter().position(is_its) {
            return self.shares.remove(place).length(event.end());
        }
        let open = self.open.as_mut()?;
        let start = open.start.filter(is_its)?;
        open.start = match self.shares.is_empty() {
            true => None,
            false => Some(self.shares.remove(0)),
        };
        start.length(event.end())
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
        let shares = std::mem::take(&mut self.shares);
        let mut starts = open.start.into_iter().chain(shares);
        let length = starts.find_map(|start| start.length(event.end()));
        if event.kind == EventKind::Expired {
            emit(Entry::Lost);
        }
        if let Some((length, ttl_ms)) = length.zip(open.ttl_ms).filter(|_| open.renewals == 0) {
            emit(Entry::Held { length, ttl_ms });
        }
        if let Some(wait) = open.waiting_since {
            // The backend does not report which waiter acquires next or gives up.
            emit(Entry::Waited(wait.length(event)));
        }
        length
    }
}
