//! The state of a proxy's link.

use std::{num::NonZeroU32, time::Duration};

/// The state of the link. Applies to open connections and to new ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Link {
    /// Carries everything.
    Pass,
    /// Open connections are reset, new ones are refused (no listener).
    Cut,
    /// Connections stay open and new ones are accepted, but no data passes in either direction.
    Blackhole,
    /// Requests arrive, answers do not.
    OnlyToServer,
    /// Carries everything up to that many chunks to the server. The last of them arrives, but no answer from then on: the
    /// link is then [`OnlyToServer`](Self::OnlyToServer).
    SilentAfter(NonZeroU32),
    /// Answers arrive, requests do not.
    OnlyToClient,
    /// Each chunk waits that long first, in each direction.
    Slow(Duration),
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Way {
    ToServer,
    ToClient,
}

impl Link {
    pub(super) fn carries(self, way: Way) -> bool {
        match self {
            Self::Pass | Self::Slow(_) | Self::SilentAfter(_) => true,
            Self::Cut | Self::Blackhole => false,
            Self::OnlyToServer => matches!(way, Way::ToServer),
            Self::OnlyToClient => matches!(way, Way::ToClient),
        }
    }

    /// Counts a chunk that is about to go to the server; returns whether the state changed.
    pub(super) fn count_request(&mut self) -> bool {
        let Self::SilentAfter(left) = *self else {
            return false;
        };
        *self = NonZeroU32::new(left.get() - 1).map_or(Self::OnlyToServer, Self::SilentAfter);
        true
    }
}
