//! Rules for values: parsing, and the messages for invalid ones.

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use domain::wire_enum::WireEnum;
use url::Url;

use super::value_tree::{Node, Value};

/// A rule for one kind of value. `fits` completes "Write …".
pub(super) struct Rule<'r, T> {
    pub(super) fits: String,
    /// Parses the value; an invalid value has a message, a wrong type has none.
    pub(super) take: Take<'r, T>,
    pub(super) show: fn(&T) -> String,
}

type Take<'r, T> = Box<dyn Fn(&Node) -> Parsed<T> + 'r>;

pub(super) enum Parsed<T> {
    Fits(T),
    /// Not a value of this type.
    WrongType,
    /// Right type, wrong value: a clause that follows it, "is shorter than 100ms".
    Unfit(String),
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
        fits: format!("a text such as {example:?}"),
        take: from_text(|text| match text {
            "" => Parsed::Unfit("is empty".to_owned()),
            _ => Parsed::Fits(text.to_owned()),
        }),
        show: |text| quoted(text),
    }
}

/// A string validated by `judge`, which returns what is wrong.
pub(super) fn checked<'r>(
    fits: impl Into<String>,
    judge: impl Fn(&str) -> Result<(), String> + 'r,
) -> Rule<'r, String> {
    Rule {
        fits: fits.into(),
        take: from_text(move |text| match judge(text) {
            Ok(()) => Parsed::Fits(text.to_owned()),
            Err(unfit) => Parsed::Unfit(unfit),
        }),
        show: |text| quoted(text),
    }
}

pub(super) fn path() -> Rule<'static, PathBuf> {
    Rule {
        fits: "the path of a file that exists".to_owned(),
        take: from_text(|text| match text {
            "" => Parsed::Unfit("is empty".to_owned()),
            _ => match std::fs::metadata(text) {
                Ok(found) if found.is_file() => Parsed::Fits(PathBuf::from(text)),
                Ok(_) => Parsed::Unfit("is not a file".to_owned()),
                Err(error) => Parsed::Unfit(format!("cannot be read: {error}")),
            },
        }),
        show: |path| quoted(&path.display().to_string()),
    }
}

/// A file to be written: it may be missing, its folder may not.
pub(super) fn written_path() -> Rule<'static, PathBuf> {
    Rule {
        fits: "the path of a file in a folder that exists".to_owned(),
        take: from_text(|text| {
            let path = PathBuf::from(text);
            let folder = match path.parent() {
                Some(folder) if folder.as_os_str().is_empty() => Path::new("."),
                Some(folder) => folder,
                None => Path::new(""),
            };
            if path.is_dir() || path.file_name().is_none() {
                return Parsed::Unfit("is not a file".to_owned());
            }
            if !folder.is_dir() {
                return Parsed::Unfit(format!(
                    "cannot be written: there is no folder {}",
                    folder.display()
                ));
            }
            Parsed::Fits(path)
        }),
        show: |path| quoted(&path.display().to_string()),
    }
}

pub(super) fn boolean() -> Rule<'static, bool> {
    Rule {
        fits: "true or false".to_owned(),
        take: Box::new(|node| match &node.value {
            Value::Boolean(value) => Parsed::Fits(*value),
            Value::Untyped { text, .. } => text.parse().map_or(Parsed::WrongType, Parsed::Fits),
            _ => Parsed::WrongType,
        }),
        show: bool::to_string,
    }
}

pub(super) fn integer<T: TryFrom<i64> + ToString>() -> Rule<'static, T> {
    Rule {
        fits: format!("a whole number of {} bits", 8 * size_of::<T>()),
        take: Box::new(|node| {
            let number = match &node.value {
                Value::Integer(number) => *number,
                Value::Untyped { text, .. } => match text.parse() {
                    Ok(number) => number,
                    Err(_) => return Parsed::WrongType,
                },
                _ => return Parsed::WrongType,
            };
            T::try_from(number).map_or_else(|_| Parsed::Unfit("is too large".to_owned()), Parsed::Fits)
        }),
        show: T::to_string,
    }
}

pub(super) fn integer_within(range: &RangeInclusive<u32>) -> Rule<'_, u32> {
    let any = integer::<u32>();
    Rule {
        fits: format!("a whole number from {} to {}", range.start(), range.end()),
        take: Box::new(move |node| match (any.take)(node) {
            Parsed::Fits(value) if value < *range.start() => {
                Parsed::Unfit(format!("is less than {}", range.start()))
            }
            Parsed::Fits(value) if value > *range.end() => {
                Parsed::Unfit(format!("is more than {}", range.end()))
            }
            taken => taken,
        }),
        show: u32::to_string,
    }
}

pub(super) fn duration(range: &RangeInclusive<Duration>) -> Rule<'_, Duration> {
    Rule {
        fits: format!(
            "a duration from {} to {}",
            quoted(&span(range.start())),
            quoted(&span(range.end()))
        ),
        take: from_text(|text| match humantime::parse_duration(text) {
            Err(error) => Parsed::Unfit(format!("is not a duration ({error})")),
            Ok(value) if value < *range.start() => {
                Parsed::Unfit(format!("is shorter than {}", span(range.start())))
            }
            Ok(value) if value > *range.end() => {
                Parsed::Unfit(format!("is longer than {}", span(range.end())))
            }
            Ok(value) => Parsed::Fits(value),
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
    let words: Vec<String> = C::VARIANTS.iter().map(|value| quoted(value.wire())).collect();
    Rule {
        fits: format!("one of {}", words.join(", ")),
        take: from_text(|text| match C::from_wire(text) {
            Some(value) => Parsed::Fits(value),
            None => match super::error::nearest(text, C::VARIANTS.iter().map(|value| value.wire())) {
                Some(meant) => Parsed::Unfit(format!("is not known (did you mean {meant:?}?)")),
                None => Parsed::Unfit("is not known".to_owned()),
            },
        }),
        show: |value| quoted(value.wire()),
    }
}

/// The listen address. Whether it is allowed depends on other keys.
pub(super) fn listen() -> Rule<'static, SocketAddr> {
    Rule {
        fits: "an address and a port, such as \"127.0.0.1:3000\" or \"[::]:443\"".to_owned(),
        take: from_text(|text| match text.parse::<SocketAddr>() {
            Ok(address) => Parsed::Fits(address),
            Err(_) => Parsed::Unfit("is not an IP address with a port".to_owned()),
        }),
        show: |address| quoted(&address.to_string()),
    }
}

/// The public URL for links and cookies.
pub(super) fn public_url() -> Rule<'static, Url> {
    Rule {
        fits: "a URL without path and query, such as \"https://locks.example.com\"".to_owned(),
        take: from_text(|text| match Url::parse(text) {
            Err(error) => Parsed::Unfit(format!("is not a URL ({error})")),
            Ok(url) if !matches!(url.scheme(), "http" | "https") => {
                Parsed::Unfit("is neither http nor https".to_owned())
            }
            Ok(url) if !url.username().is_empty() || url.password().is_some() => {
                Parsed::Unfit("holds a user or a password".to_owned())
            }
            Ok(url) if url.path() != "/" || url.query().is_some() || url.fragment().is_some() => {
                Parsed::Unfit("has more than scheme, host and port".to_owned())
            }
            Ok(url) => Parsed::Fits(url),
        }),
        show: |url| quoted(url.as_str().trim_end_matches('/')),
    }
}
