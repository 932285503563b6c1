//! Replay of conditions on one lock: each of its holdings, as it would have been observed.

mod holding_replay;

use std::collections::HashMap;
use std::sync::Arc;

use self::holding_replay::{Judging, Life};
use super::lock_table::{LockRef, LockTable};
use super::preview_track::PreviewTrack;
use super::{HolderNow, PastEvent, Present};
use crate::alerts::hold_times::{HoldLength, HoldTimes};
use crate::alerts::rule::Rule;
use crate::lock_detail::EventKind;

#[derive(Clone)]
pub(super) struct Lives {
    rule: Arc<Rule>,
    /// Indexed by the number of the lock.
    tracks: Vec<Track>,
}

#[derive(Clone, Default)]
struct Track {
    /// `None`: not yet compared with the rule's scope.
    is_covered: Option<bool>,
    opened: Option<Opened>,
    holds: HoldTimes,
    /// The holder. The strings keep their capacity for the next holder.
    owner: String,
    token: String,
    life: Option<Life>,
}

/// Begin of the current holding.
#[derive(Clone, Copy)]
struct Opened {
    at: i64,
    /// In an outage of its backend.
    is_uncertain: bool,
}

impl Lives {
    pub(super) const fn new(rule: Arc<Rule>) -> Self {
        Self {
            rule,
            tracks: Vec::new(),
        }
    }

    pub(super) fn is_held(&self, number: u32) -> bool {
        let track = self.tracks.get(number as usize);
        track.is_some_and(|track| track.opened.is_some())
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
        board: &mut PreviewTrack,
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
            board.read(1);
            track.event(&self.rule, lock, event, board);
        }
    }

    pub(super) fn finish(
        &mut self,
        table: &LockTable,
        present: &dyn Present,
        to: i64,
        board: &mut PreviewTrack,
    ) {
        let mut ends = HashMap::new();
        for (number, track) in (0_u32..).zip(&mut self.tracks) {
            let Some(mut life) = track.life.take() else {
                continue;
            };
            let lock = table.lock(number);
            // Nothing fires behind a backend that does not answer now.
            let to = *ends.entry(lock.backend).or_insert_with(|| {
                let unobserved = present.unobserved_since(lock.backend);
                unobserved.map_or(to, |since| since.min(to))
            });
            let (rule, holds, owner) = (&*self.rule, &track.holds, &track.owner);
            let judging = Judging {
                rule,
                lock: &lock,
                holds,
                owner,
            };
            if life.is_over_gap(&judging) {
                match present.holder(&lock.id()) {
                    HolderNow::Held { owner, token }
                        if owner.as_deref().unwrap_or_default() == track.owner
                            && token.as_deref().unwrap_or_default() == track.token =>
                    {
                        life.go_on(&judging, board);
                    }
                    HolderNow::Held { .. } | HolderNow::Free => {
                        life.end_unobserved(&judging, board);
                        continue;
                    }
                    HolderNow::Unknown => {
                        life.stop(&judging, board);
                        continue;
                    }
                }
            }
            life.advance(&judging, to, board);
        }
    }
}

impl Track {
    fn event(&mut self, rule: &Rule, lock: &LockRef<'_>, event: &PastEvent<'_>, board: &mut PreviewTrack) {
        let Self {
            opened,
            holds,
            owner,
            token,
            life,
            ..
        } = self;
        let (at, by) = (event.at, event.owner.unwrap_or_default());
        let is_same_holder = *owner == by && *token == event.token.unwrap_or_default();
        let judging = Judging {
            rule,
            lock,
            holds,
            owner,
        };
        match event.kind {
            EventKind::Acquired | EventKind::Reclaimed => {
                board.acquired(event.has_limit());
                match life.take() {
                    Some(mut before) if before.is_over_gap(&judging) => {
                        before.end_unobserved(&judging, board)
                    }
                    Some(mut before) => before.close(&judging, at, board),
                    None => {}
                }
                *opened = Some(Opened {
                    at,
                    is_uncertain: event.not_before.is_some(),
                });
                if rule.scope.owner.matches(by) {
                    replace(owner, by);
                    replace(token, event.token.unwrap_or_default());
                    *life = Some(Life::from_event(event, lock.gaps));
                }
            }
            EventKind::Renewed => {
                // A row of renewals is written after the event that ended them.
                let it = life.as_mut().filter(|life| life.is_renewed_by(event));
                let Some(it) = it else { return };
                if it.is_over_gap(&judging) {
                    if !is_same_holder {
                        it.end_unobserved(&judging, board);
                        *life = None;
                        return;
                    }
                    it.go_on(&judging, board);
                }
                it.advance(&judging, at, board);
                it.renew(event);
            }
            EventKind::Released | EventKind::Expired | EventKind::Revoked => {
                if let Some(ended) = life.take() {
                    end(ended, &judging, event, is_same_holder, board);
                }
                if let Some(opened) = opened.take() {
                    holds.add(opened.until(event, board));
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

impl Opened {
    fn until(self, event: &PastEvent<'_>, board: &mut PreviewTrack) -> HoldLength {
        let is_uncertain = self.is_uncertain || event.not_before.is_some();
        if is_uncertain {
            board.uncertain_hold();
        }
        HoldLength::new(event.at - self.at, is_uncertain)
    }
}

/// A holding ends with an event of its holder or of another one.
fn end(
    mut life: Life,
    judging: &Judging<'_>,
    event: &PastEvent<'_>,
    is_same_holder: bool,
    board: &mut PreviewTrack,
) {
    match life.is_over_gap(judging) {
        true if !is_same_holder => life.end_unobserved(judging, board),
        true => {
            life.go_on(judging, board);
            life.learn_deadline(event);
            life.close(judging, event.at, board);
        }
        false => life.close(judging, event.at, board),
    }
}

fn replace(text: &mut String, new: &str) {
    text.clear();
    text.push_str(new);
}
