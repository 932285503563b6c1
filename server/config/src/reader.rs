//! Reads keys out of the tree: each key is requested once, with its rule. Errors are collected and reading
//! continues, so that all are reported together; keys that were not requested are unknown.

mod table;

use std::cell::RefCell;
use std::collections::BTreeSet;

use super::error::{ConfigError, ConfigErrors, nearest};
use super::provenance::Origin;
use super::report::Entry;
use super::value_tree::Table;

pub(super) use table::Section;

/// Errors, entries and known keys collected so far.
#[derive(Default)]
pub(super) struct Reader(RefCell<Notes>);

#[derive(Default)]
struct Notes {
    errors: Vec<ConfigError>,
    entries: Vec<Entry>,
    /// Keys without names and positions: `backend.poll_interval`.
    known: BTreeSet<String>,
    unknown: Vec<Unknown>,
}

struct Unknown {
    key: String,
    /// `backend.orders-db`; empty for the top level.
    path: String,
    origin: Origin,
    siblings: Vec<&'static str>,
}

/// The result of reading.
pub(super) struct Read {
    pub(super) entries: Vec<Entry>,
    pub(super) known: BTreeSet<String>,
    pub(super) errors: ConfigErrors,
}

impl Reader {
    pub(super) fn root<'t>(&'t self, tree: &'t Table) -> Section<'t> {
        Section::root(self, tree)
    }

    pub(super) fn finish(self) -> Read {
        let Notes {
            mut errors,
            entries,
            known,
            unknown,
        } = self.0.into_inner();
        errors.extend(unknown.iter().map(|unknown| unknown.explain(&known)));
        // In the order of the file, then of the environment; errors without a place come first.
        errors.sort_by(|a, b| a.origin.cmp(&b.origin));
        Read {
            entries,
            known,
            errors: ConfigErrors(errors),
        }
    }
}

impl Unknown {
    fn explain(&self, known: &BTreeSet<String>) -> ConfigError {
        let suggestion = nearest(&self.key, self.siblings.iter().copied());
        let known_path = known
            .iter()
            .find(|path| path.rsplit('.').next() == Some(self.key.as_str()));
        let remedy = match (suggestion, known_path) {
            (Some(suggestion), _) => format!("Did you mean {}?", self.written(suggestion)),
            (None, Some(path)) => match path.rsplit_once('.') {
                Some((table, _)) => format!("It belongs to [{table}]."),
                None => "It belongs to the top level, above the first [table].".to_owned(),
            },
            (None, None) => format!("Known keys here: {}.", self.siblings.join(", ")),
        };
        ConfigError {
            key: join(&self.path, &self.key),
            origin: self.origin.clone(),
            message: "there is no such key here".to_owned(),
            remedy,
        }
    }

    /// The form the user wrote: as a key or as a variable.
    fn written(&self, key: &str) -> String {
        match &self.origin {
            Origin::Environment { name } => match name.rsplit_once("__") {
                Some((path, _)) => format!("{path}__{}", key.to_ascii_uppercase()),
                None => format!("{}{}", super::environment::PREFIX, key.to_ascii_uppercase()),
            },
            _ => format!("`{key}`"),
        }
    }
}

fn join(path: &str, key: &str) -> String {
    match (path, key) {
        ("", key) => key.to_owned(),
        (path, "") => path.to_owned(),
        (path, key) => format!("{path}.{key}"),
    }
}
