//! Rules for values: parsing, and the messages for invalid ones.

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use domain::wire_enum::WireEnum;
use url::Url;

use super::value_tree::{Node, Value};

/// A rule for one kind of value. `expected` completes "Write …".
pub(super) struct Rule<'r, T> {
    pub(super) expected: String,
    /// Parses the value; an invalid value has a message, a wrong type has none.
    pub(super) take: Take<'r, T>,
    pub(super) show: fn(&T) -> String,
}

type Take<'r, T> = Box<dyn Fn(&Node) -> Parsed<T> + 'r>;

pub(super) enum Parsed<T> {
    Valid(T),
    /// Not a value of this type.
    WrongType,
    /// Right type, wrong value: a clause that follows it, "is shorter than 100ms".
    Invalid(String),
}

fn from_text<'r, T>(take: impl Fn(&str) -> Parsed<T> + 'r) -> Take<'r, T> {
    Box::new(move |node| node.text().map_or(Parsed::WrongType, &take))
}

pub(super) fn quoted(text: &str) -> String {
    format!("{text:?}")
}

/// A non-empty string.
pub(super) fn text(example: &str) -> Rule<'static, String> {
    Rule {
        expected: format!("a text such as {example:?}"),
        take: from_text(|text| match text {
            "" => Parsed::Invalid("is empty".to_owned()),
            _ => Parsed::Valid(text.to_owned()),
        }),
        show: |text| quoted(text),
    }
}

/// A string; `validate` returns what is wrong with it.
pub(super) fn checked<'r>(
    expected: impl Into<String>,
    validate: impl Fn(&str) -> Result<(), String> + 'r,
) -> Rule<'r, String> {
    Rule {
        expected: expected.into(),
        take: from_text(move |text| match validate(text) {
            Ok(()) => Parsed::Valid(text.to_owned()),
            Err(problem) => Parsed::Invalid(problem),
        }),
        show: |text| quoted(text),
    }
}

pub(super) fn path() -> Rule<'static, PathBuf> {
    Rule {
        expected: "the path of a file that exists".to_owned(),
        take: from_text(|text| match text {
            "" => Parsed::Invalid("is empty".to_owned()),
            _ => match std::fs::metadata(text) {
                Ok(found) if found.is_file() => Parsed::Valid(PathBuf::from(text)),
                Ok(_) => Parsed::Invalid("is not a file".to_owned()),
                Err(error) => Parsed::Invalid(format!("cannot be read: {error}")),
            },
        }),
        show: |path| quoted(&path.display().to_string()),
    }
}

/// A file to be written: it may be missing, its folder may not.
pub(super) fn written_path() -> Rule<'static, PathBuf> {
    Rule {
        expected: "the path of a file in a folder that exists".to_owned(),
        take: from_text(|text| {
            let path = PathBuf::from(text);
            let folder = match path.parent() {
                Some(folder) if folder.as_os_str().is_empty() => Path::new("."),
                Some(folder) => folder,
                None => Path::new(""),
            };
            if path.is_dir() || path.file_name().is_none() {
                return Parsed::Invalid("is not a file".to_owned());
            }
            if !folder.is_dir() {
                return Parsed::Invalid(format!(
                    "cannot be written: there is no folder {}",
                    folder.display()
                ));
            }
            Parsed::Valid(path)
        }),
        show: |path| quoted(&path.display().to_string()),
    }
}

pub(super) fn boolean() -> Rule<'static, bool> {
    Rule {
        expected: "true or false".to_owned(),
        take: Box::new(|node| match &node.value {
            Value::Boolean(value) => Parsed::Valid(*value),
            Value::Untyped { text, .. } => text.parse().map_or(Parsed::WrongType, Parsed::Valid),
            _ => Parsed::WrongType,
        }),
        show: bool::to_string,
    }
}

pub(super) fn integer<T: TryFrom<i64> + ToString>() -> Rule<'static, T> {
    Rule {
        expected: format!("a whole number of {} bits", 8 * size_of::<T>()),
        take: Box::new(|node| {
            let number = match &node.value {
                Value::Integer(number) => *number,
                Value::Untyped { text, .. } => match text.parse() {
                    Ok(number) => number,
                    Err(_) => return Parsed::WrongType,
                },
                _ => return Parsed::WrongType,
            };
            T::try_from(number).map_or_else(|_| Parsed::Invalid("is too large".to_owned()), Parsed::Valid)
        }),
        show: T::to_string,
    }
}

