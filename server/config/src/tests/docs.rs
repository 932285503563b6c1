//! Documentation tests: every example loads, and exactly the existing keys are described.

use std::collections::{BTreeMap, BTreeSet};

use super::super::{Loaded, Origin};
use super::load_report;
use crate::postgres::LeaseTablePreset;

const REFERENCE: &str = include_str!("../../../../docs/configuration.md");
const EXAMPLE: &str = include_str!("../../../../docs/leasehold.example.toml");
const RECIPES: &str = include_str!("../../../../docs/recipes.md");
const POSTGRES: &str = include_str!("../../../../docs/backends/postgres.md");
/// What the last column of a recipe may say.
const BASES: [&str; 3] = ["library", "tested", "read"];
/// Folder of files in the examples.
const FOLDER: &str = "/etc/leasehold/";
/// Folder of written files in the examples.
const WRITTEN: &str = "/var/log/leasehold/";

/// Loads an example; each path under [`FOLDER`] is created in a temporary folder.
fn load_example(text: &str, variables: &[(&str, &str)]) -> Loaded {
    let folder = tempfile::tempdir().unwrap();
    let root = format!("{}/", folder.path().display());
    for rest in text.split(FOLDER).skip(1) {
        let name = rest.split('"').next().unwrap();
        let secret = if name.contains("url") {
            "postgres://leasehold_unlock@db/orders"
        } else if name.contains("secret_key") {
            "0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1f0"
        } else {
            "secret"
        };
        std::fs::write(folder.path().join(name), secret).unwrap();
    }
    load_report(&text.replace(FOLDER, &root).replace(WRITTEN, &root), variables)
}

/// The fenced code blocks of one language in the reference.
fn blocks(language: &str) -> Vec<&'static str> {
    blocks_of(REFERENCE, language)
}

fn blocks_of(page: &'static str, language: &str) -> Vec<&'static str> {
    let fence = format!("```{language}\n");
    page.split(&fence)
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap())
        .collect()
}

/// Rows of the reference by key, with the table name as prefix (`lease`, `backend.lease_table`, empty for the top
/// level).
fn rows() -> BTreeMap<String, &'static str> {
    let mut table = None;
    let mut rows = BTreeMap::new();
    for line in REFERENCE.lines() {
        if let Some(heading) = line.strip_prefix('#') {
            let name = heading
                .split('`')
                .nth(1)
                .map(|name| name.trim_matches(['[', ']']));
            table = if heading.contains("Top level") {
                Some("")
            } else {
                name
            };
        } else if let (Some(rest), Some(table)) = (line.strip_prefix("| `"), table) {
            let key = rest.split('`').next().unwrap();
            let path = if table.is_empty() {
                key.to_owned()
            } else {
                format!("{table}.{key}")
            };
            assert!(
                rows.insert(path.clone(), line).is_none(),
                "{path} is described twice"
            );
        }
    }
    rows
}

#[test]
fn every_example_loads() {
    // The example file and each `toml` block of the reference.
    let examples = blocks("toml");
    assert!(examples.len() >= 5);
    for example in examples.into_iter().chain([EXAMPLE]) {
        if let Err(errors) = load_example(example, &[]).config {
            panic!("{errors}\nin\n{example}");
        }
    }
}

#[test]
fn every_recipe_loads() {
    // Each configuration of the recipes and of the page of Postgres, whose parts belong to the backend before them.
    let recipes = blocks_of(RECIPES, "toml");
    assert!(recipes.len() >= 6);
    let postgres = blocks_of(POSTGRES, "toml");
    let backends = postgres
        .into_iter()
        .filter(|example| example.starts_with("[[backend]]"));
    for example in recipes.into_iter().chain(backends) {
        let example = example.replace("/run/secrets/", FOLDER);
        if let Err(errors) = load_example(&example, &[]).config {
            panic!("{errors}\nin\n{example}");
        }
    }
}

