//! Detects whether the store may have changed: a second without events needs no read. Pure.

use crate::alerts::event_source::ReadPositions;

/// A row of signals may be read while the next one is written, in milliseconds.
const SIGNALLED_WITHIN_MS: i64 = 3_000;
/// A rejection is counted about when it is written, in milliseconds.
const WRITTEN_WITHIN_MS: i64 = 3_000;
/// Interval in rounds at which records are read if changes cannot be detected.
const RECORDS_EVERY: u64 = 3;

/// Parts of the store that are read now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Due {
    pub(super) events: bool,
    pub(super) records: bool,
    pub(super) signals: bool,
}

#[derive(Debug, Default)]
pub(super) struct ChangeDetector {
    rounds: u64,
    /// `None`: nothing was read, or the positions are unknown.
    read_positions: Option<ReadPositions>,
    /// Rules determine how far back rejections are read.
    revision: i64,
    records_until: i64,
    signals_until: i64,
}

impl ChangeDetector {
    /// Decides which parts to read, from the positions and the revision of the rules.
    pub(super) fn due(&mut self, marks: Option<ReadPositions>, revision: i64, now: i64) -> Due {
        self.rounds += 1;
        let has_new_rules = std::mem::replace(&mut self.revision, revision) != revision;
        let Some((marks, seen)) = marks.zip(self.read_positions) else {
            let is_record_round = self.rounds % RECORDS_EVERY == 1;
            return Due {
                events: true,
                records: is_record_round || marks.is_some(),
                signals: is_record_round || marks.is_some(),
            };
        };
        if marks.records != seen.records {
            self.records_until = now + WRITTEN_WITHIN_MS;
        }
        if marks.signals != seen.signals {
            self.signals_until = now + SIGNALLED_WITHIN_MS;
        }
        Due {
            events: marks.events != seen.events,
            records: has_new_rules || now <= self.records_until,
            signals: has_new_rules || now <= self.signals_until,
        }
    }

    /// Records that everything due was read.
    pub(super) const fn read(&mut self, marks: Option<ReadPositions>) {
        self.read_positions = marks;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUIET: Due = Due {
        events: false,
        records: false,
        signals: false,
    };

    fn marks(events: i64, records: i64, signals: i64) -> Option<ReadPositions> {
        Some(ReadPositions {
            revision: None,
            events,
            records: (records, 0),
            signals,
        })
    }

    #[test]
    fn only_new_records_are_read_and_each_once() {
        // Detects rows that are read every second without a change, and changes that are read late or never.
        let mut detector = ChangeDetector::default();
        assert!(detector.due(marks(1, 1, 1), 1, 0).events);
        detector.read(marks(1, 1, 1));
        for now in (1_000..60_000).step_by(1_000) {
            assert_eq!(detector.due(marks(1, 1, 1), 1, now), QUIET, "{now}");
            detector.read(marks(1, 1, 1));
        }
        assert_eq!(
            detector.due(marks(2, 1, 1), 1, 60_000),
            Due {
                events: true,
                ..QUIET
            }
        );
        detector.read(marks(2, 1, 1));
        assert_eq!(
            detector.due(marks(2, 2, 1), 1, 61_000),
            Due {
                records: true,
                ..QUIET
            }
        );
        detector.read(marks(2, 2, 1));
        assert!(detector.due(marks(2, 2, 1), 1, 64_000).records);
        assert_eq!(detector.due(marks(2, 2, 1), 1, 65_000), QUIET);
        assert_eq!(
            detector.due(marks(2, 2, 2), 1, 66_000),
            Due {
                signals: true,
                ..QUIET
            }
        );
        detector.read(marks(2, 2, 2));
        assert!(detector.due(marks(2, 2, 2), 1, 69_000).signals);
        assert_eq!(detector.due(marks(2, 2, 2), 1, 70_000), QUIET);
        assert!(
            detector.due(marks(2, 2, 2), 2, 83_000).signals,
            "a rule looks further back now"
        );
    }

    #[test]
    fn everything_is_read_without_positions_or_after_a_failure() {
        // Detects changes missed while the store did not answer.
        let mut detector = ChangeDetector::default();
        let due: Vec<bool> = (0..6).map(|now| detector.due(None, 1, now).records).collect();
        assert_eq!(due, [true, false, false, true, false, false]);
        assert!(detector.due(None, 1, 9).events);
        // Positions advance only after a successful read.
        let mut detector = ChangeDetector::default();
        assert!(detector.due(marks(1, 1, 1), 1, 0).records && detector.due(marks(1, 1, 1), 1, 1).records);
    }
}
