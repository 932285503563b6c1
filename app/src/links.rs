//! URLs inside the console: encoding of names in paths and queries, and parsing of queries.
//!
//! One parser for server and browser, so that both read a query alike.

use domain::charts::range::TimeRange;
use domain::limits::QUERY_BYTES_MAX;
use domain::lock::Lock;
use domain::names::LockId;

/// Percent-encodes all but the unreserved characters and those in `keep`.
fn encode(text: &str, keep: &[u8]) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) || keep.contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

fn decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        let escaped = match (byte, tail) {
            (b'%', [high, low, ..]) => hex(*high).zip(hex(*low)),
            _ => None,
        };
        rest = if let Some((high, low)) = escaped {
            bytes.push(high << 4 | low);
            &tail[2..]
        } else {
            bytes.push(if byte == b'+' { b' ' } else { byte });
            tail
        };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit)
        .to_digit(16)
        .and_then(|value| u8::try_from(value).ok())
}

/// The decoded pairs of a query string, with or without its question mark. Repeated names stay.
pub fn pairs(search: &str) -> Vec<(String, String)> {
    search
        .trim_start_matches('?')
        .split('&')
        .filter(|param| !param.is_empty())
        .map(|param| param.split_once('=').unwrap_or((param, "")))
        .map(|(name, value)| (decode(name), decode(value)))
        .collect()
}

/// `path?name=value&…`, or the path alone without pairs.
pub fn with_query<N: AsRef<str>, V: AsRef<str>>(
    path: &str,
    pairs: impl IntoIterator<Item = (N, V)>,
) -> String {
    let mut out = path.to_owned();
    for (index, (name, value)) in pairs.into_iter().enumerate() {
        out.push(if index == 0 { '?' } else { '&' });
        out.push_str(&encode(name.as_ref(), b""));
        out.push('=');
        out.push_str(&encode(value.as_ref(), b":/,@"));
    }
    out
}

/// URL of a page with its parameters, to derive others from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PageUrl {
    path: String,
    /// As given, valid or not; empty values count as not given.
    pairs: Vec<(String, String)>,
}

impl PageUrl {
    pub fn new(path: impl Into<String>, search: &str) -> Self {
        let parameters = pairs(search).into_iter().filter(|(_, value)| !value.is_empty());
        Self {
            path: path.into(),
            pairs: parameters.collect(),
        }
    }

    pub fn pairs(&self) -> &[(String, String)] {
        &self.pairs
    }

    /// Value of a parameter; empty if it is not given.
    pub fn value(&self, name: &str) -> &str {
        let found = self.pairs.iter().find(|(key, _)| key == name);
        found.map_or("", |(_, value)| value)
    }

    #[must_use]
    pub fn without(&self, names: &[&str]) -> Self {
        let remaining = self
            .pairs
            .iter()
            .filter(|(name, _)| !names.contains(&name.as_str()));
        Self {
            path: self.path.clone(),
            pairs: remaining.cloned().collect(),
        }
    }

    /// With some parameters replaced; an empty value removes one.
    #[must_use]
    pub fn with(&self, changes: &[(&str, &str)]) -> Self {
        let names: Vec<&str> = changes.iter().map(|(name, _)| *name).collect();
        let mut url = self.without(&names);
        let set = changes.iter().filter(|(_, value)| !value.is_empty());
        url.pairs
            .extend(set.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        url
    }

    /// With another time range.
    #[must_use]
    pub fn with_range(&self, range: TimeRange) -> Self {
        let mut url = self.without(&TimeRange::FIELDS);
        let pairs = range.pairs().into_iter();
        url.pairs
            .extend(pairs.map(|(name, value)| (name.to_owned(), value)));
        url
    }

    pub fn href(&self) -> String {
        let pairs = self
            .pairs
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()));
        with_query(&self.path, pairs)
    }
}

/// URL of a lock's page. With the source, because two sources may have the same name.
pub fn lock(lock: &Lock) -> String {
    lock_path(&lock.id)
}

pub fn lock_path(id: &LockId) -> String {
    let (name, source) = (id.resource.text(), ("source", id.source.as_str()));
    if matches!(name.as_str(), "" | "." | "..") {
        let path = format!("/locks/{}/{FOLDED}", id.backend);
        return with_query(&path, [source, ("name", &name)]);
    }
    let path = format!("/locks/{}/{}", id.backend, resource_path(&name));
    with_query(&path, [source])
}

/// URL of a lock's page by name only; the page offers a choice if two sources have it.
pub fn named(backend: &str, name: &str) -> String {
    if matches!(name, "" | "." | "..") {
        return with_query(&format!("/locks/{backend}/{FOLDED}"), [("name", name)]);
    }
    format!("/locks/{backend}/{}", resource_path(name))
}

/// URL of the first step of a forced unlock, derived from the URL of the lock's page.
pub fn unlock(lock: &str) -> String {
    lock.replacen("/locks/", "/unlock/", 1)
}

