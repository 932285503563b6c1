//! What becomes of one alert: inactive, pending, firing, resolved. A pure function of state, verdict and time.

use serde::{Deserialize, Serialize};

/// Where an alert is; inactive and resolved ones have no phase. Times are milliseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    Pending {
        /// When the condition began to hold; times that nobody watched are left out.
        since: i64,
        /// Nobody knows from here on.
        unknown_since: Option<i64>,
    },
    Firing {
        since: i64,
        fired_at: i64,
        /// The condition does not hold any more from here on, and keep-firing runs.
        clear_since: Option<i64>,
    },
}

/// How long a condition must hold before it fires, and how long not before it resolves, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Timing {
    pub for_ms: i64,
    pub keep_ms: i64,
}

/// What a condition says of one subject now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    Holds,
    Clear,
    /// Nobody can tell now: nothing fires and nothing resolves.
    Unknown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    Began,
    Fired,
    Resolved,
    /// It was pending and its condition does not hold any more.
    Dropped,
}

/// The phase from now on, and what changed.
pub fn step(phase: Option<Phase>, sign: Sign, timing: Timing, now: i64) -> (Option<Phase>, Option<Change>) {
    match (phase, sign) {
        (None, Sign::Clear | Sign::Unknown) => (None, None),
        (None, Sign::Holds) if timing.for_ms == 0 => (Some(fired(now, now)), Some(Change::Fired)),
        (None, Sign::Holds) => (Some(pending(now, None)), Some(Change::Began)),
        (Some(Phase::Pending { .. }), Sign::Clear) => (None, Some(Change::Dropped)),
        (Some(Phase::Pending { since, unknown_since }), Sign::Unknown) => {
            (Some(pending(since, unknown_since.or(Some(now)))), None)
        }
        (Some(Phase::Pending { since, unknown_since }), Sign::Holds) => {
            // Never later than now: a clock set back must not make it negative for ever.
            let since = unknown_since
                .map_or(since, |from| since + (now - from).max(0))
                .min(now);
            if now - since >= timing.for_ms {
                (Some(fired(since, now)), Some(Change::Fired))
            } else {
                (Some(pending(since, None)), None)
            }
        }
        (Some(firing @ Phase::Firing { .. }), Sign::Unknown) => (Some(firing), None),
        (Some(Phase::Firing { since, fired_at, .. }), Sign::Holds) => (Some(fired(since, fired_at)), None),
        (
            Some(Phase::Firing {
                since,
                fired_at,
                clear_since,
            }),
            Sign::Clear,
        ) => {
            let from = clear_since.unwrap_or(now).min(now);
            if now - from >= timing.keep_ms {
                return (None, Some(Change::Resolved));
            }
            let clear_since = Some(from);
            let phase = Phase::Firing {
                since,
                fired_at,
                clear_since,
            };
            (Some(phase), None)
        }
    }
}

impl Phase {
    /// When it fires or resolves if the sign stays the same.
    pub(super) const fn due(self, sign: Sign, timing: Timing) -> Option<i64> {
        match (self, sign) {
            (
                Self::Pending {
                    since,
                    unknown_since: None,
                },
                Sign::Holds,
            ) => Some(since + timing.for_ms),
            (
                Self::Firing {
                    clear_since: Some(since),
                    ..
                },
                Sign::Clear,
            ) => Some(since + timing.keep_ms),
            _ => None,
        }
    }
}

const fn pending(since: i64, unknown_since: Option<i64>) -> Phase {
    Phase::Pending { since, unknown_since }
}

const fn fired(since: i64, fired_at: i64) -> Phase {
    Phase::Firing {
        since,
        fired_at,
        clear_since: None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TIMING: Timing = Timing {
        for_ms: 10,
        keep_ms: 5,
    };

    fn play(signs: &[(i64, Sign)]) -> Vec<(i64, Change)> {
        let mut phase = None;
        let mut changes = Vec::new();
        for (now, sign) in signs {
            let (next, change) = step(phase, *sign, TIMING, *now);
            phase = next;
            changes.extend(change.map(|change| (*now, change)));
        }
        changes
    }

    #[test]
    fn it_fires_after_for_and_resolves_after_keep_firing() {
        // A hold of 9 fires nothing; one of 10 fires; a break of 4 resolves nothing; one of 5 does.
        use Sign::{Clear, Holds};
        let short = play(&[(0, Holds), (9, Holds), (9, Clear)]);
        assert_eq!(short, [(0, Change::Began), (9, Change::Dropped)]);
        let long = play(&[
            (0, Holds),
            (10, Holds),
            (11, Clear),
            (15, Holds),
            (16, Clear),
            (20, Clear),
            (21, Clear),
        ]);
        assert_eq!(
            long,
            [(0, Change::Began), (10, Change::Fired), (21, Change::Resolved)]
        );
    }

    #[test]
    fn time_that_nobody_watched_counts_for_nothing() {
        // Pending for 5, unknown for 100, and the other 5 are still wanted; a firing one stays as it is.
        use Sign::{Clear, Holds, Unknown};
        let seen = play(&[
            (0, Holds),
            (5, Unknown),
            (50, Unknown),
            (105, Holds),
            (110, Holds),
        ]);
        assert_eq!(seen, [(0, Change::Began), (110, Change::Fired)]);
        let kept = play(&[
            (0, Holds),
            (10, Holds),
            (11, Unknown),
            (900, Unknown),
            (901, Clear),
            (906, Clear),
        ]);
        assert_eq!(kept.last(), Some(&(906, Change::Resolved)));
        assert_eq!(kept.len(), 3);
    }

    proptest! {
        #[test]
        fn firing_and_resolving_take_turns_and_unknown_changes_nothing(
            signs in proptest::collection::vec((0_i64..8, 0_u8..3), 0..200)
        ) {
            // Any signs at rising times: never two of one kind in a row, never a change at Unknown.
            let (mut phase, mut now, mut is_firing) = (None, 0, false);
            for (wait, sign) in signs {
                now += wait;
                let sign = [Sign::Holds, Sign::Clear, Sign::Unknown][usize::from(sign)];
                let (next, change) = step(phase, sign, TIMING, now);
                match change {
                    Some(Change::Fired) => { prop_assert!(!is_firing && sign == Sign::Holds); is_firing = true; }
                    Some(Change::Resolved) => { prop_assert!(is_firing && sign == Sign::Clear); is_firing = false; }
                    Some(Change::Began | Change::Dropped) => prop_assert!(!is_firing && sign != Sign::Unknown),
                    None => {}
                }
                prop_assert_eq!(is_firing, matches!(next, Some(Phase::Firing { .. })));
                phase = next;
            }
        }
    }
}
