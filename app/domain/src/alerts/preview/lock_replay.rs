//! Replay of conditions on one lock: each of its holdings, as it would have been observed.

mod holding_replay;

use std::collections::HashMap;
use std::sync::Arc;

use self::holding_replay::{HoldingContext, HoldingReplay};
use super::lock_table::{LockRef, LockTable};
use super::preview_output::PreviewOutput;
use super::{CurrentState, HolderNow, PastEvent};
use crate::alerts::holdings::{HoldStart, SHARES_MAX};
use crate::alerts::rule::Rule;
use crate::alerts::usual_hold_time::{HoldLength, HoldTimes};
use crate::lock_detail::EventKind;

#[derive(Clone)]
pub(super) struct LockReplay {
    rule: Arc<Rule>,
    /// Indexed by the number of the lock.
    tracks: Vec<Track>,
}

#[derive(Clone, Default)]
struct Track {
    /// `None`: not yet compared with the rule's scope.
    is_covered: Option<bool>,
    hold_start: Option<HoldStart>,
    /// Of the other owners of a shared lock, in the order of their grants.
    shares: Vec<Share>,
    holds: HoldTimes,
    /// The holder. The strings keep their capacity for the next holder.
    owner: String,
    token: String,
    holding: Option<HoldingReplay>,
}

/// An owner of a shared lock that is not the recorded one: rules judge the lock by the recorded one.
#[derive(Clone)]
struct Share {
    start: HoldStart,
    owner: String,
    token: String,
    /// `None`: the rule is for other owners.
    holding: Option<HoldingReplay>,
}

impl LockReplay {
    pub(super) const fn new(rule: Arc<Rule>) -> Self {
        Self {
            rule,
            tracks: Vec::new(),
        }
    }

    pub(super) fn is_held(&self, number: u32) -> bool {
        let track = self.tracks.get(number as usize);
        track.is_some_and(|track| track.hold_start.is_some())
    }

    pub(super) fn forget(&mut self, number: u32) {
        if let Some(track) = self.tracks.get_mut(number as usize) {
            *track = Track::default();
        }
    }

    pub(super) fn event(
        &mut self,
        number: u32,
        lock: &LockRef<'_>,
        event: &PastEvent<'_>,
        preview: &mut PreviewOutput,
    ) {
        let index = number as usize;
        if self.tracks.len() <= index {
            self.tracks.resize_with(index + 1, Track::default);
        }
        let (track, scope) = (&mut self.tracks[index], &self.rule.scope);
        let is_covered = *track
            .is_covered
            .get_or_insert_with(|| scope.has_backend(lock.backend) && scope.prefix.covers(lock.name));
        if is_covered {
            preview.read(1);
            track.event(&self.rule, lock, event, preview);
        }
    }

    pub(super) fn finish(
        &mut self,
        table: &LockTable,
        present: &dyn CurrentState,
        to: i64,
        preview: &mut PreviewOutput,
    ) {
        let mut ends = HashMap::new();
        for (number, track) in (0_u32..).zip(&mut self.tracks) {
            let Some(mut holding) = track.holding.take() else {
                continue;
            };
            let lock = table.lock(number);
            // Nothing fires behind a backend that does not answer now.
            let to = *ends.entry(lock.backend).or_insert_with(|| {
                let unobserved = present.unobserved_since(lock.backend);
                unobserved.map_or(to, |since| since.min(to))
            });
            let (rule, holds, owner) = (&*self.rule, &track.holds, &track.owner);
            let context = HoldingContext {
                rule,
                lock: &lock,
                holds,
                owner,
            };
            if holding.is_over_gap(&context) {
                match present.holder(&lock.id()) {
                    HolderNow::Held { owner, token }
                        if is_same_holder(
                            (track.owner.as_str(), track.token.as_str()),
                            (
                                owner.as_deref().unwrap_or_default(),
                                token.as_deref().unwrap_or_default(),
                            ),
                        ) =>
                    {
                        holding.continue_after_gaps(&context, preview);
                    }
                    HolderNow::Held { .. } | HolderNow::Free => {
                        holding.end_unobserved(&context, preview);
                        continue;
                    }
                    HolderNow::Unknown => {
                        holding.stop(&context, preview);
                        continue;
                    }
                }
            }
            holding.advance(&context, to, preview);
        }
    }
}

impl Track {
    fn event(&mut self, rule: &Rule, lock: &LockRef<'_>, event: &PastEvent<'_>, preview: &mut PreviewOutput) {
        match event.kind {
            EventKind::Acquired | EventKind::Reclaimed => self.acquired(rule, lock, event, preview),
            EventKind::ShareAcquired if self.hold_start.is_some() => {
                preview.acquired(event.has_limit());
                self.add_share(rule, lock, event);
            }
            // The lock was held before the history.
            EventKind::ShareAcquired => self.acquired(rule, lock, event, preview),
            EventKind::ShareReleased => self.share_released(rule, lock, event, preview),
            EventKind::Renewed => self.renewed(rule, lock, event, preview),
            EventKind::Released | EventKind::Expired | EventKind::Revoked => {
                self.end_holding(rule, lock, event, preview);
                let shares = std::mem::take(&mut self.shares)
                    .into_iter()
                    .map(|share| share.start);
                let starts = self.hold_start.take().into_iter().chain(shares);
                self.add_hold(starts, event, preview);
            }
            EventKind::Waiting
            | EventKind::FewerWaiting
            | EventKind::GrantedAfterWait
            | EventKind::Rejected
            | EventKind::Lost
            | EventKind::Unwatched
            | EventKind::WatchedAgain => {}
        }
    }

