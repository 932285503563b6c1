//! Which node serves which slots, from `CLUSTER NODES`. Pure.

use std::collections::HashMap;

/// The masters that serve slots.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ClusterMap {
    pub(super) masters: Vec<Master>,
    /// Slots that the answering node hands over or takes over, with the id of the other node.
    pub(super) moving: Vec<Move>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Master {
    pub(super) id: String,
    /// Empty: the host that answered.
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) slots: Vec<(u16, u16)>,
}

/// A slot in the middle of a move.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Move {
    pub(super) slot: u16,
    /// Node that has the keys that are not moved yet.
    pub(super) from: String,
    pub(super) to: String,
}

impl ClusterMap {
    pub(super) fn parse(text: &str) -> Self {
        let mut map = Self::default();
        for line in text.lines() {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let [id, address, flags, _, _, _, _, _, slots @ ..] = fields.as_slice() else {
                continue;
            };
            let is_own = flags.split(',').any(|flag| flag == "myself");
            if !flags.split(',').any(|flag| flag == "master") {
                continue;
            }
            let mut ranges = Vec::new();
            for field in slots {
                match field.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                    Some(moving) if is_own => map.moving.extend(Move::parse(id, moving)),
                    Some(_) => {}
                    None => ranges.extend(range(field)),
                }
            }
            if let (Some((host, port)), false) = (endpoint(address), ranges.is_empty()) {
                map.masters.push(Master {
                    id: (*id).to_owned(),
                    host,
                    port,
                    slots: ranges,
                });
            }
        }
        map
    }

    /// The master of each slot.
    pub(super) fn owners(&self) -> HashMap<u16, &str> {
        let slots = self.masters.iter().flat_map(|master| {
            let slots = master.slots.iter().flat_map(|(first, last)| *first..=*last);
            slots.map(|slot| (slot, master.id.as_str()))
        });
        slots.collect()
    }

    pub(super) fn master_of(&self, slot: u16) -> Option<&Master> {
        let serves = |master: &&Master| {
            master
                .slots
                .iter()
                .any(|(first, last)| (*first..=*last).contains(&slot))
        };
        self.masters.iter().find(serves)
    }

    pub(super) fn by_id(&self, id: &str) -> Option<&Master> {
        self.masters.iter().find(|master| master.id == id)
    }
}

impl Move {
    /// `93->-<id>`: handed over to it; `77-<-<id>`: taken over from it.
    fn parse(own_id: &str, text: &str) -> Option<Self> {
        let (slot, from, to) = if let Some((slot, to)) = text.split_once("->-") {
            (slot, own_id, to)
        } else {
            let (slot, from) = text.split_once("-<-")?;
            (slot, from, own_id)
        };
        Some(Self {
            slot: slot.parse().ok()?,
            from: from.to_owned(),
            to: to.to_owned(),
        })
    }
}

/// `ip:port@busport,hostname`; the host name is preferred: certificates name it.
fn endpoint(text: &str) -> Option<(String, u16)> {
    let mut parts = text.split(',');
    let (host, port) = parts.next()?.split('@').next()?.rsplit_once(':')?;
    let name = parts
        .next()
        .filter(|name| !name.is_empty() && !name.contains('='));
    Some((name.unwrap_or(host).to_owned(), port.parse().ok()?))
}

fn range(text: &str) -> Option<(u16, u16)> {
    match text.split_once('-') {
        Some((first, last)) => Some((first.parse().ok()?, last.parse().ok()?)),
        None => {
            let slot = text.parse().ok()?;
            Some((slot, slot))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masters_with_their_slots_and_moves_are_read() {
        // Lines as Redis 7 writes them: a replica, a failed master without slots, a host name.
        let text = "\
            aaa 127.0.0.1:7000@17000,redis-a.example myself,master - 0 0 1 connected 0-5460 5470 [93->-bbb] [77-<-bbb]\n\
            bbb 127.0.0.1:7001@17001 master - 0 1 2 connected 5461-5469\n\
            ccc :7002@17002 master,fail - 0 1 3 disconnected 5471-16383\n\
            ddd 127.0.0.1:7003@17003 slave aaa 0 1 1 connected\n\
            eee 127.0.0.1:7004@17004 master,fail - 0 1 4 disconnected\n";
        let map = ClusterMap::parse(text);
        let brief: Vec<(&str, &str, u16)> = map
            .masters
            .iter()
            .map(|master| (master.id.as_str(), master.host.as_str(), master.port))
            .collect();
        assert_eq!(
            brief,
            [
                ("aaa", "redis-a.example", 7000),
                ("bbb", "127.0.0.1", 7001),
                ("ccc", "", 7002)
            ]
        );
        assert_eq!(map.owners().len(), 16_384);
        assert_eq!(map.master_of(5_470).unwrap().id, "aaa");
        let moves: Vec<(u16, &str, &str)> = map
            .moving
            .iter()
            .map(|slot_move| (slot_move.slot, slot_move.from.as_str(), slot_move.to.as_str()))
            .collect();
        assert_eq!(moves, [(93, "aaa", "bbb"), (77, "bbb", "aaa")]);
    }
}
