//! What fits a key: how a value is taken from what was read, and the words for it when it does not fit.

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use url::Url;

use super::tree::{Node, Value};

/// One kind of value. `fits` completes "Write …".
pub(super) struct Rule<'r, T> {
    pub(super) fits: String,
    /// Takes the value, or says what is wrong with it beyond its type; `None` is a wrong type.
    pub(super) take: Take<'r, T>,
    pub(super) show: fn(&T) -> String,
}

type Take<'r, T> = Box<dyn Fn(&Node) -> Taken<T> + 'r>;

pub(super) enum Taken<T> {
    Fits(T),
    /// Not a value of this type at all.
    WrongType,
    /// Of this type, but: a clause that follows the value, "is shorter than 100ms".
    Unfit(String),
}

/// One of several words.
pub(super) trait Choice: Copy + 'static {
    const WORDS: &'static [(&'static str, Self)];

    fn word(self) -> &'static str
    where
        Self: PartialEq,
    {
        Self::WORDS
            .iter()
            .find(|(_, value)| *value == self)
            .map_or("", |(word, _)| word)
    }
}

fn from_text<'r, T>(take: impl Fn(&str) -> Taken<T> + 'r) -> Take<'r, T> {
    Box::new(move |node| node.text().map_or(Taken::WrongType, &take))
}

pub(super) fn quoted(text: &str) -> String {
    format!("{text:?}")
}

/// A text that is not empty.
pub(super) fn text(example: &str) -> Rule<'static, String> {
    Rule {
        fits: format!("a text such as {example:?}"),
        take: from_text(|text| match text {
            "" => Taken::Unfit("is empty".to_owned()),
            _ => Taken::Fits(text.to_owned()),
        }),
        show: |text| quoted(text),
    }
}

/// A text judged by `judge`, which answers with what is wrong.
pub(super) fn checked<'r>(
    fits: impl Into<String>,
    judge: impl Fn(&str) -> Result<(), String> + 'r,
) -> Rule<'r, String> {
    Rule {
        fits: fits.into(),
        take: from_text(move |text| match judge(text) {
            Ok(()) => Taken::Fits(text.to_owned()),
            Err(unfit) => Taken::Unfit(unfit),
        }),
        show: |text| quoted(text),
    }
}

pub(super) fn path() -> Rule<'static, PathBuf> {
    Rule {
        fits: "the path of a file that exists".to_owned(),
        take: from_text(|text| match text {
            "" => Taken::Unfit("is empty".to_owned()),
            _ => match std::fs::metadata(text) {
                Ok(found) if found.is_file() => Taken::Fits(PathBuf::from(text)),
                Ok(_) => Taken::Unfit("is not a file".to_owned()),
                Err(error) => Taken::Unfit(format!("cannot be read: {error}")),
            },
        }),
        show: |path| quoted(&path.display().to_string()),
    }
}

/// A file that we write: it may be missing, its folder may not.
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
                return Taken::Unfit("is not a file".to_owned());
            }
            if !folder.is_dir() {
                return Taken::Unfit(format!(
                    "cannot be written: there is no folder {}",
                    folder.display()
                ));
            }
            Taken::Fits(path)
        }),
        show: |path| quoted(&path.display().to_string()),
    }
}

pub(super) fn boolean() -> Rule<'static, bool> {
    Rule {
        fits: "true or false".to_owned(),
        take: Box::new(|node| match &node.value {
            Value::Boolean(value) => Taken::Fits(*value),
            Value::Untyped { text, .. } => text.parse().map_or(Taken::WrongType, Taken::Fits),
            _ => Taken::WrongType,
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
                    Err(_) => return Taken::WrongType,
                },
                _ => return Taken::WrongType,
            };
            T::try_from(number).map_or_else(|_| Taken::Unfit("is too large".to_owned()), Taken::Fits)
        }),
        show: T::to_string,
    }
}

