//! The holding that a checkbox selects: never a query.

use domain::generation::Generation;
use domain::names::{BackendName, Source};

use crate::links;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelectedHolding {
    pub backend: BackendName,
    pub source: Source,
    pub resource: String,
    pub generation: Generation,
}

impl SelectedHolding {
    /// As the value of a field.
    pub fn value(&self) -> String {
        let pairs = [
            ("backend", self.backend.as_str()),
            ("source", self.source.as_str()),
            ("resource", &self.resource),
            ("generation", self.generation.as_str()),
        ];
        links::with_query("", pairs)
    }

    /// Parses a [`value`](Self::value); `None` if invalid.
    pub fn parse(value: &str) -> Option<Self> {
        let pairs = links::pairs(value);
        let get = |wanted: &str| {
            let found = pairs.iter().find(|(name, _)| name == wanted);
            found.map(|(_, value)| value.as_str())
        };
        Some(Self {
            backend: BackendName::parse(get("backend")?).ok()?,
            source: Source::parse(get("source")?).ok()?,
            resource: get("resource")?.to_owned(),
            generation: Generation::new(get("generation")?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkbox_value_survives_a_round_trip() {
        // Separators, line breaks, other scripts, an empty name; and invalid values.
        for resource in ["a&backend=other", "a=b?c", "zwei\nZeilen\r", "锁 %41", ""] {
            let selected = SelectedHolding {
                backend: BackendName::builtin(),
                source: Source::fixed("lease"),
                resource: resource.to_owned(),
                generation: Generation::new("g&1"),
            };
            assert_eq!(SelectedHolding::parse(&selected.value()), Some(selected));
        }
        assert_eq!(SelectedHolding::parse("?backend=builtin&source=lease"), None);
        assert_eq!(SelectedHolding::parse("on"), None);
    }
}
