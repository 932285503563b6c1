//! Bulk unlock: several forced unlocks, selected one by one, each confirmed by its own name.
//! Only ticked locks are affected, however the page is reloaded, shared or filtered.

mod confirm;
mod select;

use domain::generation::Generation;
use domain::names::{BackendName, Source};
use domain::unlock::Unlock;

use crate::links;

pub use confirm::{BulkItem, several};
pub use select::{Choose, NotBegun, choose};

/// URLs of selection and confirmation.
pub const CHOOSE: &str = "/unlocks";
pub const CONFIRM: &str = "/unlocks/several";

/// The holding that a checkbox selects: never a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ticked {
    pub backend: BackendName,
    pub source: Source,
    pub resource: String,
    pub generation: Generation,
}

impl Ticked {
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

/// URL of the second page for these ids; it cannot name others.
pub fn confirm_path<'a>(ids: impl IntoIterator<Item = &'a str>) -> String {
    links::with_query(CONFIRM, ids.into_iter().map(|id| ("id", id)))
}

/// Name of the field in which the lock's name is typed.
pub fn typed_field(unlock: &Unlock) -> String {
    format!("resource-{}", unlock.id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkbox_value_survives_a_round_trip() {
        // Separators, line breaks, other scripts, an empty name; and invalid values.
        for resource in ["a&backend=other", "a=b?c", "zwei\nZeilen\r", "锁 %41", ""] {
            let ticked = Ticked {
                backend: BackendName::builtin(),
                source: Source::fixed("lease"),
                resource: resource.to_owned(),
                generation: Generation::new("g&1"),
            };
            assert_eq!(Ticked::parse(&ticked.value()), Some(ticked));
        }
        assert_eq!(Ticked::parse("?backend=builtin&source=lease"), None);
        assert_eq!(Ticked::parse("on"), None);
    }
}
