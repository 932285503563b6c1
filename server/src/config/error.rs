//! What is wrong with a configuration: all of it at once, each with its place and what to do about it.
//!
//! No text here ever holds the value of a secret.

use std::fmt;

use serde::Serialize;
use thiserror::Error;

use super::origin::Origin;

/// One mistake.
#[derive(Debug, Clone, PartialEq, Eq, Error, Serialize)]
pub struct ConfigError {
    /// Path of the key, `backend.orders-db.poll`; empty when it is not about one key.
    pub key: String,
    pub origin: Origin,
    /// What is wrong: one sentence without a full stop.
    pub message: String,
    /// What to do: whole sentences.
    pub mend: String,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.origin != Origin::Default {
            write!(f, "{}: ", self.origin)?;
        }
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        write!(f, "{}. {}", self.message, self.mend)
    }
}

/// Every mistake that was found, in the order of the file.
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

/// The known word that a person probably meant.
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
    fn the_nearest_key_is_a_slip_of_the_pen_away_and_nothing_else_is_guessed() {
        // One or two letters off, swapped letters, a plural, a missing end; an unrelated word gets no guess.
        let known = ["poll", "timeout", "budget", "unlock_url", "url", "lease_table"];
        for (word, meant) in [
            ("pol", Some("poll")),
            ("polll", Some("poll")),
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
