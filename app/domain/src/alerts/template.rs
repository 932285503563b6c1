//! Message templates of notifications: text with placeholders from a closed list.

use std::collections::BTreeMap;

/// Names allowed in braces. A literal brace is written twice.
pub const PLACEHOLDERS: [&str; 9] = [
    "rule", "severity", "subject", "resource", "backend", "prefix", "owner", "why", "runbook",
];

/// Alternating text and placeholders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template(Vec<Part>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Name(&'static str),
}

impl Template {
    /// # Errors
    /// The reason and its position.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            plain.push_str(&rest[..at]);
            let brace = &rest[at..=at];
            rest = &rest[at + 1..];
            if let Some(tail) = rest.strip_prefix(brace) {
                plain.push_str(brace);
                rest = tail;
                continue;
            }
            if brace == "}" {
                return Err("a } closes nothing".to_owned());
            }
            let end = rest.find('}').ok_or("a { is not closed")?;
            let name = rest[..end].trim();
            let known = PLACEHOLDERS.into_iter().find(|known| *known == name);
            let known = known.ok_or_else(|| format!("{{{name}}} is not a placeholder"))?;
            parts.push(Part::Text(std::mem::take(&mut plain)));
            parts.push(Part::Name(known));
            rest = &rest[end + 1..];
        }
        plain.push_str(rest);
        parts.push(Part::Text(plain));
        Ok(Self(parts))
    }

    /// Placeholders without a value are left out.
    pub fn fill(&self, values: &BTreeMap<&'static str, String>) -> String {
        let part = |part: &Part| match part {
            Part::Text(text) => text.clone(),
            Part::Name(name) => values.get(name).cloned().unwrap_or_default(),
        };
        self.0.iter().map(part).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_fill_known_names_and_refuse_the_rest() {
        // Braces, spaces in them, a missing value; then each error.
        let values = BTreeMap::from([("resource", "a{b}".to_owned())]);
        let fill = |text: &str| Template::parse(text).map(|template| template.fill(&values));
        assert_eq!(
            fill("{{x}} { resource } by {owner}."),
            Ok("{x} a{b} by .".to_owned())
        );
        for bad in ["{resource", "resource}", "{nothing}", "{}", "{{resource}"] {
            assert!(fill(bad).is_err(), "{bad}");
        }
    }
}
