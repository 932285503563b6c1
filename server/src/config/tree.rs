//! What was read, as a tree whose every value knows where it came from.
//!
//! Parses TOML into it. Does not know which keys exist: that is for the reader.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use toml::de::{DeInteger, DeTable, DeValue};

use super::error::ConfigError;
use super::origin::Origin;

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
    /// A TOML value that no key takes: a float, a date, an integer beyond 64 bits.
    Other(&'static str),
    /// From the environment or a flag: only the key that takes it knows its type. `parsed` is its meaning as a
    /// TOML list or table, where it has one.
    Untyped {
        text: String,
        parsed: Option<Box<Value>>,
    },
}

impl Node {
    /// A value that came as mere text.
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

    /// The text, whether typed or not.
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

    /// What was found, for an error. `secret` keeps the value out of it.
    pub(super) fn describe(&self, secret: bool) -> String {
        match &self.value {
            Value::Text(_) | Value::Untyped { .. } if secret => "a text".to_owned(),
            Value::Integer(_) if secret => "an integer".to_owned(),
            Value::Text(text) | Value::Untyped { text, .. } => shown(text),
            Value::Integer(number) => format!("the integer {number}"),
            Value::Boolean(value) => format!("the boolean {value}"),
            Value::List(_) => "a list".to_owned(),
            Value::Table(_) => "a table".to_owned(),
            Value::Other(what) => (*what).to_owned(),
        }
    }
}

/// A text in quotes, cut to what a line holds. A URL with somebody's credentials in it is never quoted, whatever
/// key it stands under.
pub(super) fn shown(text: &str) -> String {
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
/// Every syntax error with its line. The offending line itself stays out of the message: it may hold a secret.
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
            mend: "Mend the syntax; texts stand in quotes, lists in [ ], and durations are texts such as \"2s\"."
                .to_owned(),
        })
        .collect())
}

fn convert_table(table: &DeTable<'_>, place: &dyn Fn(usize) -> Origin) -> Table {
    table
        .iter()
        .map(|(key, value)| {
            // The key's line: where people look, also for tables and values of several lines.
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
    fn every_value_knows_its_line() {
        // A top-level key, a table, and two elements of an array of tables, each on a line of its own.
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
        // The broken line holds a password.
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
