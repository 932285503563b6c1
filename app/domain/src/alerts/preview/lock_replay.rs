//! Replay of conditions on one lock: each of its holdings, as it would have been observed.

mod holding_replay;

use std::collections::HashMap;
use std::sync::Arc;

use self::holding_replay::{HoldingContext, HoldingReplay};
use super::lock_table::{LockRef, LockTable};
use super::preview_track::PreviewTrack;
use super::{HolderNow, PastEvent, Present};
use crate::alerts::hold_times::{HoldLength, HoldTimes};
use crate::alerts::rule::Rule;
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
    holds: HoldTimes,
    /// The holder. The strings keep their capacity for the next holder.
    owner: String,
    token: String,
    holding: Option<HoldingReplay>,
}

/// Start of the current holding.
#[derive(Clone, Copy)]
struct HoldStart {
    at: i64,
    /// In an outage of its backend.
    is_uncertain: bool,
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
        preview: &mut PreviewTrack,
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
        present: &dyn Present,
        to: i64,
        preview: &mut PreviewTrack,
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
    fn event(&mut self, rule: &Rule, lock: &LockRef<'_>, event: &PastEvent<'_>, preview: &mut PreviewTrack) {
        let Self {
            hold_start,
            holds,
            owner,
            token,
            holding,
            ..
        } = self;
        let (at, by) = (event.at, event.owner.unwrap_or_default());
        let is_same_holder = is_same_holder(
            (owner.as_str(), token.as_str()),
            (by, event.token.unwrap_or_default()),
        );
        let context = HoldingContext {
            rule,
            lock,
            holds,
            owner,
        };
        match event.kind {
            EventKind::Acquired | EventKind::Reclaimed => {
                preview.acquired(event.has_limit());
                match holding.take() {
                    Some(mut previous) if previous.is_over_gap(&context) => {
                        previous.end_unobserved(&context, preview)
                    }
                    Some(mut previous) => previous.close(&context, at, preview),
                    None => {}
                }
                *hold_start = Some(HoldStart {
                    at,
                    is_uncertain: event.not_before.is_some(),
                });
                if rule.scope.owner.matches(by) {
                    replace(owner, by);
                    replace(token, event.token.unwrap_or_default());
                    *holding = Some(HoldingReplay::from_event(event, lock.gaps));
                }
            }
            EventKind::Renewed => {
                // A row of renewals is written after the event that ended them.
                let it = holding.as_mut().filter(|holding| holding.is_renewed_by(event));
                let Some(it) = it else { return };
                if it.is_over_gap(&context) {
                    if !is_same_holder {
                        it.end_unobserved(&context, preview);
                        *holding = None;
                        return;
                    }
                    it.continue_after_gaps(&context, preview);
                }
                it.advance(&context, at, preview);
                it.renew(event);
            }
            EventKind::Released | EventKind::Expired | EventKind::Revoked => {
                if let Some(ended) = holding.take() {
                    end(ended, &context, event, is_same_holder, preview);
                }
                if let Some(hold_start) = hold_start.take() {
                    holds.add(hold_start.hold_length(event, preview));
                }
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
}

impl HoldStart {
    fn hold_length(self, event: &PastEvent<'_>, preview: &mut PreviewTrack) -> HoldLength {
        let is_uncertain = self.is_uncertain || event.not_before.is_some();
        if is_uncertain {
            preview.uncertain_hold();
        }
        HoldLength::new(event.at - self.at, is_uncertain)
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
    preview: &mut PreviewTrack,
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
