//! The true state of one system, as the driver recorded it, and the lock names that it uses.

use std::collections::{BTreeMap, BTreeSet};

use domain::escape;

use super::rng::Dice;

/// Identity of a lock in the list: backend, source, resource as its text.
pub(super) type LockPlace = (&'static str, String, String);

/// The holder, and its fencing token where the system has one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Holder {
    pub(super) owner: String,
    pub(super) token: Option<String>,
}

pub(super) type Locks = BTreeMap<LockPlace, Holder>;

/// Names are few, so that they are taken, freed and taken again; and some are hostile.
pub(super) fn names(count: usize) -> Vec<String> {
    let odd = [
        "ü:Größe",
        "a b\tc",
        "100%",
        "quote'\"",
        "back\\slash",
        "../..",
        "emoji:🔒",
        "<script>",
        "?q=1&x",
        "\\xff",
    ];
    let plain = (0..count).map(|index| {
        format!(
            "tenant_{}:{}/{index}",
            index % 7,
            ["job", "close", "sync"][index % 3]
        )
    });
    plain.chain(odd.map(str::to_owned)).collect()
}

pub(super) fn owner(dice: &mut Dice) -> String {
    format!(
        "{}-{}",
        dice.pick(&["worker", "billing-api", "exporter"]),
        dice.below(9)
    )
}

pub(super) fn text(name: &[u8]) -> String {
    escape::text(name).into_owned()
}

/// The differences, one line each; empty when both are equal.
pub(super) fn differences(truth: &Locks, shown: &Locks) -> Vec<String> {
    let places: BTreeSet<&LockPlace> = truth.keys().chain(shown.keys()).collect();
    let differs = |place: &&LockPlace| match (truth.get(*place), shown.get(*place)) {
        (None, Some(ghost)) => Some(format!("ghost {place:?}: {ghost:?}")),
        (Some(holder), None) => Some(format!("missing {place:?}: {holder:?}")),
        (truth, shown) if truth != shown => Some(format!("other {place:?}: is {truth:?}, shown {shown:?}")),
        _ => None,
    };
    places.iter().filter_map(differs).collect()
}

#[test]
fn extra_missing_and_changed_locks_are_differences() {
    // The comparison must not be blind: three locks, each wrong in its own way, and one that is right.
    let lock = |name: &str, owner: &str| {
        (
            ("b", "key".to_owned(), name.to_owned()),
            Holder {
                owner: owner.to_owned(),
                token: None,
            },
        )
    };
    let truth = Locks::from([lock("missing", "a"), lock("other", "a"), lock("same", "a")]);
    let shown = Locks::from([lock("ghost", "a"), lock("other", "b"), lock("same", "a")]);
    let words: Vec<String> = differences(&truth, &shown)
        .iter()
        .map(|line| line.split(' ').next().unwrap().to_owned())
        .collect();
    assert_eq!(words, ["ghost", "missing", "other"]);
    assert!(differences(&truth, &truth).is_empty());
}
