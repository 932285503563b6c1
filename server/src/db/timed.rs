//! How long the store took, told in one place for everybody who asks it: by the part of us that asked, so that there are as
//! many series as parts and no more.

use crate::clock::Stopwatch;
use crate::telemetry::meters;

pub(crate) const SQLITE: &str = "sqlite";
pub(crate) const POSTGRES: &str = "postgresql";

/// One question to the store. Dropped without [`came`](Self::came) it failed, or nobody waited for it any more.
pub(crate) struct Timed {
    system: &'static str,
    operation: &'static str,
    watch: Stopwatch,
    came: bool,
}

impl Timed {
    pub(crate) fn begin(system: &'static str, operation: &'static str) -> Self {
        Self {
            system,
            operation,
            watch: Stopwatch::start(),
            came: false,
        }
    }

    pub(crate) fn came(mut self) {
        self.came = true;
    }
}

impl Drop for Timed {
    fn drop(&mut self) {
        meters().statement(self.system, self.operation, !self.came, self.watch.seconds());
    }
}

/// `leasehold::alerts::store` → `alerts`
pub(crate) const fn part(module: &'static str) -> &'static str {
    let Some((_, inner)) = after(module) else {
        return module;
    };
    match after(inner) {
        Some((part, _)) => part,
        None => inner,
    }
}

/// What is before the first `::`, and what is after it.
const fn after(path: &'static str) -> Option<(&'static str, &'static str)> {
    let bytes = path.as_bytes();
    let mut at = 0;
    while at + 1 < bytes.len() {
        if bytes[at] == b':' && bytes[at + 1] == b':' {
            let (before, rest) = path.split_at(at);
            return Some((before, rest.split_at(2).1));
        }
        at += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_come_counts_as_a_failure() {
        // One that came to its end and one that was left.
        Timed::begin(SQLITE, "comes").came();
        drop(Timed::begin(SQLITE, "fails"));
        let page = crate::telemetry::scrape().unwrap();
        let has_failed = |operation: &str| {
            let counted = page
                .lines()
                .filter(|line| line.starts_with("db_client_operation_duration_seconds_count"));
            let own = format!("db_operation_name=\"{operation}\"");
            counted
                .filter(|line| line.contains(&own))
                .any(|line| line.contains("error_type"))
        };
        assert!(has_failed("fails") && !has_failed("comes"));
    }

    #[test]
    fn a_part_is_the_first_module_of_ours() {
        // However deep the caller stands; the crate itself.
        assert_eq!(part("leasehold::alerts::store"), "alerts");
        assert_eq!(part("leasehold::identity::oidc::flow"), "identity");
        assert_eq!(part("leasehold::audit"), "audit");
        assert_eq!(part("leasehold"), "leasehold");
    }
}
