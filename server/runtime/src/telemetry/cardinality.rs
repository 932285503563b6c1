//! Limits the cardinality of metrics: the first templates of names get a series each, all others share `other`, so
//! that the size of the monitoring store does not depend on names chosen by clients.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use opentelemetry::StringValue;
use parking_lot::Mutex;

/// Templates per backend, and in total.
pub const PER_BACKEND_MAX: usize = 100;
pub const ALL_MAX: usize = 300;
/// Label of all other templates.
pub const OTHER: &str = "other";

#[derive(Debug, Default)]
pub struct Prefixes(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    of: HashMap<Box<str>, HashSet<Arc<str>>>,
    all: usize,
}

impl Prefixes {
    /// The template if it has a series or gets one, otherwise `other`.
    pub fn intern(&self, backend: &str, template: &Arc<str>) -> StringValue {
        // The inventory's label for unmatched names contains a space, unlike any template.
        if template.contains(' ') {
            return OTHER.into();
        }
        let mut known = self.0.lock();
        let Known { of, all } = &mut *known;
        if let Some(of) = of.get(backend)
            && let Some(kept) = of.get(template)
        {
            return kept.clone().into();
        }
        let many = of.get(backend).map_or(0, HashSet::len);
        if many >= PER_BACKEND_MAX || *all >= ALL_MAX {
            return OTHER.into();
        }
        *all += 1;
        of.entry(backend.into()).or_default().insert(template.clone());
        template.clone().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_beyond_the_cap_are_other_and_known_ones_stay() {
        // One more than allowed per backend, and more backends than allowed in total.
        let prefixes = Prefixes::default();
        let name = |number: usize| Arc::<str>::from(format!("p{number}"));
        for number in 0..PER_BACKEND_MAX {
            assert_eq!(prefixes.intern("a", &name(number)).as_str(), &*name(number));
        }
        assert_eq!(prefixes.intern("a", &name(1_000)).as_str(), OTHER);
        assert_eq!(prefixes.intern("a", &name(7)).as_str(), "p7");
        for backend in ["b", "c", "d"] {
            for number in 0..PER_BACKEND_MAX {
                prefixes.intern(backend, &name(number));
            }
        }
        assert_eq!(prefixes.intern("d", &name(0)).as_str(), OTHER);
        assert_eq!(prefixes.intern("a", &"other names".into()).as_str(), OTHER);
    }
}
