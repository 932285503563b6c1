//! Everything that the waits page, the overview and `GET /v1/waits` show, for one reader.

use serde::{Deserialize, Serialize};

use super::graph::EdgeTrust;
use crate::backend::{BackendKind, BackendStatus};
use crate::blockers::Blocker;
use crate::names::{BackendName, LockId};

/// Deadlocks, waits and trees in one answer; the totals are exact.
pub const DEADLOCKS_SHOWN_MAX: usize = 20;
pub const WAITS_SHOWN_MAX: usize = 500;
pub const TREES_SHOWN_MAX: usize = 12;
/// Owners of one cycle in one answer.
pub const HOPS_SHOWN_MAX: usize = 24;

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct WaitsPage {
    /// When it was computed, in milliseconds since 1970: the lengths of waits end then.
    pub at: i64,
    /// Headline, as a finding, and the sentence below it.
    pub title: String,
    pub lead: String,
    pub deadlocks: Vec<DeadlockView>,
    pub deadlocks_total: usize,
    /// Longest wait first.
    pub waits: Vec<WaitView>,
    pub waits_total: usize,
    /// Largest tree first.
    pub trees: Vec<Blocker>,
    pub trees_total: usize,
    pub sources: Vec<WaitSourceView>,
    /// Names of the identity rules. Empty: owners of different backends are never joined.
    pub rules: Vec<String>,
    /// Waits that the graph leaves out because of its limits; for a reader of a part, only
    /// whether there are any.
    pub cut: Option<Cut>,
    /// The reader sees only a part of the names.
    pub is_limited: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cut {
    Waits(u64),
    Some,
}

/// A cycle of waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadlockView {
    /// In order: each owner waits for the next one, the last for the first.
    pub hops: Vec<CycleHop>,
    /// Why it is possible and not certain.
    pub doubt: Option<String>,
    /// Since the last wait of the cycle began.
    pub closed_ms: i64,
    /// The backends of its visible waits.
    pub backends: Vec<BackendName>,
    /// Owners in it and behind it that the reader may see.
    pub blocked: usize,
    /// A wait of it is out of the reader's scope.
    pub is_partly_hidden: bool,
    /// Best first. Empty if a wait is hidden: the effect is unknown.
    pub releases: Vec<SuggestedRelease>,
}

/// An owner of a cycle, and its wait for the next owner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CycleHop {
    /// Name of the owner: the values of a rule, or its name on one backend.
    pub owner: String,
    /// Why two identities are this one owner; `None` if it has one.
    pub joined: Option<JoinReason>,
    /// `None`: another lock, out of the reader's scope.
    pub wait: Option<WaitView>,
}

/// Two identities of one owner, and the rule that joins them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JoinReason {
    /// `None`: joined through further identities, by several rules.
    pub rule: Option<String>,
    /// `worker = 7`.
    pub values: Vec<(String, String)>,
    pub identities: Vec<IdentityView>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdentityView {
    pub backend: BackendName,
    /// As the backend shows it.
    pub owner: String,
    /// The field that the rule matched.
    pub field: Option<String>,
}

/// One wait with the reasons why it is believed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitView {
    pub lock: LockId,
    pub kind: BackendKind,
    /// As the backend shows them.
    pub waiter: String,
    pub holder: String,
    pub wants: Option<String>,
    /// How the backend knows who waits for whom.
    pub evidence: String,
    pub trust: EdgeTrust,
    pub waited_ms: i64,
    /// Counted from its first observation: it may have waited longer.
    pub is_at_least: bool,
    pub held_ms: Option<i64>,
    /// Age of the reading.
    pub age_ms: i64,
}

/// What a release of one lock of the cycle would free.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SuggestedRelease {
    pub lock: LockId,
    pub holder: String,
    /// The session is ended, with all that it holds.
    pub ends_session: bool,
    /// Owners that are free at once, and those that follow as each of them finishes.
    pub at_once: Vec<String>,
    pub then: Vec<String>,
    pub side_effect: String,
}

impl SuggestedRelease {
    pub const fn freed(&self) -> usize {
        self.at_once.len() + self.then.len()
    }
}

/// A backend as a source of waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitSourceView {
    pub backend: BackendName,
    pub kind: BackendKind,
    pub status: BackendStatus,
    pub age_ms: Option<i64>,
    /// How it knows its waits; `None`: it reports no waiters, so its waits are unknown.
    pub evidence: Option<String>,
    /// Locks with waiters that the backend counts and does not identify.
    pub unidentified_locks: u64,
}

impl DeadlockView {
    /// What stays the same while only time passes.
    #[must_use]
    pub fn without_times(&self) -> Self {
        let mut steady = self.clone();
        steady.closed_ms = 0;
        for wait in steady.hops.iter_mut().filter_map(|hop| hop.wait.as_mut()) {
            (wait.waited_ms, wait.age_ms, wait.held_ms) = (0, 0, None);
        }
        steady
    }