pub(super) fn integer_within(range: &RangeInclusive<u32>) -> Rule<'_, u32> {
    let integer_rule = integer::<u32>();
    Rule {
        expected: format!("a whole number from {} to {}", range.start(), range.end()),
        take: Box::new(move |node| match (integer_rule.take)(node) {
            Parsed::Valid(value) if value < *range.start() => {
                Parsed::Invalid(format!("is less than {}", range.start()))
            }
            Parsed::Valid(value) if value > *range.end() => {
                Parsed::Invalid(format!("is more than {}", range.end()))
            }
            taken => taken,
        }),
        show: u32::to_string,
    }
}

pub(super) fn duration(range: &RangeInclusive<Duration>) -> Rule<'_, Duration> {
    Rule {
        expected: format!(
            "a duration from {} to {}",
            quoted(&span(range.start())),
            quoted(&span(range.end()))
        ),
        take: from_text(|text| match humantime::parse_duration(text) {
            Err(error) => Parsed::Invalid(format!("is not a duration ({error})")),
            Ok(value) if value < *range.start() => {
                Parsed::Invalid(format!("is shorter than {}", span(range.start())))
            }
            Ok(value) if value > *range.end() => {
                Parsed::Invalid(format!("is longer than {}", span(range.end())))
            }
            Ok(value) => Parsed::Valid(value),
        }),
        show: |value| quoted(&span(value)),
    }
}

/// In the largest unit that divides it, as in the configuration.
pub(super) fn span(duration: &Duration) -> String {
    let ms = duration.as_millis();
    let (unit, name) = [(3_600_000, "h"), (60_000, "m"), (1000, "s")]
        .into_iter()
        .find(|(unit, _)| ms > 0 && ms.is_multiple_of(*unit))
        .unwrap_or((1, "ms"));
    format!("{}{name}", ms / unit)
}

pub(super) fn choice<C: WireEnum>() -> Rule<'static, C> {
    let allowed: Vec<String> = C::VARIANTS.iter().map(|value| quoted(value.wire())).collect();
    Rule {
        expected: format!("one of {}", allowed.join(", ")),
        take: from_text(|text| match C::from_wire(text) {
            Some(value) => Parsed::Valid(value),
            None => match super::error::nearest(text, C::VARIANTS.iter().map(|value| value.wire())) {
                Some(suggestion) => Parsed::Invalid(format!("is not known (did you mean {suggestion:?}?)")),
                None => Parsed::Invalid("is not known".to_owned()),
            },
        }),
        show: |value| quoted(value.wire()),
    }
}

/// The listen address. Whether it is allowed depends on other keys.
pub(super) fn listen() -> Rule<'static, SocketAddr> {
    Rule {
        expected: "an address and a port, such as \"127.0.0.1:3000\" or \"[::]:443\"".to_owned(),
        take: from_text(|text| match text.parse::<SocketAddr>() {
            Ok(address) => Parsed::Valid(address),
            Err(_) => Parsed::Invalid("is not an IP address with a port".to_owned()),
        }),
        show: |address| quoted(&address.to_string()),
    }
}

/// The public URL for links and cookies.
pub(super) fn public_url() -> Rule<'static, Url> {
    Rule {
        expected: "a URL without path and query, such as \"https://locks.example.com\"".to_owned(),
        take: from_text(|text| match Url::parse(text) {
            Err(error) => Parsed::Invalid(format!("is not a URL ({error})")),
            Ok(url) if !matches!(url.scheme(), "http" | "https") => {
                Parsed::Invalid("is neither http nor https".to_owned())
            }
            Ok(url) if !url.username().is_empty() || url.password().is_some() => {
                Parsed::Invalid("holds a user or a password".to_owned())
            }
            Ok(url) if url.path() != "/" || url.query().is_some() || url.fragment().is_some() => {
                Parsed::Invalid("has more than scheme, host and port".to_owned())
            }
            Ok(url) => Parsed::Valid(url),
        }),
        show: |url| quoted(url.as_str().trim_end_matches('/')),
    }
}
