//! Change notifications: one blocking query per prefix, on the names of its keys. It tells that
//! something below the prefix changed and not what, so it requests a scan.

use std::sync::atomic::Ordering;
use std::time::Duration;

use domain::backend::WatchState;
use futures::future::join_all;

use super::ConsulBackend;
use super::error::ConsulError;
use crate::Hints;
use crate::part_hints::PartHints;

const BACKOFF_MIN: Duration = Duration::from_millis(200);
const BACKOFF_MAX: Duration = Duration::from_secs(10);
/// Consul answers a blocking query after this time even without a change, plus a sixteenth.
const WAIT: Duration = Duration::from_secs(30);
/// Shortest pause after a change, and the pause as a multiple of the duration of a scan.
const PAUSE_MIN: Duration = Duration::from_millis(100);
const SCAN_SHARE: u64 = 4;

impl ConsulBackend {
    pub(super) async fn watch_prefixes(&self, hints: &Hints) {
        let prefixes = &self.http.settings.prefixes;
        let hints = PartHints::of_parts(hints, prefixes.iter().map(String::as_str));
        let watches = prefixes.iter().zip(&hints);
        join_all(watches.map(|(prefix, hints)| self.watch_prefix(prefix, hints))).await;
    }

    /// Never returns.
    async fn watch_prefix(&self, prefix: &str, hints: &PartHints) {
        let mut index = 0;
        let mut backoff = BACKOFF_MIN;
        let mut down_since = None;
        let mut is_live = false;
        loop {
            match self.next_index(prefix, index).await {
                Ok(next) => {
                    if !is_live {
                        hints.state(WatchState::Live);
                        is_live = true;
                    }
                    // After a failure changes may have been missed; so may they when the index
                    // goes back, as it does when the servers' state is restored.
                    if next != index && (index > 0 || down_since.is_some()) {
                        hints.relist();
                        tokio::time::sleep(self.pause()).await;
                    }
                    index = if next < index { 0 } else { next };
                    (backoff, down_since) = (BACKOFF_MIN, None);
                }
                Err(fault) => {
                    let since = *down_since.get_or_insert_with(|| self.http.clock.now().wall);
                    let why = fault.error.to_string();
                    hints.state(WatchState::Reconnecting { since, why });
                    is_live = false;
                    index = 0;
                    tokio::time::sleep(backoff).await;
                    backoff = (backoff * 2).min(BACKOFF_MAX);
                }
            }
        }
    }

    /// The index of the prefix, once it is another one than `index`; at once for 0. Names of one
    /// level are all that the answer has.
    async fn next_index(&self, prefix: &str, index: u64) -> Result<u64, ConsulError> {
        let wait = format!("{}s", WAIT.as_secs());
        let index = index.to_string();
        let mut query = vec![("keys", ""), ("separator", "/")];
        if index != "0" {
            query.extend([("index", index.as_str()), ("wait", wait.as_str())]);
        }
        let url = self.http.key_url(prefix, &query);
        let timeout = WAIT + WAIT / 16 + self.http.settings.timeout;
        let info = self.http.list(url, timeout, |_| Ok(())).await?;
        // 0 would not block.
        Ok(info.index.max(1))
    }

    /// The longer a scan takes, the less often a change starts one.
    fn pause(&self) -> Duration {
        let scan_ms = u64::try_from(self.scan_ms.load(Ordering::Relaxed)).unwrap_or(0);
        let pause = Duration::from_millis(scan_ms.saturating_mul(SCAN_SHARE));
        pause.clamp(PAUSE_MIN, self.http.settings.poll_interval.max(PAUSE_MIN))
    }
}
