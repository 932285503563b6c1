//! Waiting on a condition instead of sleeping.

use std::{future::Future, time::Duration};

use tokio::time::{sleep, timeout};

/// Generous for busy machines; not reached when all is well.
const DEADLINE: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(5);
/// For slow or expensive conditions.
const POLL_SLOW: Duration = Duration::from_millis(100);

/// Returns once `condition` holds; panics with `what` after 30 s.
pub async fn eventually(what: &str, condition: impl AsyncFnMut() -> bool) {
    until(DEADLINE, POLL, what, condition).await;
}

/// As [`eventually`], for slow or expensive conditions: checked ten times a second.
pub async fn within(limit: Duration, what: &str, condition: impl AsyncFnMut() -> bool) {
    until(limit, POLL_SLOW, what, condition).await;
}

async fn until(limit: Duration, poll: Duration, what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let held = timeout(limit, async {
        while !condition().await {
            sleep(poll).await;
        }
    });
    held.await
        .unwrap_or_else(|_| panic!("not within {limit:?}: {what}"));
}

/// Whether `future` is still pending after `patience`, which is how a paused server is detected.
pub async fn hangs<F: Future>(patience: Duration, future: F) -> bool {
    timeout(patience, future).await.is_err()
}
