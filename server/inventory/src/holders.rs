//! Current holders and scan times, for previews.

use domain::alerts::{HolderNow, ScanTimes};
use domain::backend::BackendStatus;
use domain::names::{BackendName, LockId, Source};

use super::Inventory;
use super::missing_reasons::FILLED;
use super::status;
use runtime::clock::ClockReading;

impl Inventory {
    /// `None`: unknown backend or source.
    pub fn scan_times(&self, backend: &BackendName, source: &Source) -> Option<ScanTimes> {
        let slot = self.slot(backend)?;
        let state = slot.read();
        let info = state.shard.sources.iter().find(|info| info.source == *source)?;
        Some(ScanTimes {
            poll_interval_ms: slot.info.poll_interval_ms,
            grain_ms: info.grain_ms,
        })
    }

    /// Since when the backend has not been observed, in milliseconds since 1970; `None` if it is.
    pub fn unobserved_since(&self, backend: &BackendName, now: ClockReading) -> Option<i64> {
        let slot = self.slot(backend)?;
        let passes = &slot.read().passes;
        let since = status::unobserved_since(slot.info.poll_interval_ms, passes, now.tick)?;
        Some(now.wall_at(since).timestamp_millis())
    }

    /// The holder, in the terms of the history.
    pub fn holder(&self, lock: &LockId, now: ClockReading) -> HolderNow {
        let Some(slot) = self.slot(&lock.backend) else {
            return HolderNow::Unknown;
        };
        let state = slot.read();
        let status = slot.status(&state, now);
        if status.blinds_rows() || status == BackendStatus::Starting {
            return HolderNow::Unknown;
        }
        let Some(entry) = state.shard.find(&lock.source, &lock.resource) else {
            return HolderNow::Free;
        };
        HolderNow::Held {
            owner: entry.owner.as_deref().map(str::to_owned),
            token: (entry.gaps.token == FILLED).then(|| entry.token.to_string()),
        }
    }
}
