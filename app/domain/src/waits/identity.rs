//! Identity rules: when owners of different backends are one program. Only what the operator
//! has configured; without a rule, nothing is joined.

use std::fmt;

use thiserror::Error;

use super::{IdentityField, WaitParty};
use crate::backend::BackendKind;
use crate::names::BackendName;

/// Longest template, in bytes, and most placeholders in it.
pub const TEMPLATE_BYTES_MAX: usize = 200;
pub const PLACEHOLDERS_MAX: usize = 8;

/// One configured rule. Owners that it recognizes with the same values are one owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdentityRule {
    pub name: String,
    pub matches: Vec<IdentityMatch>,
}

/// Where a rule finds the identity on one backend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdentityMatch {
    pub backend: BackendName,
    pub field: IdentityField,
    pub template: IdentityTemplate,
}

/// `{service}-{pod}`: literal text and placeholders. It matches the whole value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdentityTemplate {
    text: String,
    parts: Vec<TemplatePart>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum TemplatePart {
    Literal(String),
    Placeholder(String),
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TemplateError {
    #[error("is empty")]
    Empty,
    #[error("is longer than {TEMPLATE_BYTES_MAX} bytes")]
    TooLong,
    #[error("has no placeholder such as {{worker}}, so every owner would be the same")]
    NoPlaceholder,
    #[error("has more than {PLACEHOLDERS_MAX} placeholders")]
    TooMany,
    #[error("has a brace without its partner")]
    Unbalanced,
    #[error("has the placeholder {{{0}}}, which is not a name of a-z, 0-9 and _")]
    BadName(String),
    #[error("has {{{0}}} twice")]
    Repeated(String),
    #[error("has {{{0}}} directly after another placeholder: where one value ends is not known")]
    Adjacent(String),
}

impl IdentityTemplate {
    /// # Errors
    /// What is wrong, as a clause that follows the template.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        if text.is_empty() {
            return Err(TemplateError::Empty);
        }
        if text.len() > TEMPLATE_BYTES_MAX {
            return Err(TemplateError::TooLong);
        }
        let mut parts = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let literal_len = rest.find(['{', '}']).unwrap_or(rest.len());
            let (literal, tail) = rest.split_at(literal_len);
            if !literal.is_empty() {
                parts.push(TemplatePart::Literal(literal.to_owned()));
            }
            if tail.is_empty() {
                break;
            }
            let (name, after) = tail
                .strip_prefix('{')
                .and_then(|tail| tail.split_once('}'))
                .ok_or(TemplateError::Unbalanced)?;
            push_placeholder(&mut parts, name)?;
            rest = after;
        }
        let placeholders = parts.iter().filter(|part| part.name().is_some()).count();
        match placeholders {
            0 => Err(TemplateError::NoPlaceholder),
            1..=PLACEHOLDERS_MAX => Ok(Self {
                text: text.to_owned(),
                parts,
            }),
            _ => Err(TemplateError::TooMany),
        }
    }

    /// Names of the placeholders, sorted.
    pub fn placeholders(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.parts.iter().filter_map(TemplatePart::name).collect();
        names.sort_unstable();
        names
    }

    /// Values of the placeholders, sorted by name; `None` if the text does not match. A
    /// placeholder takes at least one character and as few as possible; at the end it takes
    /// everything.
    pub fn capture(&self, text: &str) -> Option<Vec<(String, String)>> {
        let mut values = Vec::new();
        let mut rest = text;
        for (at, part) in self.parts.iter().enumerate() {
            match part {
                TemplatePart::Literal(literal) => rest = rest.strip_prefix(literal.as_str())?,
                TemplatePart::Placeholder(name) => {
                    let len = match self.parts.get(at + 1) {
                        Some(TemplatePart::Literal(next)) => {
                            value_len(rest, next, at + 2 == self.parts.len())?
                        }
                        _ => rest.len(),
                    };
                    if len == 0 {
                        return None;
                    }
                    values.push((name.clone(), rest[..len].to_owned()));
                    rest = &rest[len..];
                }
            }
        }
        values.sort_unstable();
        rest.is_empty().then_some(values)
    }
}

/// Length of a value before `next`, which is the end of the template if `is_last`.
fn value_len(rest: &str, next: &str, is_last: bool) -> Option<usize> {
    if is_last {
        return rest.strip_suffix(next).map(str::len);
    }
    let first = rest.chars().next()?.len_utf8();
    rest[first..].find(next).map(|at| first + at)
}

