//! Counters of one proxy.

use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes that passed: a fault run counts only when there was traffic, and when the fault hit some of it.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    pub(super) accepted: AtomicU64,
    pub(super) turned_away: AtomicU64,
    pub(super) reset: AtomicU64,
    pub(super) to_server_bytes: AtomicU64,
    pub(super) to_client_bytes: AtomicU64,
}

impl Traffic {
    /// Connections taken, since the start.
    pub(crate) fn accepted(&self) -> u64 {
        self.accepted.load(Ordering::Relaxed)
    }

    /// Connections closed at once because too many were open.
    pub(crate) fn turned_away(&self) -> u64 {
        self.turned_away.load(Ordering::Relaxed)
    }

    /// Connections ended by a reset: by [`Link::Cut`], or because the server was not there or reset its side.
    pub(crate) fn reset(&self) -> u64 {
        self.reset.load(Ordering::Relaxed)
    }

    /// Bytes carried to the server and to clients.
    pub(crate) fn bytes(&self) -> (u64, u64) {
        (
            self.to_server_bytes.load(Ordering::Relaxed),
            self.to_client_bytes.load(Ordering::Relaxed),
        )
    }
}
