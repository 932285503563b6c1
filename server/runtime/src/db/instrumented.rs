//! Duration metrics of database operations, by the part of the product that issued them: one series per part.

use crate::clock::Stopwatch;
use crate::telemetry::instruments;

pub const SQLITE: &str = "sqlite";
pub const POSTGRES: &str = "postgresql";

/// A database operation. Counts as failed if dropped without [`succeed`](Self::succeed).
pub struct Timed {
    system: &'static str,
    operation: &'static str,
    watch: Stopwatch,
    succeeded: bool,
}

impl Timed {
    pub fn begin(system: &'static str, operation: &'static str) -> Self {
        Self {
            system,
            operation,
            watch: Stopwatch::start(),
            succeeded: false,
        }
    }

    pub fn succeed(mut self) {
        self.succeeded = true;
    }
}

impl Drop for Timed {
    fn drop(&mut self) {
        instruments().statement(self.system, self.operation, !self.succeeded, self.watch.seconds());
    }
}

/// The part that a module belongs to: `leasehold::alerts::store` → `alerts`, `leasehold_lease::store` → `lease`.
pub const fn part(module: &'static str) -> &'static str {
    let (name, rest) = first_segment(module);
    match (after_prefix(name), rest) {
        (Some(part), _) => part,
        (None, Some(rest)) => first_segment(rest).0,
        (None, None) => module,
    }
}

/// `leasehold_lease` → `lease`
const fn after_prefix(name: &'static str) -> Option<&'static str> {
    let prefix = "leasehold_".as_bytes();
    let bytes = name.as_bytes();
    if bytes.len() <= prefix.len() {
        return None;
    }
    let mut at = 0;
    while at < prefix.len() {
        if bytes[at] != prefix[at] {
            return None;
        }
        at += 1;
    }
    Some(name.split_at(prefix.len()).1)
}

/// The text before the first `::`, and the rest.
const fn first_segment(path: &'static str) -> (&'static str, Option<&'static str>) {
    let bytes = path.as_bytes();
    let mut at = 0;
    while at + 1 < bytes.len() {
        if bytes[at] == b':' && bytes[at + 1] == b':' {
            let (before, rest) = path.split_at(at);
            return (before, Some(rest.split_at(2).1));
        }
        at += 1;
    }
    (path, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cancelled_query_counts_as_a_failure() {
        // One that completed and one that was dropped.
        Timed::begin(SQLITE, "comes").succeed();
        drop(Timed::begin(SQLITE, "fails"));
        let page = crate::telemetry::scrape().unwrap();
        let has_failed = |operation: &str| {
            let counted = page
                .lines()
                .filter(|line| line.starts_with("db_client_operation_duration_seconds_count"));
            let label = format!("db_operation_name=\"{operation}\"");
            counted
                .filter(|line| line.contains(&label))
                .any(|line| line.contains("error_type"))
        };
        assert!(has_failed("fails") && !has_failed("comes"));
    }

    #[test]
    fn a_query_is_attributed_to_its_first_own_module() {
        // At any depth; and the crate itself.
        assert_eq!(part("leasehold::alerts::store"), "alerts");
        assert_eq!(part("leasehold::identity::oidc::flow"), "identity");
        assert_eq!(part("leasehold::audit"), "audit");
        assert_eq!(part("leasehold_lease::store::sqlite"), "lease");
        assert_eq!(part("leasehold_lease"), "lease");
        assert_eq!(part("leasehold"), "leasehold");
    }
}
