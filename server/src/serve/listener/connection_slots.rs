//! Connection slots: how many each source may hold, and which connection is closed when all are taken.
//!
//! A source is an IPv4 address or an IPv6 /64 and holds at most its share; declared proxies and exempt networks
//! (loopback) have no limit, because many clients come from there. When all slots are taken, the source with the
//! most connections loses its longest idle one. Declared proxies are the last to lose one.
//!
//! **Invariant:** a new connection is refused only if its own source holds the most connections or its full share,
//! and none of them is idle.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use super::idle_timeout::{Activity, IdleTracker};
use super::limits::Limits;
use config::Network;
use parking_lot::{Mutex, MutexGuard};
use runtime::client_network::ClientNetwork;

pub(super) struct Places {
    limits: Limits,
    /// Networks without a share.
    exempt: Vec<Network>,
    proxies: Vec<Network>,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    next_id: u64,
    total: usize,
    sources: HashMap<ClientNetwork, Source>,
}

struct Source {
    is_proxy: bool,
    connections: HashMap<u64, Arc<IdleTracker>>,
}

/// The slot of one connection, until dropped or reclaimed.
pub(super) struct ConnectionSlot {
    places: Arc<Places>,
    source: ClientNetwork,
    id: u64,
}

impl Places {
    pub(super) fn new(limits: Limits, exempt: Vec<Network>, proxies: Vec<Network>) -> Arc<Self> {
        Arc::new(Self {
            limits,
            exempt,
            proxies,
            held: Mutex::default(),
        })
    }

    /// A slot for a new connection; another connection may be closed for it. `None`: refused.
    pub(super) fn admit(self: &Arc<Self>, peer: IpAddr, idle: &Arc<IdleTracker>) -> Option<ConnectionSlot> {
        let source = ClientNetwork::from(peer);
        let is_proxy = contains(&self.proxies, peer);
        let has_share = !is_proxy && !contains(&self.exempt, peer);
        let mut held = self.lock_slots();
        if has_share && held.count(source) >= self.limits.connections_per_source_max {
            let idle = held.candidate(source).filter(|(_, activity)| activity.is_idle());
            held.close(source, idle?.0);
        }
        if held.total >= self.limits.connections_max {
            let largest = held.largest_with(source)?;
            let (id, activity) = held.candidate(largest)?;
            if largest == source && !activity.is_idle() {
                return None;
            }
            held.close(largest, id);
        }
        let id = held.insert(source, is_proxy, idle.clone());
        Some(ConnectionSlot {
            places: self.clone(),
            source,
            id,
        })
    }

    fn lock_slots(&self) -> MutexGuard<'_, Held> {
        self.held.lock()
    }
}

impl Held {
    fn count(&self, source: ClientNetwork) -> usize {
        self.sources
            .get(&source)
            .map_or(0, |source| source.connections.len())
    }

    /// The connection of a source to close first, with its activity.
    fn candidate(&self, source: ClientNetwork) -> Option<(u64, Activity)> {
        let connections = self.sources.get(&source)?.connections.iter();
        let seen = connections.map(|(id, idle)| (*id, idle.activity()));
        seen.min_by_key(|(_, activity)| *activity)
    }

    /// The source with the most connections including the new one; of equal ones, not the new one's; a proxy only if
    /// there is no other.
    fn largest_with(&self, new: ClientNetwork) -> Option<ClientNetwork> {
        let sources = self.sources.iter().map(|(network, source)| {
            let own = usize::from(*network == new);
            (source.is_proxy, source.connections.len() + own, *network)
        });
        let largest = sources.max_by_key(|(is_proxy, count, network)| (!is_proxy, *count, *network != new));
        largest.map(|(_, _, network)| network)
    }

    fn insert(&mut self, network: ClientNetwork, is_proxy: bool, idle: Arc<IdleTracker>) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        self.total += 1;
        let source = self.sources.entry(network).or_insert_with(|| Source {
            is_proxy,
            connections: HashMap::new(),
        });
        source.connections.insert(id, idle);
        id
    }

    fn close(&mut self, network: ClientNetwork, id: u64) {
        if let Some(idle) = self.remove(network, id) {
            idle.close();
        }
    }

    fn remove(&mut self, network: ClientNetwork, id: u64) -> Option<Arc<IdleTracker>> {
        let source = self.sources.get_mut(&network)?;
        let idle = source.connections.remove(&id)?;
        if source.connections.is_empty() {
            self.sources.remove(&network);
        }
        self.total -= 1;
        Some(idle)
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        drop(self.places.lock_slots().remove(self.source, self.id));
    }
}

fn contains(networks: &[Network], peer: IpAddr) -> bool {
    networks.iter().any(|network| network.contains(peer))
}

#[cfg(test)]
mod tests;
