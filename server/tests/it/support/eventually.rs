//! Waiting on a condition instead of sleeping.

use std::{future::Future, time::Duration};

use tokio::time::{sleep, timeout};

/// Generous, because the two cores may be busy; nothing waits for it when all is well.
const DEADLINE: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(5);

/// Returns once `condition` holds; panics with `what` after 30 s.
pub(crate) async fn eventually<F: Future<Output = bool>>(what: &str, mut condition: impl FnMut() -> F) {
    let held = timeout(DEADLINE, async {
        while !condition().await {
            sleep(POLL).await;
        }
    });
    held.await
        .unwrap_or_else(|_| panic!("not within {DEADLINE:?}: {what}"));
}

/// Whether `future` is still unfinished after `patience`: the only thing that a paused server can be asked to prove.
pub(crate) async fn hangs<F: Future>(patience: Duration, future: F) -> bool {
    timeout(patience, future).await.is_err()
}
