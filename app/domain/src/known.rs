//! A value that may be unknown, or known not to exist, with the reason. It survives through to the pixel.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// A reason for people, one clause without a full stop: "Redis issues no fencing tokens".
pub type Why = Cow<'static, str>;

/// What one backend could tell about one field.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Known<T> {
    /// The backend, or our watching of it, says so.
    Known(T),
    /// It exists, but this backend or we cannot tell.
    Unknown(Why),
    /// There is none: no TTL, no token on this kind of lock.
    Absent(Why),
}

impl<T> Known<T> {
    pub const fn unknown(why: &'static str) -> Self {
        Self::Unknown(Cow::Borrowed(why))
    }

    pub const fn absent(why: &'static str) -> Self {
        Self::Absent(Cow::Borrowed(why))
    }

    pub fn as_ref(&self) -> Known<&T> {
        match self {
            Self::Known(value) => Known::Known(value),
            Self::Unknown(why) => Known::Unknown(why.clone()),
            Self::Absent(why) => Known::Absent(why.clone()),
        }
    }

    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Known<U> {
        match self {
            Self::Known(value) => Known::Known(change(value)),
            Self::Unknown(why) => Known::Unknown(why),
            Self::Absent(why) => Known::Absent(why),
        }
    }

    /// The value, if it is known; what stands in for it is for the caller to show.
    pub fn known(&self) -> Option<&T> {
        match self {
            Self::Known(value) => Some(value),
            Self::Unknown(_) | Self::Absent(_) => None,
        }
    }

    pub fn is_known(&self) -> bool {
        matches!(self, Self::Known(_))
    }

    pub fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown(_))
    }

    pub fn is_absent(&self) -> bool {
        matches!(self, Self::Absent(_))
    }

    /// The reason why there is no value.
    pub fn why(&self) -> Option<&str> {
        match self {
            Self::Known(_) => None,
            Self::Unknown(why) | Self::Absent(why) => Some(why),
        }
    }
}
