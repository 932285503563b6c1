//! One table of the configuration, and the ways to ask it for a key.

use std::collections::BTreeMap;

use super::{Reader, Unknown, join};
use crate::config::error::ConfigError;
use crate::config::explain::Entry;
use crate::config::limits::LIST_MAX;
use crate::config::origin::Origin;
use crate::config::rules::{Rule, Taken};
use crate::config::tree::{Node, Table, Value, shown};

static EMPTY: Table = BTreeMap::new();

/// One table of the configuration.
pub(in crate::config) struct Section<'t> {
    reader: &'t Reader,
    path: String,
    pattern: &'static str,
    table: &'t Table,
    pub(in crate::config) origin: Origin,
    asked: Vec<&'static str>,
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
            asked: Vec::new(),
        }
    }

    /// Errors and entries from here on carry this path.
    pub(in crate::config) fn rename(&mut self, path: String) {
        self.path = path;
    }

    /// Asks for a key: from now on it is known.
    pub(in crate::config) fn node(&mut self, key: &'static str) -> Option<&'t Node> {
        self.asked.push(key);
        self.reader.0.borrow_mut().known.insert(join(self.pattern, key));
        self.table.get(key)
    }

    pub(in crate::config) fn error_at(&self, key: &str, origin: &Origin, message: String, mend: String) {
        let error = ConfigError {
            key: join(&self.path, key),
            origin: origin.clone(),
            message,
            mend,
        };
        self.reader.0.borrow_mut().errors.push(error);
    }

    /// For `check-config`; `value` is fit to be shown.
    pub(in crate::config) fn entry(&self, key: &str, value: String, origin: &Origin) {
        let entry = Entry {
            key: join(&self.path, key),
            value,
            origin: origin.clone(),
        };
        self.reader.0.borrow_mut().entries.push(entry);
    }

    pub(in crate::config) fn missing(&self, key: &str, mend: &str) {
        self.error_at(key, &self.origin, "is missing".to_owned(), mend.to_owned());
    }

    pub(in crate::config) fn optional<T>(&mut self, key: &'static str, rule: &Rule<'_, T>) -> Option<T> {
        let node = self.node(key)?;
        match (rule.take)(node) {
            Taken::Fits(value) => {
                self.entry(key, (rule.show)(&value), &node.origin);
                return Some(value);
            }
            Taken::WrongType => {
                let found = format!("found {}", node.describe(false));
                self.error_at(key, &node.origin, found, format!("Write {}.", rule.fits));
            }
            Taken::Unfit(why) => {
                let found = format!("{} {why}", node.describe(false));
                self.error_at(key, &node.origin, found, format!("Write {}.", rule.fits));
            }
        }
        None
    }

    /// The default also stands in for a value that does not fit: the error is noted, and reading goes on.
    pub(in crate::config) fn or<T>(&mut self, key: &'static str, default: T, rule: &Rule<'_, T>) -> T {
        let absent = !self.table.contains_key(key);
        self.optional(key, rule).unwrap_or_else(|| {
            if absent {
                self.entry(key, (rule.show)(&default), &Origin::Default);
            }
            default
        })
    }

    pub(in crate::config) fn required<T>(&mut self, key: &'static str, rule: &Rule<'_, T>) -> Option<T> {
        if !self.table.contains_key(key) {
            self.node(key);
            self.missing(key, &format!("Write {key} = {}.", rule.fits));
            return None;
        }
        self.optional(key, rule)
    }

    /// A list of texts; `default` where the key is absent. An empty list is an error: it would watch nothing.
    pub(in crate::config) fn list(
        &mut self,
        key: &'static str,
        default: Option<&[&str]>,
        fits: &str,
        judge: &dyn Fn(&str) -> Result<(), String>,
    ) -> Option<Vec<String>> {
        let Some(node) = self.node(key) else {
            let Some(default) = default else {
                self.missing(key, &format!("Write {fits}."));
                return None;
            };
            self.entry(key, format!("{default:?}"), &Origin::Default);
            return Some(default.iter().map(|text| (*text).to_owned()).collect());
        };
        let texts = self.texts(key, node, fits, false)?;
        let mut fit = true;
        for (text, origin) in &texts {
            if let Err(unfit) = judge(text) {
                fit = false;
                self.error_at(
                    key,
                    origin,
                    format!("{} {unfit}", shown(text)),
                    format!("Write {fits}."),
                );
            }
        }
        let texts: Vec<String> = texts.into_iter().map(|(text, _)| text).collect();
        let seen: Vec<String> = texts.iter().map(|text| shown(text)).collect();
        self.entry(key, format!("[{}]", seen.join(", ")), &node.origin);
        fit.then_some(texts)
    }

    /// The elements of a list of texts, each with its place. From the environment: a TOML list, or texts with
    /// commas between them.
    pub(in crate::config) fn texts(
        &self,
        key: &str,
        node: &Node,
        fits: &str,
        secret: bool,
    ) -> Option<Vec<(String, Origin)>> {
        let wrong = |found: String, origin: &Origin| {
            self.error_at(key, origin, found, format!("Write {fits}."));
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
                let of = |item: &Node| item.text().map(|text| (text.to_owned(), item.origin.clone()));
                items.iter().filter_map(of).collect()
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

    /// The table under a key; an empty one where it is absent.
    pub(in crate::config) fn section(&mut self, key: &'static str, pattern: &'static str) -> Section<'t> {
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
            asked: Vec::new(),
        }
    }

    /// The tables of a list of tables.
    pub(in crate::config) fn sections(
        &mut self,
        key: &'static str,
        pattern: &'static str,
    ) -> Vec<Section<'t>> {
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
            let mend = format!("Write tables in double brackets: [[{pattern}]].");
            self.error_at(key, &wrong.origin, found, mend);
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
                    asked: Vec::new(),
                })
            })
            .collect()
    }

    /// The texts of a table whose keys are one of `keys`: each with its place.
    pub(in crate::config) fn words(&mut self, keys: &[&'static str]) -> BTreeMap<String, (String, Origin)> {
        let mut words = BTreeMap::new();
        for key in keys {
            let Some(node) = self.node(key) else { continue };
            match node.text() {
                Some(text) => {
                    self.entry(key, format!("{text:?}"), &node.origin);
                    words.insert((*key).to_owned(), (text.to_owned(), node.origin.clone()));
                }
                None => {
                    let found = format!("found {}", node.describe(false));
                    self.error_at(key, &node.origin, found, "Write a text in quotes.".to_owned());
                }
            }
        }
        words
    }

    /// Whether something is under the key. Does not make it known.
    pub(in crate::config) fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    /// A text, judged by nobody. Does not make the key known.
    pub(in crate::config) fn peek(&self, key: &str) -> Option<&'t str> {
        self.table.get(key).and_then(Node::text)
    }

    /// Where a key stands; the table's place where it is absent.
    pub(in crate::config) fn place_of(&self, key: &str) -> Origin {
        self.table
            .get(key)
            .map_or_else(|| self.origin.clone(), |node| node.origin.clone())
    }

    /// Notes every key that nobody asked for.
    pub(in crate::config) fn finish(self) {
        let mut notes = self.reader.0.borrow_mut();
        for (key, node) in self.table {
            if !self.asked.iter().any(|asked| asked == key) {
                notes.unknown.push(Unknown {
                    key: key.clone(),
                    path: self.path.clone(),
                    origin: node.origin.clone(),
                    siblings: self.asked.clone(),
                });
            }
        }
    }
}
