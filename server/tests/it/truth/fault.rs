//! The faults, and on which system each can happen.

use std::fmt;

use super::dice::Dice;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum System {
    Table,
    Keys,
    Coord,
}

pub(super) const SYSTEMS: [System; 3] = [System::Table, System::Keys, System::Coord];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Connections are reset and refused.
    Cut,
    /// As `Cut`, for so long that whoever retries ever more seldom has come to do so seldom.
    LongCut,
    /// Nothing comes, nothing goes, and nothing is refused.
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
    /// Every chunk comes 150 ms late. Nothing is to be stale.
    Slow,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Fault {
    pub(super) kind: Kind,
    pub(super) on: System,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} on {:?}", self.kind, self.on)
    }
}

/// Cards in a deck.
pub(super) const DECK: u32 = 13;

/// Every kind once, on a system drawn by lot; restarts and cuts on each. In random order.
pub(super) fn deck(dice: &mut Dice) -> Vec<Fault> {
    let mut deck = Vec::new();
    for on in SYSTEMS {
        deck.push(Fault { kind: Kind::Cut, on });
        deck.push(Fault {
            kind: Kind::Restart,
            on,
        });
    }
    for kind in [
        Kind::LongCut,
        Kind::Blackhole,
        Kind::NoAnswers,
        Kind::Pause,
        Kind::Slow,
    ] {
        deck.push(Fault {
            kind,
            on: *dice.pick(&SYSTEMS),
        });
    }
    deck.push(Fault {
        kind: Kind::Flush,
        on: System::Keys,
    });
    deck.push(Fault {
        kind: Kind::Compaction,
        on: System::Coord,
    });
    dice.shuffle(&mut deck);
    deck
}
