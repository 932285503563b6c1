//! Names of files and types: a file is named by the noun of what it owns, and a type has one meaning in its crate.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::rust_files;

/// Adverbs, participles and pronouns, which name nothing.
const FILE_NAMES: [&str; 14] = [
    "told", "seen", "asked", "wanted", "alone", "standing", "lately", "whole", "past", "kept", "mend",
    "anew", "whoever", "somebody",
];

/// Crate and folder of its sources.
const CRATES: [(&str, &str); 12] = [
    ("app", "app/src"),
    ("domain", "app/domain/src"),
    ("leasehold", "server/src"),
    ("backends", "server/backends/src"),
    ("bench", "server/bench/src"),
    ("client", "server/client/src"),
    ("config", "server/config/src"),
    ("demo", "server/demo/src"),
    ("inventory", "server/inventory/src"),
    ("lease", "server/lease/src"),
    ("runtime", "server/runtime/src"),
    ("testkit", "server/testkit/src"),
];

/// Public types that share their name with another one of their crate. No new one is added; `Args` is what each command parses.
const SHARED: [(&str, &str); 16] = [
    ("app", "Typed"),
    ("domain", "Condition"),
    ("domain", "Outcome"),
    ("domain", "Refused"),
    ("domain", "Scope"),
    ("domain", "Step"),
    ("domain", "Tick"),
    ("domain", "Waiter"),
    ("lease", "LeaseChange"),
    ("leasehold", "Args"),
    ("leasehold", "Guard"),
    ("leasehold", "Problem"),
    ("leasehold", "SessionDto"),
    ("leasehold", "Subject"),
    ("leasehold", "UserDto"),
    ("leasehold", "WaiterDto"),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

#[test]
fn files_are_named_by_nouns() {
    let mut files = Vec::new();
    for folder in ["app", "server"] {
        rust_files(&root().join(folder), &mut files);
    }
    let is_bad = |file: &&PathBuf| {
        let stem = file.file_stem().and_then(|stem| stem.to_str());
        stem.is_some_and(|stem| FILE_NAMES.contains(&stem))
    };
    let found: Vec<&PathBuf> = files.iter().filter(is_bad).collect();
    assert!(found.is_empty(), "files named by no noun: {found:#?}");
}

#[test]
fn no_two_public_types_of_a_crate_share_a_name() {
    let mut shared = BTreeSet::new();
    for (name, folder) in CRATES {
        let mut files = Vec::new();
        rust_files(&root().join(folder), &mut files);
        assert!(!files.is_empty(), "{folder}");
        let mut places: BTreeMap<String, usize> = BTreeMap::new();
        for file in files {
            let text = std::fs::read_to_string(&file).unwrap();
            for found in text.lines().filter_map(public_type) {
                *places.entry(found.to_owned()).or_default() += 1;
            }
        }
        let twice = places.into_iter().filter(|(_, count)| *count > 1);
        shared.extend(twice.map(|(found, _)| (name, found)));
    }
    let known: BTreeSet<(&str, String)> = SHARED
        .iter()
        .map(|(name, found)| (*name, (*found).to_owned()))
        .collect();
    let new: Vec<_> = shared.difference(&known).collect();
    assert!(new.is_empty(), "two public types of one name: {new:?}");
    let gone: Vec<_> = known.difference(&shared).collect();
    assert!(gone.is_empty(), "these share no name any more: {gone:?}");
}

/// The public type that this line declares, outside of functions and nested modules.
fn public_type(line: &str) -> Option<&str> {
    let declared = line.strip_prefix("pub ")?;
    let kinds = ["struct ", "enum ", "trait ", "type ", "union "];
    let name = kinds.iter().find_map(|kind| declared.strip_prefix(kind))?;
    name.split(|c: char| !c.is_alphanumeric() && c != '_').next()
}
