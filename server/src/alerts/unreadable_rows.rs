//! Reports stored rows that this version cannot read, each once: they are read again with each revision.

use std::collections::BTreeSet;

use parking_lot::Mutex;

/// Reported rows that are remembered; beyond that, all are reported again.
const REPORTED_MAX: usize = 1_000;

/// What was reported, by kind and id.
#[derive(Debug, Default)]
pub(super) struct UnreadableRows(Mutex<BTreeSet<(&'static str, String)>>);

impl UnreadableRows {
    pub(super) fn report(&self, kind: &'static str, id: &str) {
        if self.is_new(kind, id) {
            tracing::error!("this version cannot read {kind} in the store: {id}");
        }
    }

    fn is_new(&self, kind: &'static str, id: &str) -> bool {
        let mut reported = self.0.lock();
        if reported.len() >= REPORTED_MAX {
            reported.clear();
        }
        reported.insert((kind, id.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_unreadable_row_is_reported_once() {
        let rows = UnreadableRows::default();
        let reported = [
            ("a silence", "1"),
            ("a silence", "1"),
            ("an open alert", "1"),
            ("a silence", "2"),
        ];
        let reported = reported.map(|(kind, id)| rows.is_new(kind, id));
        assert_eq!(reported, [true, false, true, true]);
    }
}