/// The same, with the displayed holding.
pub fn unlock_holding(lock: &Lock) -> String {
    let mut path = unlock(&lock_path(&lock.id));
    if let Some(generation) = lock.generation.known() {
        path.push_str("&generation=");
        path.push_str(&encode(generation.as_str(), b":/,@"));
    }
    path
}

/// Placeholder in the path for names that a path cannot carry, because browsers normalize them
/// away; the query has the name.
const FOLDED: &str = "-";

/// The name in a URL made by [`lock`], from its path and from `name` in its query.
pub fn resource(path: String, name: Option<String>) -> String {
    name.filter(|_| path == FOLDED).unwrap_or(path)
}

/// Slashes stay readable unless a browser or a proxy would normalize them.
fn resource_path(name: &str) -> String {
    let foldable = name.split('/').any(|segment| matches!(segment, "" | "." | ".."));
    encode(name, if foldable { b":,@" } else { b":,@/" })
}

/// Whether a link to this name is followed by the browser and not by the router, which decodes a URL once more before it
/// navigates and would change names with these characters.
pub fn needs_browser(name: &str) -> bool {
    name.contains(['%', '\\']) || name.chars().any(char::is_control) || name.trim() != name
}

/// Length of one escaped byte, such as `\xff`.
const ESCAPE_LEN: usize = 4;

/// The name, or as much of its beginning as a filter accepts.
pub fn filter_value(name: &str) -> &str {
    let start = &name[..name.floor_char_boundary(QUERY_BYTES_MAX)];
    match start.rfind('\\') {
        // The cut may be inside an escaped byte: the partial escape is removed.
        Some(at) if start.len() < name.len() && at + ESCAPE_LEN > start.len() => &start[..at],
        _ => start,
    }
}

/// URL of the list limited to one prefix.
pub fn prefix(text: &str) -> String {
    if text.is_empty() {
        "/locks".to_owned()
    } else {
        with_query("/locks", [("prefix", filter_value(text))])
    }
}

/// The sentence without its full stop, to be continued.
pub(crate) fn without_full_stop(text: &str) -> &str {
    text.strip_suffix('.').unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn query_values_survive_a_round_trip() {
        // Hostile values: separators, escapes, spaces, other scripts.
        let values = ["a&b=c", "100%", "a+b c", "%41", "grüße/☃", "", "\u{202e}x"];
        let url = with_query("/locks", values.map(|value| ("q", value)));
        assert_eq!(
            pairs(url.trim_start_matches("/locks")),
            values.map(|value| ("q".to_owned(), value.to_owned()))
        );
        assert_eq!(pairs(""), []);
        assert_eq!(
            pairs("?a&%zz=%"),
            [
                ("a".to_owned(), String::new()),
                ("%zz".to_owned(), "%".to_owned())
            ]
        );
    }

    #[test]
    fn a_changed_url_keeps_the_other_parameters() {
        // Replaced, removed, added; an empty value is not given.
        let url = PageUrl::new("/contention", "?range=6h&by=wait&at=&prefix=a%26b");
        assert_eq!(url.href(), "/contention?range=6h&by=wait&prefix=a%26b");
        assert_eq!(
            url.with(&[("by", ""), ("prefix", "c")]).href(),
            "/contention?range=6h&prefix=c"
        );
        let between = TimeRange::Between { from: 0, to: 60_000 };
        assert_eq!(
            url.without(&["by", "prefix"]).with_range(between).href(),
            "/contention?from=1970-01-01T00:00:00.000Z&to=1970-01-01T00:01:00.000Z"
        );
        assert_eq!((url.value("by"), url.value("at")), ("wait", ""));
    }

    #[test]
    fn long_names_are_cut_for_filters() {
        // At whole characters and escapes; the limit itself is not cut.
        let full = "x".repeat(QUERY_BYTES_MAX);
        assert_eq!(filter_value(&full), full);
        assert_eq!(filter_value(&format!("{full}y")), full);
        for end in ["é", r"\xff", r"\x", r"\"] {
            let start = &full[1..];
            assert_eq!(filter_value(&format!("{start}{end}yyyy")), start, "{end}");
        }
        assert_eq!(
            filter_value(&format!(r"a\{}", "y".repeat(5_000))).len(),
            QUERY_BYTES_MAX
        );
    }

    #[test]
    fn paths_keep_slashes_only_where_nothing_folds_them() {
        assert_eq!(resource_path("jobs/a:b"), "jobs/a:b");
        assert_eq!(resource_path("/locks/a"), "%2Flocks%2Fa");
        assert_eq!(resource_path("a/../b?c#d"), "a%2F..%2Fb%3Fc%23d");
        assert!(needs_browser("50%") && needs_browser(r"a\xff") && !needs_browser("tenant_1:a/b"));
    }
}
