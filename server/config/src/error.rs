//! Errors of a configuration: all of them at once, each with its place and remedy.
//!
//! Never contains the value of a secret.

use std::fmt;

use serde::Serialize;
use thiserror::Error;

use super::provenance::Origin;

/// One error.
#[derive(Debug, Clone, PartialEq, Eq, Error, Serialize)]
pub struct ConfigError {
    /// Path of the key, `backend.orders-db.poll_interval`; empty if it is not about one key.
    pub key: String,
    pub origin: Origin,
    /// What is wrong: one sentence without a full stop.
    pub message: String,
    /// The remedy, in whole sentences.
    pub remedy: String,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.origin != Origin::Default {
            write!(f, "{}: ", self.origin)?;
        }
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        write!(f, "{}. {}", self.message, self.remedy)
    }
}

/// All errors, in the order of the file.
#[derive(Debug, Clone, PartialEq, Eq, Error, Serialize)]
#[serde(transparent)]
pub struct ConfigErrors(pub Vec<ConfigError>);

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_slice() {
            [one] => write!(f, "the configuration has an error:\n  {one}"),
            many => {
                write!(f, "the configuration has {} errors:", many.len())?;
                many.iter().try_for_each(|error| write!(f, "\n  {error}"))
            }
        }
    }
}

impl From<ConfigError> for ConfigErrors {
    fn from(error: ConfigError) -> Self {
        Self(vec![error])
    }
}

/// The known word that is most similar, if one is similar enough.
pub(super) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let allowed = (word.chars().count() / 3).clamp(1, 3);
    known
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(word, candidate), candidate))
        .filter(|(distance, candidate)| {
            *distance <= allowed || (word.len() >= 3 && candidate.starts_with(word))
        })
        .min()
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nearest_key_is_named_only_for_a_typing_error() {
        // One or two wrong letters, swapped letters, a plural, a missing end; no suggestion for an unrelated word.
        let known = [
            "poll_interval",
            "timeout",
            "scan_timeout",
            "unlock_url",
            "url",
            "lease_table",
        ];
        for (word, meant) in [
            ("poll", Some("poll_interval")),
            ("poll_intervall", Some("poll_interval")),
            ("timeuot", Some("timeout")),
            ("lease_tables", Some("lease_table")),
            ("unlockurl", Some("unlock_url")),
            ("colour", None),
            ("x", None),
        ] {
            assert_eq!(nearest(word, known), meant, "{word}");
        }
    }
}
