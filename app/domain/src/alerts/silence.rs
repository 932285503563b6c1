//! Silences: matching alerts are evaluated and shown, but not notified until the silence ends.

use serde::{Deserialize, Serialize};

use super::field_error::FieldError;
use super::labels::{LABELS, Labels};
use super::limits::{MATCHERS_MAX, SILENCE_MS_MAX, TEXT_CHARS_MAX};
use super::pattern::Pattern;
use super::unit::Unit;

/// One label and its pattern with `*`. For prefix and resource it matches the beginning of the
/// name, on whole segments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Matcher {
    pub label: &'static str,
    pub value: Pattern,
}

impl Matcher {
    fn matches(&self, labels: &Labels) -> bool {
        let value = |name: &str| labels.get(name).map(String::as_str);
        match self.label {
            // An alert on a whole prefix has no resource.
            "prefix" | "resource" => value("resource")
                .or_else(|| value("prefix"))
                .is_some_and(|name| self.value.covers(name.as_bytes())),
            "rule" => [value("rule"), value("alertname")]
                .into_iter()
                .flatten()
                .any(|name| self.value.matches(name)),
            label => value(label).is_some_and(|value| self.value.matches(value)),
        }
    }

    /// `prefix = tenant_77:`
    pub fn display_name(&self) -> String {
        format!("{} = {}", self.label, self.value.as_str())
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Silence {
    pub id: String,
    /// All must match.
    pub matchers: Vec<Matcher>,
    /// Milliseconds since 1970.
    pub starts_at: i64,
    pub ends_at: i64,
    pub comment: String,
    pub by: String,
    /// Alerts that it suppressed.
    pub suppressed: u64,
}

impl Silence {
    pub fn matches(&self, labels: &Labels) -> bool {
        !self.matchers.is_empty() && self.matchers.iter().all(|matcher| matcher.matches(labels))
    }

    /// It begins when it is stored: a server with a clock that is behind that of its author's server does not wait.
    pub const fn is_active(&self, now: i64) -> bool {
        now < self.ends_at
    }
}

/// Input of a silence. The author is the signed-in user, never a field.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SilenceDraft {
    /// Label and value.
    pub matchers: Vec<(String, String)>,
    /// Duration from now on: `2h`.
    pub lasts: String,
    pub comment: String,
}

impl SilenceDraft {
    /// Matchers, duration in milliseconds, reason.
    ///
    /// # Errors
    /// All validation errors.
    pub fn parse(&self) -> Result<(Vec<Matcher>, i64, String), Vec<FieldError>> {
        let mut faults = Vec::new();
        let matchers = self.matchers(&mut faults);
        let length_ms = Self::parse_length(&self.lasts).unwrap_or_else(|fault| {
            faults.push(fault);
            0
        });
        let comment = self.comment.trim().to_owned();
        if comment.chars().filter(|c| c.is_alphanumeric()).count() < 3 {
            let remedy = "give a short reason";
            faults.push(FieldError::new("comment", "is missing", remedy));
        } else if comment.chars().count() > TEXT_CHARS_MAX {
            let remedy = format!("use at most {TEXT_CHARS_MAX} characters");
            faults.push(FieldError::new("comment", "is too long", remedy));
        }
        if faults.is_empty() {
            Ok((matchers, length_ms, comment))
        } else {
            Err(faults)
        }
    }

    /// Length of a silence in milliseconds.
    ///
    /// # Errors
    /// Of the field `lasts`.
    pub fn parse_length(text: &str) -> Result<i64, FieldError> {
        if text.trim().is_empty() {
            let why = "is missing: a silence must end";
            return Err(FieldError::new("lasts", why, "write how long, such as 2h or 3d"));
        }
        match Unit::Duration.parse(text.trim()) {
            Ok(ms) if (60_000..=SILENCE_MS_MAX).contains(&ms) => Ok(ms),
            Ok(_) => Err(FieldError::new("lasts", "is out of range", "use 1m to 90d")),
            Err(expected) => Err(FieldError::new(
                "lasts",
                "cannot be read",
                format!("write what {expected}"),
            )),
        }
    }

    /// Parses the matchers alone, to count the alerts that they match now.
    pub fn matchers(&self, faults: &mut Vec<FieldError>) -> Vec<Matcher> {
        let mut matchers = Vec::new();
        let filled = self.matchers.iter();
        let filled = filled.filter(|(label, value)| !label.is_empty() && !value.trim().is_empty());
        for (label, value) in filled {
            let Some(label) = LABELS.into_iter().find(|known| known == label) else {
                let remedy = format!("use {}", LABELS.join(", "));
                faults.push(FieldError::new(
                    "matchers",
                    format!("{label:?} is not a label"),
                    remedy,
                ));
                continue;
            };
            match Pattern::parse(value.trim()) {
                Ok(value) if value.as_str().chars().all(|c| c == '*') => {
                    let why = format!("{label} = {} matches everything", value.as_str());
                    faults.push(FieldError::new("matchers", why, "name what it is about"));
                }
                Ok(value) => matchers.push(Matcher { label, value }),
                Err(why) => faults.push(FieldError::new("matchers", why, "use a name, with * as wildcard")),
            }
        }
        if matchers.len() > MATCHERS_MAX {
            let remedy = format!("use at most {MATCHERS_MAX}");
            faults.push(FieldError::new("matchers", "are too many", remedy));
        }
        if matchers.is_empty() && faults.is_empty() {
            let why = "are missing: it would silence everything";
            faults.push(FieldError::new("matchers", why, "name what it is about"));
        }
        matchers
    }
}
