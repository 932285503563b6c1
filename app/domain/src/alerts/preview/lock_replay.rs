//! Replay of conditions on one lock: each of its holdings, as it would have been observed.

mod holding_replay;

use self::holding_replay::{Judging, Life};
use super::lock_table::{LockRef, LockTable};
use super::preview_track::PreviewTrack;
use super::{HolderNow, PastEvent, Present};
use crate::alerts::hold_times::HoldTimes;
use crate::alerts::rule::Rule;
use crate::lock_detail::EventKind;

pub(super) struct Lives<'r> {
    rule: &'r Rule,
    /// Indexed by the number of the lock.
    tracks: Vec<Track>,
    /// Gaps so far.
    gaps: Vec<(i64, i64)>,
}

#[derive(Default)]
struct Track {
    /// `None`: not yet compared with the rule's scope.
    is_covered: Option<bool>,
    opened_at: Option<i64>,
    holds: HoldTimes,
    /// The holder. The strings keep their capacity for the next holder.
    owner: String,
    token: String,
    life: Option<Life>,
}

impl<'r> Lives<'r> {
    pub(super) const fn new(rule: &'r Rule) -> Self {
        Self {
            rule,
            tracks: Vec::new(),
            gaps: Vec::new(),
        }
    }

    pub(super) fn is_held(&self, number: u32) -> bool {
        let track = self.tracks.get(number as usize);
        track.is_some_and(|track| track.opened_at.is_some())
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
            track.event(self.rule, &self.gaps, lock, event, board);
        }
    }

    /// Holdings open at the gap are resolved at their next event.
    pub(super) fn gap(&mut self, _: &LockTable, gap: (i64, i64), _: &mut PreviewTrack) {
        self.gaps.push(gap);
    }

    pub(super) fn finish(
        &mut self,
        table: &LockTable,
        present: &dyn Present,
        to: i64,
        board: &mut PreviewTrack,
    ) {
        for (number, track) in (0_u32..).zip(&mut self.tracks) {
            let Some(mut life) = track.life.take() else {
                continue;
            };
            let lock = table.lock(number);
            let (rule, holds, owner) = (self.rule, &track.holds, &track.owner);
            let judging = Judging {
                rule,
                lock: &lock,
                holds,
                owner,
            };
            if life.is_over_gap(&self.gaps) {
                match present.holder(&lock.id()) {
                    HolderNow::Held { owner, token }
                        if owner.as_deref().unwrap_or_default() == track.owner
                            && token.as_deref().unwrap_or_default() == track.token =>
                    {
                        life.go_on(&judging, &self.gaps, board);
                    }
                    HolderNow::Held { .. } | HolderNow::Free => {
                        life.end_unobserved(&judging, &self.gaps, board);
                        continue;
                    }
                    HolderNow::Unknown => {
                        life.stop(&judging, &self.gaps, board);
                        continue;
                    }
                }
            }
            life.advance(&judging, to, board);
        }
    }
}

impl Track {
    fn event(
        &mut self,
        rule: &Rule,
        gaps: &[(i64, i64)],
        lock: &LockRef<'_>,
        event: &PastEvent<'_>,
        board: &mut PreviewTrack,
    ) {
        let Self {
            opened_at,
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
                    Some(mut before) if before.is_over_gap(gaps) => {
                        before.end_unobserved(&judging, gaps, board)
                    }
                    Some(mut before) => before.close(&judging, at, board),
                    None => {}
                }
                *opened_at = Some(at);
                if rule.scope.owner.matches(by) {
                    replace(owner, by);
                    replace(token, event.token.unwrap_or_default());
                    *life = Some(Life::from_event(event, gaps.len()));
                }
            }
            EventKind::Renewed => {
                // A row of renewals is written after the event that ended them.
                let it = life.as_mut().filter(|life| life.is_renewed_by(event));
                let Some(it) = it else { return };
                if it.is_over_gap(gaps) {
                    if !is_same_holder {
                        it.end_unobserved(&judging, gaps, board);
                        *life = None;
                        return;
                    }
                    it.go_on(&judging, gaps, board);
                }
                it.advance(&judging, at, board);
                it.renew(event);
            }
            EventKind::Released | EventKind::Expired | EventKind::Revoked => {
                if let Some(mut ended) = life.take() {
                    match ended.is_over_gap(gaps) {
                        true if !is_same_holder => ended.end_unobserved(&judging, gaps, board),
                        true => {
                            ended.go_on(&judging, gaps, board);
                            ended.learn_deadline(event);
                            ended.close(&judging, at, board);
                        }
                        false => ended.close(&judging, at, board),
                    }
                }
                if let Some(opened_at) = opened_at.take() {
                    holds.add(at - opened_at);
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

fn replace(text: &mut String, new: &str) {
    text.clear();
    text.push_str(new);
}
