//! Newtypes of names, parsed once at the edge.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::escape;

/// Name of one configured backend: `[a-z0-9-]`, 1 to 63 characters. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct BackendName(Arc<str>);

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NameError {
    #[error("a backend's name has 1 to 63 characters of a-z, 0-9 and -, but this is {0:?}")]
    Backend(String),
    #[error("a source is 1 to 300 printable characters, but this is {0:?}")]
    Source(String),
}

impl BackendName {
    /// The built-in lease service; no configured backend may have this name.
    pub fn builtin() -> Self {
        Self("builtin".into())
    }

    /// # Errors
    /// [`NameError::Backend`] for an invalid character or length.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        let fits = (1..=63).contains(&text.len())
            && text
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
        if fits {
            Ok(Self(text.into()))
        } else {
            Err(NameError::Backend(text.to_owned()))
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for BackendName {
    type Error = NameError;
    fn try_from(text: String) -> Result<Self, NameError> {
        Self::parse(&text)
    }
}

impl From<BackendName> for String {
    fn from(name: BackendName) -> Self {
        name.0.as_ref().to_owned()
    }
}

impl fmt::Display for BackendName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Kind of place inside a backend where a lock was found: `key`, `hash`, `mutex`, `advisory`,
/// `relation`, `table:schema.name`, …
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Source(Arc<str>);

impl Source {
    /// # Errors
    /// [`NameError::Source`] when it is empty, too long or has control characters.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        let fits = (1..=300).contains(&text.len()) && !text.chars().any(char::is_control);
        if fits {
            Ok(Self(text.into()))
        } else {
            Err(NameError::Source(text.to_owned()))
        }
    }

    /// For constants of the adapters.
    pub fn fixed(name: &'static str) -> Self {
        Self(name.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Source {
    type Error = NameError;
    fn try_from(text: String) -> Result<Self, NameError> {
        Self::parse(&text)
    }
}

impl From<Source> for String {
    fn from(source: Source) -> Self {
        source.0.as_ref().to_owned()
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Name of a lock as its users write it: bytes, because Redis and etcd keys are bytes.
///
/// JSON, URLs and pages carry its text form (see [`escape`]); ordering and matching use the
/// bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct Resource(Arc<[u8]>);

impl Resource {
    pub fn from_bytes(bytes: &[u8]) -> Self {
        Self(bytes.into())
    }

    /// From the text form: undoes the escapes of a name that is not UTF-8.
    pub fn from_text(text: &str) -> Self {
        Self(escape::parse(text).into())
    }

    /// All readings of a text form: first the text itself, then, if it has escapes, the
    /// unescaped bytes. Two names can share one text form (`a\\xff` as five characters, or as
    /// two bytes), so callers try both.
    pub fn candidates(text: &str) -> Vec<Self> {
        let literal = Self::from_bytes(text.as_bytes());
        let unescaped = Self::from_text(text);
        if literal == unescaped {
            vec![literal]
        } else {
            vec![literal, unescaped]
        }
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The text form; equal to the name itself if that is UTF-8.
    pub fn text(&self) -> String {
        escape::text(&self.0).into_owned()
    }

    pub fn is_utf8(&self) -> bool {
        std::str::from_utf8(&self.0).is_ok()
    }
}

impl From<String> for Resource {
    fn from(text: String) -> Self {
        Self::from_text(&text)
    }
}

impl From<&str> for Resource {
    fn from(text: &str) -> Self {
        Self::from_bytes(text.as_bytes())
    }
}

impl From<Resource> for String {
    fn from(resource: Resource) -> Self {
        resource.text()
    }
}

impl fmt::Debug for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Resource({:?})", escape::text(&self.0))
    }
}

/// The process or worker that holds or waits. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct OwnerId(Arc<str>);

impl OwnerId {
    pub fn new(text: impl AsRef<str>) -> Self {
        Self(text.as_ref().into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for OwnerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Identifies a lock: backend, source and name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LockId {
    pub backend: BackendName,
    pub source: Source,
    pub resource: Resource,
}
