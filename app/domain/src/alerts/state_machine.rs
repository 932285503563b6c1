//! State machine of one alert: inactive, pending, firing, resolved. A pure function of phase,
//! result and time.

use serde::{Deserialize, Serialize};

/// Phase of an alert; inactive and resolved alerts have none. Times are milliseconds since
/// 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AlertPhase {
    Pending {
        /// When the condition began to hold, moved forward by unobserved time.
        since: i64,
        /// The result is unknown since then.
        unknown_since: Option<i64>,
    },
    Firing {
        since: i64,
        fired_at: i64,
        /// The condition does not hold since then, moved forward by unobserved time, and keep-firing runs.
        clear_since: Option<i64>,
        /// While keep-firing runs: the result is unknown since then.
        #[serde(default)]
        unknown_since: Option<i64>,
    },
}

/// `for` and keep-firing, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Timing {
    pub for_ms: i64,
    pub keep_ms: i64,
}

/// Result of a condition for one subject now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConditionResult {
    Holds,
    Clear,
    /// Cannot be determined: nothing fires and nothing resolves.
    Unknown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AlertTransition {
    Began,
    Fired,
    Resolved,
    /// It was pending and its condition no longer holds.
    Dropped,
}

/// Returns the next phase and the transition.
pub fn step(
    phase: Option<AlertPhase>,
    sign: ConditionResult,
    timing: Timing,
    now: i64,
) -> (Option<AlertPhase>, Option<AlertTransition>) {
    match (phase, sign) {
        (None, ConditionResult::Clear | ConditionResult::Unknown) => (None, None),
        (None, ConditionResult::Holds) if timing.for_ms == 0 => {
            (Some(fired(now, now)), Some(AlertTransition::Fired))
        }
        (None, ConditionResult::Holds) => (Some(pending(now, None)), Some(AlertTransition::Began)),
        (Some(AlertPhase::Pending { .. }), ConditionResult::Clear) => (None, Some(AlertTransition::Dropped)),
        (Some(AlertPhase::Pending { since, unknown_since }), ConditionResult::Unknown) => {
            (Some(pending(since, unknown_since.or(Some(now)))), None)
        }
        (Some(AlertPhase::Pending { since, unknown_since }), ConditionResult::Holds) => {
            let since = observed_since(since, unknown_since, now);
            if now - since >= timing.for_ms {
                (Some(fired(since, now)), Some(AlertTransition::Fired))
            } else {
                (Some(pending(since, None)), None)
            }
        }
        (
            Some(AlertPhase::Firing {
                since,
                fired_at,
                clear_since,
                unknown_since,
            }),
            ConditionResult::Unknown,
        ) => {
            // Without a running keep-firing time there is nothing to stop.
            let unknown_since = clear_since.and(unknown_since.or(Some(now)));
            let phase = AlertPhase::Firing {
                since,
                fired_at,
                clear_since,
                unknown_since,
            };
            (Some(phase), None)
        }
        (Some(AlertPhase::Firing { since, fired_at, .. }), ConditionResult::Holds) => {
            (Some(fired(since, fired_at)), None)
        }
        (
            Some(AlertPhase::Firing {
                since,
                fired_at,
                clear_since,
                unknown_since,
            }),
            ConditionResult::Clear,
        ) => {
            let from = observed_since(clear_since.unwrap_or(now), unknown_since, now);
            if now - from >= timing.keep_ms {
                return (None, Some(AlertTransition::Resolved));
            }
            let phase = AlertPhase::Firing {
                since,
                fired_at,
                clear_since: Some(from),
                unknown_since: None,
            };
            (Some(phase), None)
        }
    }
}

impl AlertPhase {
    /// When it fires or resolves if the result stays the same.
    pub(super) const fn due(self, sign: ConditionResult, timing: Timing) -> Option<i64> {
        match (self, sign) {
            (
                Self::Pending {
                    since,
                    unknown_since: None,
                },
                ConditionResult::Holds,
            ) => Some(since + timing.for_ms),
            (
                Self::Firing {
                    clear_since: Some(since),
                    unknown_since: None,
                    ..
                },
                ConditionResult::Clear,
            ) => Some(since + timing.keep_ms),
            _ => None,
        }
    }
}

/// The start of a duration, moved forward by the unobserved time. At most now: after a clock was set back, the duration
/// must not be negative.
fn observed_since(since: i64, unknown_since: Option<i64>, now: i64) -> i64 {
    let moved = unknown_since.map_or(since, |from| since + (now - from).max(0));
    moved.min(now)
}

