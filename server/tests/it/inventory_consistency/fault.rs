//! The faults, and on which system each can happen.

use std::fmt;

use super::rng::Dice;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum System {
    Table,
    Keys,
    Coord,
}

pub(super) const SYSTEMS: [System; 3] = [System::Table, System::Keys, System::Coord];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FaultKind {
    /// Connections are reset and refused.
    Cut,
    /// As `Cut`, but long enough for a reconnect backoff to reach its maximum.
    LongCut,
    /// Data is dropped in both directions, and no connection is refused.
    Blackhole,
    /// Requests arrive, answers do not.
    NoAnswers,
    /// SIGSTOP.
    Pause,
    /// kill -9, and back with its data.
    Restart,
    /// All keys gone at once (Redis).
    Flush,
    /// History compacted while the watch is cut (etcd).
    Compaction,
    /// Every chunk arrives 150 ms late. No row may become stale.
    Slow,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct InjectedFault {
    pub(super) kind: FaultKind,
    pub(super) on: System,
}

impl fmt::Display for InjectedFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} on {:?}", self.kind, self.on)
    }
}

/// Cards in a deck.
pub(super) const DECK: u32 = 13;

/// Every kind once, on a system drawn by lot; restarts and cuts on each. In random order.
pub(super) fn deck(dice: &mut Dice) -> Vec<InjectedFault> {
    let mut deck = Vec::new();
    for on in SYSTEMS {
        deck.push(InjectedFault {
            kind: FaultKind::Cut,
            on,
        });
        deck.push(InjectedFault {
            kind: FaultKind::Restart,
            on,
        });
    }
    for kind in [
        FaultKind::LongCut,
        FaultKind::Blackhole,
        FaultKind::NoAnswers,
        FaultKind::Pause,
        FaultKind::Slow,
    ] {
        deck.push(InjectedFault {
            kind,
            on: *dice.pick(&SYSTEMS),
        });
    }
    deck.push(InjectedFault {
        kind: FaultKind::Flush,
        on: System::Keys,
    });
    deck.push(InjectedFault {
        kind: FaultKind::Compaction,
        on: System::Coord,
    });
    dice.shuffle(&mut deck);
    deck
}
