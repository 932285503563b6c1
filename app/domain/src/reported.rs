//! A value that may be unknown or not applicable, with the reason, from the adapter to the
//! page.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// A reason for display, one clause without a full stop: "Redis issues no fencing tokens".
pub type Why = Cow<'static, str>;

/// A field as one backend reports it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reported<T> {
    /// Reported by the backend, or derived from observation.
    Value(T),
    /// It exists, but cannot be determined.
    Unknown(Why),
    /// It does not exist: no TTL, no token on this kind of lock.
    NotApplicable(Why),
}

impl<T> Reported<T> {
    pub const fn unknown(why: &'static str) -> Self {
        Self::Unknown(Cow::Borrowed(why))
    }

    pub const fn absent(why: &'static str) -> Self {
        Self::NotApplicable(Cow::Borrowed(why))
    }

    pub fn as_ref(&self) -> Reported<&T> {
        match self {
            Self::Value(value) => Reported::Value(value),
            Self::Unknown(why) => Reported::Unknown(why.clone()),
            Self::NotApplicable(why) => Reported::NotApplicable(why.clone()),
        }
    }

    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Reported<U> {
        match self {
            Self::Value(value) => Reported::Value(change(value)),
            Self::Unknown(why) => Reported::Unknown(why),
            Self::NotApplicable(why) => Reported::NotApplicable(why),
        }
    }

    /// The value, if it is known; the caller shows a substitute otherwise.
    pub fn known(&self) -> Option<&T> {
        match self {
            Self::Value(value) => Some(value),
            Self::Unknown(_) | Self::NotApplicable(_) => None,
        }
    }

    pub fn is_known(&self) -> bool {
        matches!(self, Self::Value(_))
    }

    pub fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown(_))
    }

    pub fn is_absent(&self) -> bool {
        matches!(self, Self::NotApplicable(_))
    }

    /// The reason why there is no value.
    pub fn why(&self) -> Option<&str> {
        match self {
            Self::Value(_) => None,
            Self::Unknown(why) | Self::NotApplicable(why) => Some(why),
        }
    }
}
