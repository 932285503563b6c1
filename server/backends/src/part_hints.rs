//! Change notifications of several parts (servers, or prefixes of keys), merged into those of one backend.

use std::sync::Arc;

use domain::backend::WatchState;
use domain::names::{Resource, Source};
use parking_lot::Mutex;

use crate::Hints;

/// Name and state of one part; `None` until it is known.
type KnownState = Option<(String, WatchState)>;

/// Notifications of one of several parts.
#[derive(Clone)]
pub(super) struct PartHints {
    hints: Hints,
    states: Arc<Mutex<Vec<KnownState>>>,
    index: usize,
    name: String,
}

impl PartHints {
    /// For a backend of one part.
    pub(super) fn single(hints: &Hints) -> Self {
        Self::of_parts(hints, [""].into_iter()).remove(0)
    }

    /// For each of these parts.
    pub(super) fn of_parts<'a>(hints: &Hints, names: impl Iterator<Item = &'a str>) -> Vec<Self> {
        let names: Vec<&str> = names.collect();
        let states = Arc::new(Mutex::new(vec![None; names.len()]));
        let part = |(index, name): (usize, &&str)| Self {
            hints: hints.clone(),
            states: states.clone(),
            index,
            name: (*name).to_owned(),
        };
        names.iter().enumerate().map(part).collect()
    }

    pub(super) fn relist(&self) {
        self.hints.relist();
    }

    pub(super) fn changed(&self, source: Source, resource: Resource) {
        self.hints.changed(source, resource);
    }

    /// The backend's watch is live if that of each part is.
    pub(super) fn state(&self, state: WatchState) {
        let mut states = self.states.lock();
        if let Some(own_state) = states.get_mut(self.index) {
            *own_state = Some((self.name.clone(), state));
        }
        if let Some(worst) = worst(&states) {
            self.hints.state(worst);
        }
    }
}

/// `None`: all known ones are live, and others are not known yet.
fn worst(states: &[KnownState]) -> Option<WatchState> {
    let with_name = |name: &str, why: &str| {
        if name.is_empty() {
            why.to_owned()
        } else {
            format!("{name}: {why}")
        }
    };
    let known = || states.iter().flatten();
    let lost = known().find_map(|(name, state)| match state {
        WatchState::Reconnecting { since, why } => Some(WatchState::Reconnecting {
            since: *since,
            why: with_name(name, why),
        }),
        WatchState::Live | WatchState::Off { .. } => None,
    });
    let off = || {
        known().find_map(|(name, state)| match state {
            WatchState::Off { why } => Some(WatchState::Off {
                why: with_name(name, why),
            }),
            WatchState::Live | WatchState::Reconnecting { .. } => None,
        })
    };
    let live = || states.iter().all(Option::is_some).then_some(WatchState::Live);
    lost.or_else(off).or_else(live)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_watch_is_live_once_that_of_each_part_is() {
        // One of two turns off, then recovers.
        let hints = Hints::default();
        let parts = PartHints::of_parts(&hints, ["a", "b"].into_iter());
        parts[0].state(WatchState::Live);
        parts[1].state(WatchState::Off { why: "no".to_owned() });
        let off = WatchState::Off {
            why: "b: no".to_owned(),
        };
        assert_eq!(hints.take().await.state, Some(off));
        parts[1].state(WatchState::Live);
        assert_eq!(hints.take().await.state, Some(WatchState::Live));
    }
}