pub(super) fn integer_within(range: &RangeInclusive<u32>) -> Rule<'_, u32> {
    let any = integer::<u32>();
    Rule {
        fits: format!("a whole number from {} to {}", range.start(), range.end()),
        take: Box::new(move |node| match (any.take)(node) {
            Taken::Fits(value) if value < *range.start() => {
                Taken::Unfit(format!("is less than {}", range.start()))
            }
            Taken::Fits(value) if value > *range.end() => {
                Taken::Unfit(format!("is more than {}", range.end()))
            }
            taken => taken,
        }),
        show: u32::to_string,
    }
}

pub(super) fn duration(range: &RangeInclusive<Duration>) -> Rule<'_, Duration> {
    Rule {
        fits: format!(
            "a duration from {} to {}, such as \"500ms\", \"2s\" or \"1h\"",
            span(range.start()),
            span(range.end())
        ),
        take: from_text(|text| match humantime::parse_duration(text) {
            Err(error) => Taken::Unfit(format!("is not a duration ({error})")),
            Ok(value) if value < *range.start() => {
                Taken::Unfit(format!("is shorter than {}", span(range.start())))
            }
            Ok(value) if value > *range.end() => {
                Taken::Unfit(format!("is longer than {}", span(range.end())))
            }
            Ok(value) => Taken::Fits(value),
        }),
        show: |value| quoted(&span(value)),
    }
}

/// As it is written in the configuration: in the largest unit that divides it.
pub(super) fn span(duration: &Duration) -> String {
    let ms = duration.as_millis();
    let (unit, name) = [(3_600_000, "h"), (60_000, "m"), (1000, "s")]
        .into_iter()
        .find(|(unit, _)| ms > 0 && ms.is_multiple_of(*unit))
        .unwrap_or((1, "ms"));
    format!("{}{name}", ms / unit)
}

pub(super) fn choice<C: Choice + PartialEq>() -> Rule<'static, C> {
    let words: Vec<String> = C::WORDS.iter().map(|(word, _)| quoted(word)).collect();
    Rule {
        fits: format!("one of {}", words.join(", ")),
        take: from_text(|text| match C::WORDS.iter().find(|(word, _)| *word == text) {
            Some((_, value)) => Taken::Fits(*value),
            None => match super::error::nearest(text, C::WORDS.iter().map(|(word, _)| *word)) {
                Some(meant) => Taken::Unfit(format!("is not known (did you mean {meant:?}?)")),
                None => Taken::Unfit("is not known".to_owned()),
            },
        }),
        show: |value| quoted(value.word()),
    }
}

/// Where we listen. Whether others may reach it there depends on other keys.
pub(super) fn listen() -> Rule<'static, SocketAddr> {
    Rule {
        fits: "an address and a port, such as \"127.0.0.1:3000\" or \"[::]:443\"".to_owned(),
        take: from_text(|text| match text.parse::<SocketAddr>() {
            Ok(address) => Taken::Fits(address),
            Err(_) => Taken::Unfit("is not an IP address with a port".to_owned()),
        }),
        show: |address| quoted(&address.to_string()),
    }
}

/// Where people reach the console: what links and cookies are built from.
pub(super) fn public_url() -> Rule<'static, Url> {
    Rule {
        fits: "a URL without path and query, such as \"https://locks.example.com\"".to_owned(),
        take: from_text(|text| match Url::parse(text) {
            Err(error) => Taken::Unfit(format!("is not a URL ({error})")),
            Ok(url) if !matches!(url.scheme(), "http" | "https") => {
                Taken::Unfit("is neither http nor https".to_owned())
            }
            Ok(url) if !url.username().is_empty() || url.password().is_some() => {
                Taken::Unfit("holds a user or a password".to_owned())
            }
            Ok(url) if url.path() != "/" || url.query().is_some() || url.fragment().is_some() => {
                Taken::Unfit("has more than scheme, host and port".to_owned())
            }
            Ok(url) => Taken::Fits(url),
        }),
        show: |url| quoted(url.as_str().trim_end_matches('/')),
    }
}
