//! Waiting on a condition instead of sleeping.

use std::{future::Future, time::Duration};

use tokio::time::{sleep, timeout};

/// Generous, because the two cores may be busy; nothing waits for it when all is well.
const DEADLINE: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(5);
/// For conditions that may take long, and cost the servers something each time.
const POLL_SLOW: Duration = Duration::from_millis(100);

/// Returns once `condition` holds; panics with `what` after 30 s.
pub(crate) async fn eventually(what: &str, condition: impl AsyncFnMut() -> bool) {
    until(DEADLINE, POLL, what, condition).await;
}

/// As [`eventually`], with a limit of its own, which is part of what is claimed.
pub(crate) async fn within(limit: Duration, what: &str, condition: impl AsyncFnMut() -> bool) {
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

/// Whether `future` is still unfinished after `patience`: the only thing that a paused server can be asked to prove.
pub(crate) async fn hangs<F: Future>(patience: Duration, future: F) -> bool {
    timeout(patience, future).await.is_err()
}