    fn acquired(
        &mut self,
        rule: &Rule,
        lock: &LockRef<'_>,
        event: &PastEvent<'_>,
        preview: &mut PreviewOutput,
    ) {
        preview.acquired(event.has_limit());
        let previous = self.holding.take();
        let context = self.context(rule, lock);
        match previous {
            Some(mut previous) if previous.is_over_gap(&context) => {
                previous.end_unobserved(&context, preview)
            }
            Some(mut previous) => previous.close(&context, event.at, preview),
            None => {}
        }
        self.shares = Vec::new();
        self.hold_start = Some(hold_start(event));
        let by = event.owner.unwrap_or_default();
        if rule.scope.owner.matches(by) {
            replace(&mut self.owner, by);
            replace(&mut self.token, event.token.unwrap_or_default());
            self.holding = Some(HoldingReplay::from_event(event, lock.gaps));
        }
    }

    fn add_share(&mut self, rule: &Rule, lock: &LockRef<'_>, event: &PastEvent<'_>) {
        if self.shares.len() >= SHARES_MAX {
            return;
        }
        let owner = event.owner.unwrap_or_default();
        let is_covered = rule.scope.owner.matches(owner);
        self.shares.push(Share {
            start: hold_start(event),
            owner: owner.to_owned(),
            token: event.token.unwrap_or_default().to_owned(),
            holding: is_covered.then(|| HoldingReplay::from_event(event, lock.gaps)),
        });
    }

    /// One owner of several: the lock stays held, and the next owner is the recorded one.
    fn share_released(
        &mut self,
        rule: &Rule,
        lock: &LockRef<'_>,
        event: &PastEvent<'_>,
        preview: &mut PreviewOutput,
    ) {
        let holder = event.holder();
        if let Some(place) = self.shares.iter().position(|share| share.start.holder == holder) {
            let share = self.shares.remove(place);
            return self.add_hold([share.start], event, preview);
        }
        let Some(start) = self.hold_start.filter(|start| start.holder == holder) else {
            return;
        };
        let previous = self.holding.clone();
        self.end_holding(rule, lock, event, preview);
        self.add_hold([start], event, preview);
        self.hold_start = None;
        if self.shares.is_empty() {
            return;
        }
        let next = self.shares.remove(0);
        (self.owner, self.token) = (next.owner, next.token);
        self.hold_start = Some(next.start);
        self.holding = next.holding.map(|mut holding| {
            holding.succeed(previous.as_ref(), event.at, lock.gaps);
            holding
        });
    }

    fn renewed(
        &mut self,
        rule: &Rule,
        lock: &LockRef<'_>,
        event: &PastEvent<'_>,
        preview: &mut PreviewOutput,
    ) {
        // A row of renewals is written after the event that ended them.
        let Some(mut holding) = self.holding.take_if(|holding| holding.is_renewed_by(event)) else {
            return;
        };
        let context = self.context(rule, lock);
        if holding.is_over_gap(&context) {
            if !self.is_holder(event) {
                return holding.end_unobserved(&context, preview);
            }
            holding.continue_after_gaps(&context, preview);
        }
        holding.advance(&context, event.at, preview);
        holding.renew(event);
        self.holding = Some(holding);
    }

    fn end_holding(
        &mut self,
        rule: &Rule,
        lock: &LockRef<'_>,
        event: &PastEvent<'_>,
        preview: &mut PreviewOutput,
    ) {
        if let Some(ended) = self.holding.take() {
            let is_same_holder = self.is_holder(event);
            end(ended, &self.context(rule, lock), event, is_same_holder, preview);
        }
    }

    /// Adds the hold that the event ends.
    fn add_hold(
        &mut self,
        starts: impl IntoIterator<Item = HoldStart>,
        event: &PastEvent<'_>,
        preview: &mut PreviewOutput,
    ) {
        let end = (event.holder(), event.at, event.not_before.is_some());
        let length = starts.into_iter().find_map(|start| start.length(end));
        if length == Some(HoldLength::Uncertain) {
            preview.uncertain_hold();
        }
        if let Some(length) = length {
            self.holds.add(length);
        }
    }

    fn is_holder(&self, event: &PastEvent<'_>) -> bool {
        let by = (event.owner.unwrap_or_default(), event.token.unwrap_or_default());
        is_same_holder((self.owner.as_str(), self.token.as_str()), by)
    }

    fn context<'a>(&'a self, rule: &'a Rule, lock: &'a LockRef<'a>) -> HoldingContext<'a> {
        HoldingContext {
            rule,
            lock,
            holds: &self.holds,
            owner: &self.owner,
        }
    }
}

fn hold_start(event: &PastEvent<'_>) -> HoldStart {
    HoldStart {
        holder: event.holder(),
        at: event.at,
        is_uncertain: event.not_before.is_some(),
    }
}

/// Whether two pairs of owner and token name one holder. Under one token an owner may change its text.
fn is_same_holder((owner, token): (&str, &str), (other_owner, other_token): (&str, &str)) -> bool {
    token == other_token && (!token.is_empty() || owner == other_owner)
}

/// A holding ends with an event of its holder or of another one.
fn end(
    mut holding: HoldingReplay,
    context: &HoldingContext<'_>,
    event: &PastEvent<'_>,
    is_same_holder: bool,
    preview: &mut PreviewOutput,
) {
    match holding.is_over_gap(context) {
        true if !is_same_holder => holding.end_unobserved(context, preview),
        true => {
            holding.continue_after_gaps(context, preview);
            holding.learn_deadline(event);
            holding.close(context, event.at, preview);
        }
        false => holding.close(context, event.at, preview),
    }
}

fn replace(text: &mut String, new: &str) {
    text.clear();
    text.push_str(new);
}
