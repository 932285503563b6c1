//! Environment variables as a layer over the file: `LEASEHOLD_LISTEN`, nested keys with `__`, backends by name.
//!
//! The only reader of the environment. Values are parsed by the typed readers.

use std::collections::BTreeMap;
use std::ffi::OsStr;

use super::error::{ConfigError, ConfigErrors};
use super::provenance::Origin;
use super::value_tree::{Node, Table, Value};

pub(super) const PREFIX: &str = "LEASEHOLD_";
/// Used by the command line and by scripts/setup, or set by `leasehold run` for its command, which may be `leasehold` too.
/// Not part of the configuration.
const FOR_COMMANDS: [&str; 9] = [
    "LEASEHOLD_CONFIG",
    "LEASEHOLD_SERVER",
    "LEASEHOLD_TOKEN",
    "LEASEHOLD_CACHE",
    "LEASEHOLD_SERVERS_OPTIONAL",
    "LEASEHOLD_WASM",
    "LEASEHOLD_RESOURCE",
    "LEASEHOLD_LEASE_ID",
    "LEASEHOLD_FENCING_TOKEN",
];

/// Variables of the process with our prefix. An empty one counts as unset, because compose files set `X=${X:-}`.
///
/// # Errors
/// Names a variable whose value is not UTF-8.
pub(super) fn read_process() -> Result<BTreeMap<String, String>, ConfigErrors> {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the one reader of the environment"
    )]
    let variables = std::env::vars_os();
    let mut own_variables = BTreeMap::new();
    for (name, value) in variables {
        let Some(name) = name.to_str().filter(|name| name.starts_with(PREFIX)) else {
            continue;
        };
        let Some(value) = value.to_str() else {
            return Err(ConfigError {
                key: String::new(),
                origin: Origin::Environment {
                    name: name.to_owned(),
                },
                message: "the value is not UTF-8".to_owned(),
                remedy: "Set it to UTF-8 text, or put the value into a file and set the `…_file` key."
                    .to_owned(),
            }
            .into());
        };
        own_variables.insert(name.to_owned(), value.to_owned());
    }
    Ok(own_variables)
}

/// Whether the process has this variable, without a value.
pub fn is_empty_variable(name: &OsStr) -> bool {
    std::env::var_os(name).is_some_and(|value| value.is_empty())
}

/// Applies variables to the tree. Unknown keys are added too, so that the reader reports them.
pub(super) fn overlay(tree: &mut Table, variables: &BTreeMap<String, String>) {
    for (name, value) in variables {
        let Some(rest) = name.strip_prefix(PREFIX) else {
            continue;
        };
        if value.is_empty() || FOR_COMMANDS.contains(&name.as_str()) || is_service_link(rest) {
            continue;
        }
        let origin = Origin::Environment { name: name.clone() };
        let node = Node::untyped(value, origin.clone());
        match rest.strip_prefix("BACKEND__") {
            Some(rest) => set_backend(tree, rest, node, &origin),
            None => {
                let path: Vec<String> = rest.split("__").map(str::to_ascii_lowercase).collect();
                set(tree, &path, node, &origin);
            }
        }
    }
}

/// Kubernetes sets `LEASEHOLD_SERVICE_HOST`, `LEASEHOLD_PORT_3000_TCP` and similar in every pod next to a service
/// called `leasehold` or `leasehold-db`; no configuration key has that form.
fn is_service_link(rest: &str) -> bool {
    let words: Vec<&str> = rest.split('_').collect();
    let host = words.ends_with(&["SERVICE", "HOST"]);
    let port = words.iter().position(|word| *word == "PORT");
    host || port.is_some_and(|at| {
        let tail = &words[at + 1..];
        tail.is_empty()
            || (at > 0 && words[at - 1] == "SERVICE")
            || (tail.len() >= 2 && tail[0].parse::<u16>().is_ok())
    })
}

/// `ORDERS_DB__URL`: backend names have no `_`, so it means `-`. The longest matching backend name wins.
fn set_backend(tree: &mut Table, rest: &str, node: Node, origin: &Origin) {
    let list = tree.entry("backend".to_owned()).or_insert_with(|| Node {
        value: Value::List(Vec::new()),
        origin: origin.clone(),
    });
    // Not a list: the reader reports it with its line.
    let Value::List(backends) = &mut list.value else {
        return;
    };
    let configured = backends
        .iter()
        .enumerate()
        .filter_map(|(at, backend)| {
            let name = backend.table()?.get("name")?.text()?;
            let key = rest.strip_prefix(&variable_of(name))?.strip_prefix("__")?;
            Some((name.len(), at, key.to_owned()))
        })
        .max();
    let (at, key) = match configured {
        Some((_, at, key)) => (at, key),
        None => {
            let (name, key) = rest.split_once("__").unwrap_or((rest, ""));
            let name = Node {
                value: Value::Text(name_of(name)),
                origin: origin.clone(),
            };
            let table = Table::from([("name".to_owned(), name)]);
            backends.push(Node {
                value: Value::Table(table),
                origin: origin.clone(),
            });
            (backends.len() - 1, key.to_owned())
        }
    };
    if let Value::Table(table) = &mut backends[at].value
        && !key.is_empty()
    {
        let path: Vec<String> = key.split("__").map(str::to_ascii_lowercase).collect();
        set(table, &path, node, origin);
    }
}

fn variable_of(name: &str) -> String {
    name.to_ascii_uppercase().replace('-', "_")
}

fn name_of(variable: &str) -> String {
    variable.to_ascii_lowercase().replace('_', "-")
}

/// Sets a value at a path; replaces an existing value and the other one of `key` and `key_file`.
pub(super) fn set(tree: &mut Table, path: &[String], node: Node, origin: &Origin) {
    match path {
        [] => {}
        [key] => {
            let other_key = key
                .strip_suffix("_file")
                .map_or_else(|| format!("{key}_file"), str::to_owned);
            if tree
                .get(&other_key)
                .is_some_and(|other| other.origin.layer() < origin.layer())
            {
                tree.remove(&other_key);
            }
            tree.insert(key.clone(), node);
        }
        [key, rest @ ..] => {
            let empty = || Node {
                value: Value::Table(Table::new()),
                origin: origin.clone(),
            };
            let inner = tree.entry(key.clone()).or_insert_with(empty);
            if inner.table().is_none() {
                *inner = empty();
            }
            if let Value::Table(table) = &mut inner.value {
                set(table, rest, node, origin);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kubernetes_service_variables_are_ignored() {
        // Names that kubelet sets for services `leasehold` and `leasehold-db`, and real keys.
        for name in [
            "SERVICE_HOST",
            "SERVICE_PORT",
            "SERVICE_PORT_HTTP",
            "PORT",
            "PORT_3000_TCP",
            "PORT_3000_TCP_ADDR",
            "DB_SERVICE_HOST",
            "DB_PORT_5432_TCP_PROTO",
        ] {
            assert!(is_service_link(name), "{name}");
        }
        for name in [
            "LISTEN",
            "LEASE__MAX_TTL",
            "BACKEND__A__URL",
            "PUBLIC_URL",
            "STORE_FILE",
        ] {
            assert!(!is_service_link(name), "{name}");
        }
    }
}
