//! The state of a proxy's link.

use std::time::Duration;

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
            Self::Pass | Self::Slow(_) => true,
            Self::Cut | Self::Blackhole => false,
            Self::OnlyToServer => matches!(way, Way::ToServer),
            Self::OnlyToClient => matches!(way, Way::ToClient),
        }
    }
}
