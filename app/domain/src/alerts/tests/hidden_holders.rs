//! Readings that do not identify the holder of a lock.

use super::state_machine::{result, rule};
use crate::alerts::evaluate::{EvaluationResult, round};

#[test]
fn a_hidden_holder_keeps_the_alert_of_its_lock() {
    // An ACL hides the holder for a while; then the same holder is read, and then another one.
    let rules = [rule("orphaned")];
    let read = |holding: &str, owner: Option<&str>| EvaluationResult {
        owner: owner.map(str::to_owned),
        holding: holding.to_owned(),
        ..result(0, "a", "w1")
    };
    let first = vec![read("t1", Some("w1"))];
    let mut active = round(&rules, Vec::new(), first, &|_, _| false, 0).active;
    for (now, found) in [(1_000, read("", None)), (2_000, read("t1", Some("w1")))] {
        let outcome = round(&rules, active, vec![found], &|_, _| false, now);
        assert_eq!((outcome.over.len(), outcome.changed.len()), (0, 0), "at {now}");
        active = outcome.active;
        assert_eq!(active[0].owner.as_deref(), Some("w1"));
    }
    let other = vec![read("t2", Some("w2"))];
    let outcome = round(&rules, active, other, &|_, _| false, 3_000);
    assert_eq!((outcome.over.len(), outcome.active.len()), (1, 1));
}
