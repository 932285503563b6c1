//! What a proxy's link does with what is sent over it.

use std::time::Duration;

/// What the link does. Applies to open connections and to new ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Link {
    /// Carries everything.
    Pass,
    /// Open connections are reset, new ones are refused (nobody listens).
    Cut,
    /// Connections stay open and new ones are accepted, but nothing is carried, in either direction.
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
