//! Monotonic time. The wall clock can be set; a tick only grows.

use serde::{Deserialize, Serialize};

/// Milliseconds of the server's monotonic clock since the process started. Never compared
/// across processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Tick(pub i64);

impl Tick {
    /// Milliseconds from `earlier` to `self`; negative when `earlier` is later.
    pub const fn since(self, earlier: Self) -> i64 {
        self.0 - earlier.0
    }

    #[must_use]
    pub const fn plus(self, ms: i64) -> Self {
        Self(self.0.saturating_add(ms))
    }
}