fn push_placeholder(parts: &mut Vec<TemplatePart>, name: &str) -> Result<(), TemplateError> {
    let is_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    if name.is_empty() || name.len() > 40 || !name.bytes().all(is_name) {
        return Err(TemplateError::BadName(name.to_owned()));
    }
    if parts.iter().any(|part| part.name() == Some(name)) {
        return Err(TemplateError::Repeated(name.to_owned()));
    }
    if parts.last().is_some_and(|part| part.name().is_some()) {
        return Err(TemplateError::Adjacent(name.to_owned()));
    }
    parts.push(TemplatePart::Placeholder(name.to_owned()));
    Ok(())
}

impl TemplatePart {
    fn name(&self) -> Option<&str> {
        match self {
            Self::Placeholder(name) => Some(name),
            Self::Literal(_) => None,
        }
    }
}

impl fmt::Display for IdentityTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Why a rule recognizes an owner: the rule, the field, and the values found in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recognition {
    pub rule: usize,
    pub field: IdentityField,
    /// By name of the placeholder.
    pub values: Vec<(String, String)>,
}

/// Every rule that recognizes an owner of a backend; per rule, its first match.
pub fn recognize(rules: &[IdentityRule], backend: &BackendName, party: &WaitParty) -> Vec<Recognition> {
    let by_rule = |(index, rule): (usize, &IdentityRule)| {
        let on_backend = rule.matches.iter().filter(|one| one.backend == *backend);
        on_backend
            .filter_map(|one| Some((one.field, one.template.capture(party.field(one.field)?)?)))
            .map(|(field, values)| Recognition {
                rule: index,
                field,
                values,
            })
            .next()
    };
    rules.iter().enumerate().filter_map(by_rule).collect()
}

/// Why a field cannot be used on a kind of backend; `None` if it can.
pub fn refuse_field(kind: BackendKind, field: IdentityField) -> Option<String> {
    let reported = kind.identity_fields();
    if reported.is_empty() {
        return Some(format!("{} reports no waiters", kind.as_str()));
    }
    (!reported.contains(&field)).then(|| {
        let names: Vec<&str> = reported.iter().map(|field| field.as_str()).collect();
        format!("{} reports {}", kind.as_str(), names.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn captured(template: &str, text: &str) -> Option<Vec<String>> {
        let values = IdentityTemplate::parse(template).unwrap().capture(text)?;
        Some(values.into_iter().map(|(_, value)| value).collect())
    }

    #[test]
    fn a_template_matches_the_whole_value_or_nothing() {
        // One placeholder, literals on both sides, the shortest value first, and no match.
        assert_eq!(captured("{worker}", "w-7"), Some(vec!["w-7".into()]));
        assert_eq!(captured("app-{worker}:x", "app-w:x:x"), Some(vec!["w:x".into()]));
        assert_eq!(
            captured("{service}-{pod}", "order-api-7"),
            Some(vec!["api-7".into(), "order".into()])
        );
        assert_eq!(
            captured("{service}-{pod}", "--x"),
            Some(vec!["x".into(), "-".into()])
        );
        for text in ["", "order", "order-", "-7"] {
            assert_eq!(captured("{service}-{pod}", text), None, "{text}");
        }
        assert_eq!(captured("app-{worker}", "App-w"), None);
    }

    #[test]
    fn a_template_that_could_join_by_mistake_is_refused() {
        let refused = |text: &str| IdentityTemplate::parse(text).unwrap_err().to_string();
        assert!(refused("worker").contains("every owner would be the same"));
        assert!(refused("{a}{b}").contains("directly after"));
        assert!(refused("{a}-{a}").contains("twice"));
        assert!(refused("{a").contains("partner") && refused("a}").contains("partner"));
        assert!(refused("{A}").contains("a-z") && refused("{}").contains("a-z"));
        assert_eq!(refused(""), "is empty");
        assert!(refused(&"x".repeat(TEMPLATE_BYTES_MAX + 1)).contains("longer"));
    }

    proptest! {
        #[test]
        fn values_and_literals_give_the_text_again(text in "[a-c:/-]{0,12}") {
            // Two different texts never have the same values: a template joins no two owners.
            for template in ["{x}", "{x}-{y}", "a{x}/{y}:", "{x}::{y}"] {
                let parsed = IdentityTemplate::parse(template).unwrap();
                if let Some(values) = parsed.capture(&text) {
                    let mut again = template.to_owned();
                    for (name, value) in values {
                        again = again.replace(&format!("{{{name}}}"), &value);
                    }
                    prop_assert_eq!(&again, &text);
                }
            }
        }
    }
}
