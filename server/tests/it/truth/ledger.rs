//! What the driver knows to be true of one system, and the names that it uses.

use std::collections::{BTreeMap, BTreeSet};

use domain::escape;

use super::dice::Dice;

/// Where a lock stands in the list: backend, source, resource as its text.
pub(super) type Place = (&'static str, String, String);

/// Who holds it, and by which token where the system gives one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Holder {
    pub(super) owner: String,
    pub(super) token: Option<String>,
}

pub(super) type Locks = BTreeMap<Place, Holder>;

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

/// What differs, one line each; empty when nothing does.
pub(super) fn differences(truth: &Locks, shown: &Locks) -> Vec<String> {
    let places: BTreeSet<&Place> = truth.keys().chain(shown.keys()).collect();
    let differs = |place: &&Place| match (truth.get(*place), shown.get(*place)) {
        (None, Some(ghost)) => Some(format!("ghost {place:?}: {ghost:?}")),
        (Some(holder), None) => Some(format!("missing {place:?}: {holder:?}")),
        (truth, shown) if truth != shown => Some(format!("other {place:?}: is {truth:?}, shown {shown:?}")),
        _ => None,
    };
    places.iter().filter_map(differs).collect()
}

#[test]
fn a_ghost_a_missing_lock_and_another_owner_are_differences() {
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
