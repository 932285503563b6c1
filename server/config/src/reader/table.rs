//! One table of the configuration, and its typed accessors.

use std::collections::BTreeMap;

use super::{Reader, Unknown, join};
use crate::error::ConfigError;
use crate::limits::LIST_MAX;
use crate::provenance::Origin;
use crate::report::Entry;
use crate::value_parsers::{Parsed, Rule};
use crate::value_tree::{Node, Table, Value, display_value};

static EMPTY: Table = BTreeMap::new();

/// One table of the configuration.
pub(crate) struct Section<'t> {
    reader: &'t Reader,
    path: String,
    pattern: &'static str,
    table: &'t Table,
    pub(crate) origin: Origin,
    read_keys: Vec<&'static str>,
}

impl<'t> Section<'t> {
    /// The top level.
    pub(super) fn root(reader: &'t Reader, table: &'t Table) -> Self {
        Section {
            reader,
            path: String::new(),
            pattern: "",
            table,
            origin: Origin::Default,
            read_keys: Vec::new(),
        }
    }

    /// Errors and entries from here on have this path.
    pub(crate) fn rename(&mut self, path: String) {
        self.path = path;
    }

    /// Requests a key, which makes it known.
    pub(crate) fn node(&mut self, key: &'static str) -> Option<&'t Node> {
        self.read_keys.push(key);
        self.reader.0.borrow_mut().known.insert(join(self.pattern, key));
        self.table.get(key)
    }

    pub(crate) fn error_at(&self, key: &str, origin: &Origin, message: String, remedy: String) {
        let error = ConfigError {
            key: join(&self.path, key),
            origin: origin.clone(),
            message,
            remedy,
        };
        self.reader.0.borrow_mut().errors.push(error);
    }

    /// Adds an entry for `check-config`; `value` must not contain a secret.
    pub(crate) fn entry(&self, key: &str, value: String, origin: &Origin) {
        let entry = Entry {
            key: join(&self.path, key),
            value,
            origin: origin.clone(),
        };
        self.reader.0.borrow_mut().entries.push(entry);
    }

    pub(crate) fn report_missing(&self, key: &str, remedy: &str) {
        self.error_at(key, &self.origin, "is missing".to_owned(), remedy.to_owned());
    }

    pub(crate) fn optional<T>(&mut self, key: &'static str, rule: &Rule<'_, T>) -> Option<T> {
        let node = self.node(key)?;
        match (rule.take)(node) {
            Parsed::Valid(value) => {
                self.entry(key, (rule.show)(&value), &node.origin);
                return Some(value);
            }
            Parsed::WrongType => {
                let found = format!("found {}", node.describe(false));
                self.error_at(key, &node.origin, found, format!("Write {}.", rule.expected));
            }
            Parsed::Invalid(why) => {
                let found = format!("{} {why}", node.describe(false));
                self.error_at(key, &node.origin, found, format!("Write {}.", rule.expected));
            }
        }
        None
    }

    /// The default also replaces an invalid value: the error is recorded, and reading continues.
    pub(crate) fn or<T>(&mut self, key: &'static str, default: T, rule: &Rule<'_, T>) -> T {
        let absent = !self.table.contains_key(key);
        self.optional(key, rule).unwrap_or_else(|| {
            if absent {
                self.entry(key, (rule.show)(&default), &Origin::Default);
            }
            default
        })
    }

    pub(crate) fn required<T>(&mut self, key: &'static str, rule: &Rule<'_, T>) -> Option<T> {
        if !self.table.contains_key(key) {
            self.node(key);
            self.report_missing(key, &format!("Write {key} = {}.", rule.expected));
            return None;
        }
        self.optional(key, rule)
    }

    /// A list of strings; `default` if the key is absent. An empty list is an error: it would match nothing.
    pub(crate) fn list(
        &mut self,
        key: &'static str,
        default: Option<&[&str]>,
        expected: &str,
        validate: &dyn Fn(&str) -> Result<(), String>,
    ) -> Option<Vec<String>> {
        let Some(node) = self.node(key) else {
            let Some(default) = default else {
                self.report_missing(key, &format!("Write {expected}."));
                return None;
            };
            self.entry(key, format!("{default:?}"), &Origin::Default);
            return Some(default.iter().map(|text| (*text).to_owned()).collect());
        };
        let texts = self.texts(key, node, expected, false)?;
        let mut are_valid = true;
        for (text, origin) in &texts {
            if let Err(problem) = validate(text) {
                are_valid = false;
                self.error_at(
                    key,
                    origin,
                    format!("{} {problem}", display_value(text)),
                    format!("Write {expected}."),
                );
            }
        }
        let texts: Vec<String> = texts.into_iter().map(|(text, _)| text).collect();
        let seen: Vec<String> = texts.iter().map(|text| display_value(text)).collect();
        self.entry(key, format!("[{}]", seen.join(", ")), &node.origin);
        are_valid.then_some(texts)
    }

    /// The elements of a list of strings, each with its origin. In a variable: a TOML list, or strings separated by
    /// commas.
    pub(crate) fn texts(
        &self,
        key: &str,
        node: &Node,
        expected: &str,
        secret: bool,
    ) -> Option<Vec<(String, Origin)>> {
        let wrong = |found: String, origin: &Origin| {
            self.error_at(key, origin, found, format!("Write {expected}."));
            None
        };
        let texts: Vec<(String, Origin)> = match (node.list(), &node.value) {
            (Some(items), _) => {
                if let Some(item) = items.iter().find(|item| item.text().is_none()) {
                    return wrong(
                        format!("found {} in the list", item.describe(secret)),
                        &item.origin,
                    );
                }
                let parse = |item: &Node| item.text().map(|text| (text.to_owned(), item.origin.clone()));
                items.iter().filter_map(parse).collect()
            }
            (None, Value::Untyped { text, .. }) => {
                let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
                items.map(|item| (item.to_owned(), node.origin.clone())).collect()
            }
            _ => return wrong(format!("found {}", node.describe(secret)), &node.origin),
        };
        match texts.len() {
            0 => wrong("the list is empty".to_owned(), &node.origin),
            1..=LIST_MAX => Some(texts),
            _ => wrong(
                format!("the list has more than {LIST_MAX} elements"),
                &node.origin,
            ),
        }
    }

    /// The table of a key; an empty one if absent.
    pub(crate) fn section(&mut self, key: &'static str, pattern: &'static str) -> Section<'t> {
        let path = join(&self.path, key);
        let (table, origin) = match self.node(key) {
            None => (&EMPTY, Origin::Default),
            Some(node) => match node.table() {
                Some(table) => (table, node.origin.clone()),
                None => {
                    let found = format!("found {}", node.describe(false));
                    self.error_at(key, &node.origin, found, format!("Write a table: [{pattern}]."));
                    (&EMPTY, node.origin.clone())
                }
            },
        };
        Section {
            reader: self.reader,
            path,
            pattern,
            table,
            origin,
            read_keys: Vec::new(),
        }
    }

