//! Remedies of problems that have the same one wherever they occur.

/// For the client, and for the operator where retries do not help.
pub(super) fn find_remedy(code: &str) -> Option<&'static str> {
    match code {
        "overloaded" => Some(
            "Retry after the seconds in Retry-After, with fewer requests at once or with batches. If it lasts, check the \
             load of the server and the latency of its store.",
        ),
        "shutting_down" => Some(
            "Retry after the seconds in Retry-After: another server answers at once, this one after its restart.",
        ),
        "store_unavailable" => Some(
            "Retry after the seconds in Retry-After, with the same Idempotency-Key. If it lasts, check the store: the log of \
             the server and `leasehold doctor` show the error.",
        ),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Problem;
    use app::console::ConsoleError;
    use lease::LeaseError;

    #[test]
    fn temporary_problems_have_a_remedy_and_retry_after() {
        // However they occur; a more specific remedy replaces that of the code.
        let search = ConsoleError::Busy { retry_after_s: 1 };
        let history = ConsoleError::Unavailable {
            what: "The history is unavailable".to_owned(),
        };
        for (problem, code, remedy) in [
            (
                Problem::from(LeaseError::Overloaded),
                "overloaded",
                "fewer requests",
            ),
            (Problem::from(search), "overloaded", "narrow the search"),
            (
                Problem::from(LeaseError::ShuttingDown),
                "shutting_down",
                "another server",
            ),
            (
                Problem::from(LeaseError::Unavailable),
                "store_unavailable",
                "Idempotency-Key",
            ),
            (Problem::from(history), "store_unavailable", "leasehold doctor"),
            (
                Problem::store_unavailable(),
                "store_unavailable",
                "leasehold doctor",
            ),
        ] {
            assert_eq!((problem.status, problem.code), (503, code));
            assert_eq!(problem.retry_after_s, Some(1), "{code}");
            let found = problem.remedy.unwrap();
            assert!(
                found.contains("Retry-After") && found.contains(remedy),
                "{code}: {found}"
            );
        }
        assert_eq!(Problem::from(LeaseError::NotFound).remedy, None);
    }
}