#[test]
fn every_recipe_says_what_its_facts_rest_on() {
    // A row of a library has five cells, the last of which is one of three words; presets have a row each.
    let rows: Vec<Vec<&str>> = RECIPES
        .lines()
        .filter(|line| line.starts_with("| ") && !line.starts_with("| Library"))
        .map(|line| line.trim_matches('|').split(" | ").map(str::trim).collect())
        .collect();
    assert!(rows.len() >= 40, "{} libraries", rows.len());
    for row in &rows {
        assert!(row.len() == 5 && BASES.contains(&row[4]), "{row:?}");
    }
    for preset in LeaseTablePreset::ALL.iter().skip(1) {
        let example = format!("preset = \"{}\"", preset.as_str());
        assert!(RECIPES.contains(&example), "no recipe for {example}");
    }
}

#[test]
fn every_documented_variable_loads() {
    // Each line of the `sh` blocks applied to the example file, without shell quotes.
    let lines: Vec<(&str, &str)> = blocks("sh")
        .iter()
        .flat_map(|block| block.lines())
        .map(|line| line.split_once('=').unwrap())
        .map(|(name, value)| (name, value.trim_matches('\'')))
        .collect();
    assert!(lines.len() >= 5);
    let loaded = load_example(EXAMPLE, &lines);
    assert_eq!(
        loaded.config.unwrap().backends.last().unwrap().name.as_str(),
        "batch"
    );
}

#[test]
fn exactly_the_keys_of_the_loader_are_documented() {
    // The example has every kind of backend, so the loader requests every key.
    let known = load_example(EXAMPLE, &[]).known;
    // Tables are headings, not rows.
    let headings = [
        "lease",
        "history",
        "notify",
        "telemetry",
        "backend",
        "tls",
        "proxy",
        "oidc",
        "identity",
    ]
    .map(str::to_owned);
    let known: BTreeSet<String> = known.into_iter().filter(|key| !headings.contains(key)).collect();
    let described: BTreeSet<String> = rows().into_keys().collect();
    assert_eq!(known, described);
}

#[test]
fn every_row_has_the_variable_and_the_default_of_its_key() {
    // Variables are derived from the path; defaults are those of minimal backends.
    let minimal = r#"
backend = [
  { name = "p", kind = "postgres", url = "postgres://h/d", lease_table = [{ table = "t" }] },
  { name = "r", kind = "redis", urls = ["redis://h"] },
  { name = "e", kind = "etcd", endpoints = ["http://h:2379"] },
  { name = "z", kind = "zookeeper", connect = "h:2181" },
  { name = "c", kind = "consul", url = "http://h:8500" },
]"#;
    let rows = rows();
    for (path, row) in &rows {
        let variable = match path.split('.').collect::<Vec<_>>().as_slice() {
            [key] => format!("`LEASEHOLD_{}`", key.to_ascii_uppercase()),
            ["backend", "name"] => continue,
            // A list has one variable.
            ["identity", _] => "`LEASEHOLD_IDENTITY`".to_owned(),
            ["backend", key] => format!("`LEASEHOLD_BACKEND__NAME__{}`", key.to_ascii_uppercase()),
            [table, key] => format!("`LEASEHOLD_{table}__{key}`").to_ascii_uppercase(),
            _ => continue,
        };
        assert!(row.contains(&variable), "{row}\nlacks {variable}");
    }
    let loaded = load_report(minimal, &[]);
    loaded.config.unwrap();
    let defaults = loaded
        .entries
        .iter()
        .filter(|entry| entry.origin == Origin::Default);
    let mut checked = 0;
    for entry in defaults {
        let path = entry
            .key
            .replace("backend.p.lease_table[0]", "backend.lease_table");
        let path = ["p", "r", "e", "z", "c"].iter().fold(path, |path, name| {
            path.replace(&format!("backend.{name}."), "backend.")
        });
        let row = rows[&path];
        // One key may have a default for each kind.
        let cell = row.split('|').nth(2).unwrap();
        assert!(
            cell.contains(&format!("`{}`", entry.value)),
            "{row}\nlacks {}",
            entry.value
        );
        checked += 1;
    }
    assert!(checked >= 20, "{checked}");
}