    /// The last visible waits: one, or several that began or were first seen at the same time.
    fn last_waits(&self) -> impl Iterator<Item = &WaitView> {
        let waits = self.hops.iter().filter_map(|hop| hop.wait.as_ref());
        waits.filter(|wait| wait.waited_ms == self.closed_ms)
    }

    /// The wait that closed the cycle. Unknown if a wait is hidden, if several are the last, or if the last is dated by its first
    /// observation only: it may have begun before others.
    pub fn closing_wait(&self) -> Option<&WaitView> {
        let mut last = self.last_waits();
        let wait = last.next().filter(|wait| !wait.is_at_least)?;
        (last.next().is_none() && !self.is_partly_hidden).then_some(wait)
    }

    /// Place of the release of the lock that an owner of the cycle waits for, from 1.
    pub fn release_of(&self, hop: &CycleHop) -> Option<usize> {
        let wait = hop.wait.as_ref()?;
        let place = self
            .releases
            .iter()
            .position(|release| release.lock == wait.lock)?;
        Some(place + 1)
    }

    /// `One deadlock across 3 systems blocks 7 owners` for one, in words.
    pub fn title(&self) -> String {
        let subject = match self.doubt {
            None => "One deadlock",
            Some(_) => "One possible deadlock",
        };
        let extent = match (self.is_partly_hidden, self.backends.as_slice()) {
            (true, _) => " reaches locks out of your scope and".to_owned(),
            (false, [only]) => format!(" inside of {only}"),
            (false, many) => format!(" across {} systems", many.len()),
        };
        let owners = crate::format::counted(self.blocked as u64, "owner", "owners");
        format!("{subject}{extent} blocks {owners}")
    }

    /// The cycle as text, one wait per line.
    pub fn lines(&self) -> Vec<String> {
        let next = |at: usize| &self.hops[(at + 1) % self.hops.len()].owner;
        let hop = |(at, hop): (usize, &CycleHop)| match &hop.wait {
            Some(wait) => format!(
                "{} waits on {} for {}, held by {}",
                hop.owner,
                wait.lock.backend,
                wait.lock.resource.text(),
                next(at)
            ),
            None => format!("{} waits for {HIDDEN_LOCK}, for {}", hop.owner, next(at)),
        };
        self.hops.iter().enumerate().map(hop).collect()
    }
}

/// In place of locks that the reader may not see.
pub const HIDDEN_LOCK: &str = "another lock out of your scope";

impl WaitsPage {
    /// No backend that reports waiters is configured and read: it is unknown whether any owner waits.
    pub fn is_unread(&self) -> bool {
        let is_read = |source: &WaitSourceView| source.evidence.is_some() && source.age_ms.is_some();
        self.waits.is_empty() && !self.sources.iter().any(is_read)
    }

    /// Writes the headline.
    pub(super) fn describe(&mut self) {
        let is_old = |source: &WaitSourceView| source.status.blinds_rows() || source.age_ms.is_none();
        let old = self.sources.iter().filter(|source| is_old(source)).count();
        let certain = self
            .deadlocks
            .iter()
            .filter(|deadlock| deadlock.doubt.is_none())
            .count();
        self.title = match (self.deadlocks.as_slice(), self.deadlocks_total) {
            ([], _) if self.sources.is_empty() => "No backend is read".to_owned(),
            ([], _) if self.is_unread() => "Deadlocks: unknown".to_owned(),
            ([], _) if old > 0 => "No deadlock in what was read".to_owned(),
            ([], _) => "No deadlock".to_owned(),
            ([only], _) => only.title(),
            (_, total) if certain == 0 => format!("{total} possible deadlocks"),
            (_, total) => format!("{total} deadlocks"),
        };
        self.lead = match (self.deadlocks.first(), self.waits.first()) {
            (Some(worst), _) => closed_text(worst),
            (None, Some(longest)) => format!(
                "{}, the longest for {}.",
                crate::format::counted(
                    self.waits_total as u64,
                    "wait is visible now",
                    "waits are visible now"
                ),
                crate::format::duration(longest.waited_ms)
            ),
            (None, None) if self.is_unread() => {
                "No backend that reports waiters was read: it is unknown whether owners wait.".to_owned()
            }
            (None, None) => "No backend reports a waiter now.".to_owned(),
        };
        if old > 0 {
            let backends = crate::format::counted(old as u64, "backend was", "backends were");
            self.lead.push_str(&format!(
                " {backends} not read recently: waits there are unknown."
            ));
        }
    }
}

fn closed_text(deadlock: &DeadlockView) -> String {
    let mut closed = crate::format::duration(deadlock.closed_ms);
    if deadlock.last_waits().any(|wait| wait.is_at_least) {
        closed.insert_str(0, "at least ");
    }
    match (&deadlock.doubt, deadlock.backends.len()) {
        (Some(doubt), _) => format!("Possible for {closed}: {doubt}."),
        (None, 0 | 1) => format!("Closed for {closed}. None of its owners can go on until one wait ends."),
        (None, _) => {
            format!("Closed for {closed}. Each system sees its own waits; none can detect the cycle alone.")
        }
    }
}
