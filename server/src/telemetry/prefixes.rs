//! Which templates of names are told apart in metrics: the first so many; the rest is `other`. What a monitoring system
//! stores must not grow with the names that somebody thinks of.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use opentelemetry::StringValue;

/// Templates of one backend, and of all together.
pub const PER_BACKEND_MAX: usize = 100;
pub const ALL_MAX: usize = 300;
/// What the rest is called.
pub const OTHER: &str = "other";

#[derive(Debug, Default)]
pub struct Prefixes(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    of: HashMap<Box<str>, HashSet<Arc<str>>>,
    all: usize,
}

impl Prefixes {
    /// The template itself where it has a place, or gets one.
    pub fn of(&self, backend: &str, template: &Arc<str>) -> StringValue {
        // The inventory's own word for what it does not tell apart has a space, as no template has.
        if template.contains(' ') {
            return OTHER.into();
        }
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
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
    fn beyond_the_cap_templates_are_other_and_what_has_a_place_keeps_it() {
        // One more than a backend may have, and more backends than all may have.
        let prefixes = Prefixes::default();
        let name = |number: usize| Arc::<str>::from(format!("p{number}"));
        for number in 0..PER_BACKEND_MAX {
            assert_eq!(prefixes.of("a", &name(number)).as_str(), &*name(number));
        }
        assert_eq!(prefixes.of("a", &name(1_000)).as_str(), OTHER);
        assert_eq!(prefixes.of("a", &name(7)).as_str(), "p7");
        for backend in ["b", "c", "d"] {
            for number in 0..PER_BACKEND_MAX {
                prefixes.of(backend, &name(number));
            }
        }
        assert_eq!(prefixes.of("d", &name(0)).as_str(), OTHER);
        assert_eq!(prefixes.of("a", &"other names".into()).as_str(), OTHER);
    }
}
