//! The configuration as a tree whose values know their origin.
//!
//! Parses TOML. Does not know which keys exist; the reader does.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use toml::de::{DeInteger, DeTable, DeValue};

use super::error::ConfigError;
use super::provenance::Origin;

pub(super) type Table = BTreeMap<String, Node>;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node {
    pub(super) value: Value,
    pub(super) origin: Origin,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Text(String),
    Integer(i64),
    Boolean(bool),
    List(Vec<Node>),
    Table(Table),
    /// A TOML value that no key accepts: a float, a date, an integer beyond 64 bits.
    Other(&'static str),
    /// From a variable or flag: the type depends on the key. `parsed` is its value as a TOML list or table, if it is
    /// one.
    Untyped {
        text: String,
        parsed: Option<Box<Value>>,
    },
}

impl Node {
    /// A value given as plain text.
    pub(super) fn untyped(text: &str, origin: Origin) -> Self {
        let parsed = if text.starts_with(['[', '{']) {
            DeValue::parse(text)
                .ok()
                .map(|value| Box::new(convert(value.get_ref(), &|_| origin.clone())))
        } else {
            None
        };
        Self {
            value: Value::Untyped {
                text: text.to_owned(),
                parsed,
            },
            origin,
        }
    }

    /// The string, typed or untyped.
    pub(super) fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) | Value::Untyped { text, .. } => Some(text),
            _ => None,
        }
    }

    pub(super) fn list(&self) -> Option<&[Self]> {
        match &self.value {
            Value::List(list) => Some(list),
            Value::Untyped {
                parsed: Some(parsed), ..
            } => match parsed.as_ref() {
                Value::List(list) => Some(list),
                _ => None,
            },
            _ => None,
        }
    }

    pub(super) fn table(&self) -> Option<&Table> {
        match &self.value {
            Value::Table(table) => Some(table),
            Value::Untyped {
                parsed: Some(parsed), ..
            } => match parsed.as_ref() {
                Value::Table(table) => Some(table),
                _ => None,
            },
            _ => None,
        }
    }

    /// Description for an error. `secret` omits the value.
    pub(super) fn describe(&self, secret: bool) -> String {
        match &self.value {
            Value::Text(_) | Value::Untyped { .. } if secret => "a text".to_owned(),
            Value::Integer(_) if secret => "an integer".to_owned(),
            Value::Text(text) | Value::Untyped { text, .. } => display_value(text),
            Value::Integer(number) => format!("the integer {number}"),
            Value::Boolean(value) => format!("the boolean {value}"),
            Value::List(_) => "a list".to_owned(),
            Value::Table(_) => "a table".to_owned(),
            Value::Other(what) => (*what).to_owned(),
        }
    }
}

/// A quoted string, shortened to one line. A URL with credentials is never quoted, whatever its key.
pub(super) fn display_value(text: &str) -> String {
    const CHARS_MAX: usize = 120;
    if text.contains("://") && text.contains('@') {
        return "a URL with credentials".to_owned();
    }
    match text.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{:?}…", &text[..end]),
        None => format!("{text:?}"),
    }
}

/// Parses a file.
///
/// # Errors
/// Every syntax error with its line. The line is not quoted: it may contain a secret.
pub(super) fn parse(path: &Path, text: &str) -> Result<Table, Vec<ConfigError>> {
    let name: Arc<str> = path.display().to_string().into();
    let starts: Vec<usize> = std::iter::once(0)
        .chain(text.match_indices('\n').map(|(at, _)| at + 1))
        .collect();
    let place = |at: usize| Origin::File {
        path: Arc::clone(&name),
        line: starts.partition_point(|start| *start <= at).max(1),
    };
    let (document, errors) = DeTable::parse_recoverable(text);
    if errors.is_empty() {
        return Ok(convert_table(document.get_ref(), &place));
    }
    Err(errors
        .iter()
        .map(|error| ConfigError {
            key: String::new(),
            origin: place(error.span().map_or(0, |span| span.start)),
            message: format!("this is not TOML: {}", error.message()),
            remedy:
                "Fix the syntax; texts need quotes, lists need [ ], and durations are texts such as \"2s\"."
                    .to_owned(),
        })
        .collect())
}

fn convert_table(table: &DeTable<'_>, place: &dyn Fn(usize) -> Origin) -> Table {
    table
        .iter()
        .map(|(key, value)| {
            // The key's line, also for tables and multi-line values.
            let node = Node {
                value: convert(value.get_ref(), place),
                origin: place(key.span().start),
            };
            (key.get_ref().clone().into_owned(), node)
        })
        .collect()
}

fn convert(value: &DeValue<'_>, place: &dyn Fn(usize) -> Origin) -> Value {
    match value {
        DeValue::String(text) => Value::Text(text.clone().into_owned()),
        DeValue::Integer(number) => integer(number),
        DeValue::Float(_) => Value::Other("a number with a fraction"),
        DeValue::Boolean(value) => Value::Boolean(*value),
        DeValue::Datetime(_) => Value::Other("a date"),
        DeValue::Array(list) => Value::List(
            list.iter()
                .map(|item| Node {
                    value: convert(item.get_ref(), place),
                    origin: place(item.span().start),
                })
                .collect(),
        ),
        DeValue::Table(table) => Value::Table(convert_table(table, place)),
    }
}

fn integer(number: &DeInteger<'_>) -> Value {
    i64::from_str_radix(number.as_str(), number.radix())
        .map_or(Value::Other("an integer beyond 64 bits"), Value::Integer)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(node: &Node) -> usize {
        match node.origin {
            Origin::File { line, .. } => line,
            _ => 0,
        }
    }

    #[test]
    fn every_value_has_its_line_number() {
        // A top-level key, a table, and two elements of an array of tables, each on its own line.
        let text = "listen = \"x\"\n\n[lease]\nmax_ttl = \"1h\"\n[[backend]]\nname = \"a\"\n\n[[backend]]\nname = \"b\"\n";
        let tree = parse(Path::new("f.toml"), text).unwrap();
        assert_eq!(line(&tree["listen"]), 1);
        assert_eq!(line(&tree["lease"].table().unwrap()["max_ttl"]), 4);
        let backends = tree["backend"].list().unwrap();
        assert_eq!(backends.iter().map(line).collect::<Vec<_>>(), [5, 8]);
        assert_eq!(line(&backends[1].table().unwrap()["name"]), 9);
    }

    #[test]
    fn a_syntax_error_names_its_line_and_does_not_quote_it() {
        // The broken line contains a password.
        let errors = parse(
            Path::new("f.toml"),
            "a = 1\nurl = \"postgres://u:s3cret@h\nb = 2\n",
        )
        .unwrap_err();
        assert_eq!(errors[0].origin.to_string(), "f.toml:2");
        assert!(
            !errors.iter().any(|error| error.to_string().contains("s3cret")),
            "{errors:?}"
        );
    }
}
