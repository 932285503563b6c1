//! Names of files and types: a file is named by the noun of what it owns, and a type has one meaning in its crate.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::rust_files;

/// Adverbs, participles and pronouns, which name nothing.
const FILE_NAMES: [&str; 30] = [
    "told", "tell", "seen", "asked", "ask", "wanted", "alone", "standing", "lately", "whole", "past", "kept",
    "keeper", "mend", "anew", "whoever", "somebody", "who", "look", "lines", "stage", "world", "rig", "home",
    "desk", "given", "taken", "made", "gone", "beside",
];

/// A function is a verb and an object, a constructor `new`, `from_x` or `parse`.
const FUNCTIONS: [&str; 13] = [
    "of", "told", "tell", "settle", "look", "tend", "note", "say", "said", "hear", "ask", "asked", "kick",
];

/// Words in names of functions, tests and constants for which there is a term of the field.
const DIALECT_WORDS: [&str; 10] = [
    "told", "whoever", "somebody", "nobody", "anybody", "anew", "beside", "stands", "mend", "lately",
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

/// What each command parses is named alike.
const SHARED: [(&str, &str); 1] = [("leasehold", "Args")];

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
fn functions_and_constants_have_names_of_the_field() {
    let mut files = Vec::new();
    for folder in ["app", "server"] {
        rust_files(&root().join(folder), &mut files);
    }
    let mut found = Vec::new();
    for file in files.iter().filter(|file| !file.ends_with("tidy/prose.rs")) {
        let text = std::fs::read_to_string(file).unwrap();
        let names = text
            .lines()
            .filter_map(|line| declared_function(line).or_else(|| declared_constant(line)))
            .filter(|name| is_dialect(name));
        found.extend(names.map(|name| format!("{}: {name}", file.display())));
    }
    assert!(
        found.is_empty(),
        "docs/glossary.md has other words:\n{}",
        found.join("\n")
    );
}

#[test]
fn dialect_is_found_in_names_of_functions_and_constants() {
    let declared = |line| declared_function(line).or_else(|| declared_constant(line));
    let name = |line| declared(line).filter(|name| is_dialect(name));
    assert_eq!(name("    pub(super) async fn tell(&self) {"), Some("tell"));
    assert_eq!(name("fn an_owner_is_told_why() {"), Some("an_owner_is_told_why"));
    assert_eq!(name("pub const fn of<T>(it: T) -> Self {"), Some("of"));
    assert_eq!(name("fn recommend_amendments(&self) {"), None);
    assert_eq!(name("let f = |told| told;"), None);
    assert_eq!(name("const LOGIN_MEND: &str = \"\";"), Some("LOGIN_MEND"));
    assert_eq!(name("    pub(super) static ANEW: Mutex<u8> ="), Some("ANEW"));
    assert_eq!(name("pub const AMENDMENTS_MAX: usize = 3;"), None);
}

fn is_dialect(name: &str) -> bool {
    let name = name.to_lowercase();
    FUNCTIONS.contains(&name.as_str()) || name.split('_').any(|word| DIALECT_WORDS.contains(&word))
}

/// The constant or static that this line declares.
fn declared_constant(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace().skip_while(|word| word.starts_with("pub"));
    let kind = words.next()?;
    let name = words.next()?.strip_suffix(':')?;
    ["const", "static"].contains(&kind).then_some(name)
}

/// The function that this line declares.
fn declared_function(line: &str) -> Option<&str> {
    let (before, rest) = line.split_once("fn ")?;
    let is_declaration = before.split_whitespace().all(|word| {
        ["const", "async", "unsafe", "extern"].contains(&word)
            || word.starts_with("pub")
            || word.ends_with(')')
    });
    let name = rest.split(['(', '<']).next()?;
    (is_declaration && !before.contains("//")).then_some(name)
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
