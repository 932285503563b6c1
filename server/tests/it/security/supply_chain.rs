//! What comes from others, held to deny.toml: licences, crates that are not wanted, sources; and no unsafe code of ours.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn toml(file: &str) -> toml::Table {
    std::fs::read_to_string(root().join(file))
        .unwrap()
        .parse()
        .unwrap()
}

/// Every crate that is compiled for the server, as cargo knows it.
fn packages() -> Vec<Value> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked", "--offline"])
        .args(["--filter-platform", "x86_64-unknown-linux-gnu"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    metadata["packages"].as_array().unwrap().clone()
}

fn texts<'a>(table: &'a toml::Table, section: &str, key: &str) -> Vec<&'a str> {
    let list = table[section][key].as_array().unwrap();
    list.iter()
        .map(|item| item.as_str().or_else(|| item["name"].as_str()).unwrap())
        .collect()
}

/// Whether an SPDX expression can be kept with these licences: `OR` binds weaker than `AND`.
fn is_kept(expression: &str, allowed: &[&str]) -> bool {
    let either = expression.replace(" / ", " OR ").replace('/', " OR ");
    split(&either, " OR ").into_iter().any(|all| {
        split(all, " AND ").into_iter().all(|one| {
            let one = one.trim();
            match one.strip_prefix('(').and_then(|one| one.strip_suffix(')')) {
                Some(inner) => is_kept(inner, allowed),
                None => allowed.contains(&one),
            }
        })
    })
}

/// At this word, where no bracket is open.
fn split<'a>(text: &'a str, word: &str) -> Vec<&'a str> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0);
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ if depth == 0 && at >= start && text[at..].starts_with(word) => {
                parts.push(&text[start..at]);
                start = at + word.len();
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

#[test]
fn every_crate_has_an_allowed_licence_and_source() {
    // By cargo's own metadata and the lists of deny.toml; first that the reader of expressions reads them right.
    let mit = ["MIT", "Unicode-3.0"];
    assert!(is_kept("(MIT OR Apache-2.0) AND Unicode-3.0", &mit) && is_kept("GPL-3.0/MIT", &mit));
    assert!(!is_kept("MIT AND GPL-3.0", &mit) && !is_kept("(GPL-3.0 OR LGPL-3.0) AND MIT", &mit));
    let deny = toml("deny.toml");
    let (allowed, banned) = (texts(&deny, "licenses", "allow"), texts(&deny, "bans", "deny"));
    let registries = texts(&deny, "sources", "allow-registry");
    let packages = packages();
    assert!(packages.len() > 300, "{}", packages.len());
    for package in &packages {
        let name = package["name"].as_str().unwrap();
        let licence = package["license"].as_str().unwrap_or_default();
        assert!(is_kept(licence, &allowed), "{name} has the licence {licence:?}");
        assert!(!banned.contains(&name), "{name} is not wanted: see deny.toml");
        // Our own have none.
        if let Some(source) = package["source"].as_str() {
            let registry = source.strip_prefix("registry+").unwrap_or(source);
            assert!(registries.contains(&registry), "{name} comes from {source}");
        }
    }
    let tls = packages
        .iter()
        .filter(|package| package["name"] == "rustls")
        .count();
    assert_eq!(tls, 1, "one TLS library");
}

#[test]
fn unsafe_code_is_denied_everywhere() {
    // The workspace denies it, every member takes the workspace's lints, and nowhere is it excepted.
    let workspace = toml("Cargo.toml");
    assert_eq!(
        workspace["workspace"]["lints"]["rust"]["unsafe_code"].as_str(),
        Some("deny")
    );
    for member in workspace["workspace"]["members"].as_array().unwrap() {
        let manifest = toml(&format!("{}/Cargo.toml", member.as_str().unwrap()));
        assert_eq!(manifest["lints"]["workspace"].as_bool(), Some(true), "{member}");
    }
    let found = Command::new("grep")
        .args([
            "-rlE",
            "(allow|expect)\\((.*, *)?unsafe_code",
            "app",
            "server",
            "--include=*.rs",
        ])
        .current_dir(root())
        .output()
        .unwrap();
    let found = String::from_utf8(found.stdout).unwrap();
    let others: Vec<&str> = found
        .lines()
        .filter(|line| !line.ends_with("security/supply_chain.rs"))
        .collect();
    assert!(others.is_empty(), "{others:?}");
}

#[test]
fn every_build_step_is_locked() {
    // Each call of cargo that builds, runs or installs what is shipped, in the Makefile and its scripts.
    let files = [
        "Makefile",
        "scripts/site",
        "scripts/lib/common.sh",
        "scripts/setup.d/build.sh",
        "scripts/setup.d/test.sh",
    ];
    let mut steps = 0;
    for file in files {
        let text = std::fs::read_to_string(root().join(file)).unwrap();
        for line in text.lines().filter(|line| !line.trim_start().starts_with('#')) {
            let is_step = [
                "cargo build",
                "cargo install --",
                "cargo install wasm",
                "cargo install cargo-",
                "$way\" build",
            ];
            // The second attempt, which setup announces: a registry can lack a crate of the tool's lock file.
            if line.contains("quietly \"cargo install $*\"") {
                continue;
            }
            if is_step.iter().any(|words| line.contains(words)) {
                assert!(line.contains("--locked"), "{file}: {line}");
                steps += 1;
            }
        }
    }
    assert!(steps >= 5, "{steps}");
}