const fn pending(since: i64, unknown_since: Option<i64>) -> AlertPhase {
    AlertPhase::Pending { since, unknown_since }
}

const fn fired(since: i64, fired_at: i64) -> AlertPhase {
    AlertPhase::Firing {
        since,
        fired_at,
        clear_since: None,
        unknown_since: None,
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

    fn play(signs: &[(i64, ConditionResult)]) -> Vec<(i64, AlertTransition)> {
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
    fn alert_fires_after_for_and_resolves_after_keep_firing() {
        // Fires after 10, not after 9; resolves after a break of 5, not of 4.
        use ConditionResult::{Clear, Holds};
        let short = play(&[(0, Holds), (9, Holds), (9, Clear)]);
        assert_eq!(
            short,
            [(0, AlertTransition::Began), (9, AlertTransition::Dropped)]
        );
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
            [
                (0, AlertTransition::Began),
                (10, AlertTransition::Fired),
                (21, AlertTransition::Resolved)
            ]
        );
    }

    #[test]
    fn unobserved_time_does_not_count_for_the_duration() {
        // Pending for 5, unknown for 100: 5 more are still required. A firing alert keeps its
        // phase.
        use ConditionResult::{Clear, Holds, Unknown};
        let seen = play(&[
            (0, Holds),
            (5, Unknown),
            (50, Unknown),
            (105, Holds),
            (110, Holds),
        ]);
        assert_eq!(seen, [(0, AlertTransition::Began), (110, AlertTransition::Fired)]);
        let kept = play(&[
            (0, Holds),
            (10, Holds),
            (11, Unknown),
            (900, Unknown),
            (901, Clear),
            (906, Clear),
        ]);
        assert_eq!(kept.last(), Some(&(906, AlertTransition::Resolved)));
        assert_eq!(kept.len(), 3);
    }

    #[test]
    fn unobserved_time_does_not_count_for_keep_firing() {
        // Clear for 2 of 5 when the result becomes unknown: 3 more are required, also after a second time without a
        // result, and after a clock that was set back.
        use ConditionResult::{Clear, Holds, Unknown};
        let fires = [
            (0, Holds),
            (10, Holds),
            (11, Clear),
            (13, Unknown),
            (900, Unknown),
        ];
        let resolved = |rest: &[(i64, ConditionResult)]| {
            let mut changes = play(&[&fires[..], rest].concat()).into_iter();
            let end = changes.find(|(_, change)| *change == AlertTransition::Resolved);
            end.map(|(at, _)| at)
        };
        assert_eq!(resolved(&[(901, Clear), (903, Clear), (904, Clear)]), Some(904));
        assert_eq!(
            resolved(&[
                (901, Clear),
                (902, Unknown),
                (950, Clear),
                (951, Clear),
                (952, Clear)
            ]),
            Some(952)
        );
        assert_eq!(resolved(&[(5, Clear), (9, Clear), (10, Clear)]), Some(10));
        assert_eq!(
            resolved(&[(901, Holds), (902, Clear), (906, Clear), (907, Clear)]),
            Some(907)
        );
    }

    proptest! {
        #[test]
        fn firing_and_resolving_alternate_and_unknown_changes_nothing(
            signs in proptest::collection::vec((0_i64..8, 0_u8..3), 0..200)
        ) {
            // Random results at rising times: transitions alternate, and none happens at
            // `Unknown`.
            let (mut phase, mut now, mut is_firing) = (None, 0, false);
            for (wait, sign) in signs {
                now += wait;
                let sign = [ConditionResult::Holds, ConditionResult::Clear, ConditionResult::Unknown][usize::from(sign)];
                let (next, change) = step(phase, sign, TIMING, now);
                match change {
                    Some(AlertTransition::Fired) => { prop_assert!(!is_firing && sign == ConditionResult::Holds); is_firing = true; }
                    Some(AlertTransition::Resolved) => { prop_assert!(is_firing && sign == ConditionResult::Clear); is_firing = false; }
                    Some(AlertTransition::Began | AlertTransition::Dropped) => prop_assert!(!is_firing && sign != ConditionResult::Unknown),
                    None => {}
                }
                prop_assert_eq!(is_firing, matches!(next, Some(AlertPhase::Firing { .. })));
                phase = next;
            }
        }
    }
}