    /// The tables of an array of tables.
    pub(crate) fn sections(&mut self, key: &'static str, pattern: &'static str) -> Vec<Section<'t>> {
        let Some(node) = self.node(key) else {
            return Vec::new();
        };
        let items = node.list().unwrap_or_default();
        let wrong = match items.iter().find(|item| item.table().is_none()) {
            Some(item) => Some(item),
            None if node.list().is_none() => Some(node),
            None => None,
        };
        if let Some(wrong) = wrong {
            let found = format!("found {}", wrong.describe(false));
            let remedy = format!("Write tables in double brackets: [[{pattern}]].");
            self.error_at(key, &wrong.origin, found, remedy);
        }
        if items.len() > LIST_MAX {
            let message = format!("there are {} of them", items.len());
            self.error_at(key, &node.origin, message, format!("Write at most {LIST_MAX}."));
        }
        let tables = items.iter().take(LIST_MAX).enumerate();
        tables
            .filter_map(|(at, item)| {
                Some(Section {
                    reader: self.reader,
                    path: format!("{}[{at}]", join(&self.path, key)),
                    pattern,
                    table: item.table()?,
                    origin: item.origin.clone(),
                    read_keys: Vec::new(),
                })
            })
            .collect()
    }

    /// The strings of a table with these `keys`, each with its origin.
    pub(crate) fn strings(&mut self, keys: &[&'static str]) -> BTreeMap<String, (String, Origin)> {
        let mut strings = BTreeMap::new();
        for key in keys {
            let Some(node) = self.node(key) else { continue };
            match node.text() {
                Some(text) => {
                    self.entry(key, format!("{text:?}"), &node.origin);
                    strings.insert((*key).to_owned(), (text.to_owned(), node.origin.clone()));
                }
                None => {
                    let found = format!("found {}", node.describe(false));
                    self.error_at(key, &node.origin, found, "Write a text in quotes.".to_owned());
                }
            }
        }
        strings
    }

    /// Whether the key has a value. Does not make it known.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    /// An unvalidated string. Does not make the key known.
    pub(crate) fn peek(&self, key: &str) -> Option<&'t str> {
        self.table.get(key).and_then(Node::text)
    }

    /// Origin of a key, or of the table if the key is absent.
    pub(crate) fn place_of(&self, key: &str) -> Origin {
        self.table
            .get(key)
            .map_or_else(|| self.origin.clone(), |node| node.origin.clone())
    }

    /// Records every key that was not requested.
    pub(crate) fn finish(self) {
        let mut notes = self.reader.0.borrow_mut();
        for (key, node) in self.table {
            if !self.read_keys.iter().any(|read_keys| read_keys == key) {
                notes.unknown.push(Unknown {
                    key: key.clone(),
                    path: self.path.clone(),
                    origin: node.origin.clone(),
                    siblings: self.read_keys.clone(),
                });
            }
        }
    }
}
