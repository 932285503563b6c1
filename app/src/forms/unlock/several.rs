//! Several forced unlocks at once: chosen one by one, and each confirmed by its own name. What is not ticked is not touched,
//! however the page is reloaded, shared or filtered.

mod choose;
mod confirm;

use domain::generation::Generation;
use domain::names::{BackendName, Source};
use domain::unlock::Unlock;

use crate::links;

pub use choose::{Choose, NotBegun, choose};
pub use confirm::{One, several};

/// Where they are chosen, and where they are confirmed.
pub const CHOOSE: &str = "/unlocks";
pub const CONFIRM: &str = "/unlocks/several";

/// Which holding a tick stands for: never a query.
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

    /// From its [`value`](Self::value); none where it is none of ours.
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

/// The second page's address for these, with nothing in it that could name others.
pub fn confirm_path<'a>(ids: impl IntoIterator<Item = &'a str>) -> String {
    links::with_query(CONFIRM, ids.into_iter().map(|id| ("id", id)))
}

/// The field in which the name of this one is typed.
pub fn typed_field(unlock: &Unlock) -> String {
    format!("resource-{}", unlock.id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tick_stands_for_one_holding_whatever_its_name_holds() {
        // Separators, line breaks, other scripts, nothing at all; and what is no tick of ours.
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
