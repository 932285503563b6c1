//! The table of traps is accurate: each of the 38 has a row, and each test that it names exists.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// The text of every Rust file below a folder.
fn sources(folder: &Path, into: &mut String) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|it| it == "rs") {
            into.push_str(&std::fs::read_to_string(path).unwrap());
        }
    }
}

/// Names of several words between backticks.
fn named(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split('`').skip(1).step_by(2);
    words.filter(|word| {
        word.matches('_').count() >= 3
            && word
                .chars()
                .all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '_')
    })
}

#[test]
fn the_table_of_traps_has_38_rows_and_names_tests_that_exist() {
    // Names are looked for as functions and as arguments of the macros that run a test on several stores.
    let table = std::fs::read_to_string(root().join("docs/lease-traps.md")).unwrap();
    let mut code = String::new();
    for folder in [
        "server/tests/it",
        "server/client/src",
        "server/lease/src",
        "app/domain/src",
    ] {
        sources(&root().join(folder), &mut code);
    }
    let exists = |name: &str| {
        let macro_call = ["on_stores!(", "on_both_stores!(", "on_every_store!("]
            .iter()
            .flat_map(|call| code.split(call).skip(1))
            .any(|rest| {
                rest.trim_start()
                    .strip_prefix(name)
                    .is_some_and(|rest| rest.starts_with(','))
            });
        macro_call || code.contains(&format!("fn {name}("))
    };
    let missing: Vec<&str> = named(&table).filter(|name| !exists(name)).collect();
    assert!(missing.is_empty(), "docs/lease-traps.md names {missing:?}");
    assert!(named(&table).count() > 40);
    let rows: BTreeSet<u32> = table
        .lines()
        .filter_map(|line| line.strip_prefix("| "))
        .filter_map(|row| row.split('|').next())
        .flat_map(|cell| {
            cell.split([',', '·', ' '])
                .filter_map(|word| word.parse().ok())
                .collect::<Vec<u32>>()
        })
        .collect();
    let missing: Vec<u32> = (1..=38).filter(|trap| !rows.contains(trap)).collect();
    assert!(
        missing.is_empty(),
        "docs/lease-traps.md has no row for {missing:?}"
    );
}
