//! Waiting on a condition instead of sleeping.

use std::{future::Future, time::Duration};

use tokio::time::{sleep, timeout};

/// Generous for busy machines; not reached when all is well.
const DEADLINE: Duration = Duration::from_secs(30);
/// Between the first two checks. Each pause is twice as long as the one before, up to the longest: most conditions are requests
/// to a server, whose time is that of the other tests.
const POLL: Duration = Duration::from_millis(5);
const POLL_LONGEST: Duration = Duration::from_millis(50);
/// For slow or expensive conditions.
const POLL_SLOW: Duration = Duration::from_millis(100);

/// Returns once `condition` holds; panics with `what` after 30 s.
pub async fn eventually(what: &str, condition: impl AsyncFnMut() -> bool) {
    until(DEADLINE, [POLL, POLL_LONGEST], what, condition).await;
}

/// As [`eventually`], for slow or expensive conditions: checked ten times a second, and less often if more than a minute is allowed.
pub async fn within(limit: Duration, what: &str, condition: impl AsyncFnMut() -> bool) {
    until(limit, [POLL_SLOW, POLL_SLOW.max(limit / 600)], what, condition).await;
}

async fn until(
    limit: Duration,
    [mut poll, longest]: [Duration; 2],
    what: &str,
    mut condition: impl AsyncFnMut() -> bool,
) {
    let held = timeout(limit, async {
        while !condition().await {
            sleep(poll).await;
            poll = longest.min(poll * 2);
        }
    });
    held.await
        .unwrap_or_else(|_| panic!("not within {limit:?}: {what}"));
}

/// Whether `future` is still pending after `patience`, which is how a paused server is detected.
pub async fn hangs<F: Future>(patience: Duration, future: F) -> bool {
    timeout(patience, future).await.is_err()
}
