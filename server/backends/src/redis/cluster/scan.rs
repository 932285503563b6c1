//! One scan over all masters at once, and over the slots that moved meanwhile.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use ::redis::Value;
use domain::observation::Coverage;
use domain::reported::Reported;
use futures::future::join_all;

use super::Cluster;
use super::map::{ClusterMap, Master, Move};
use super::route::read_routed;
use super::slots::{SLOTS, SlotSet, slot_of};
use crate::error::misconfigured;
use crate::redis::limits::{NAMES_PER_READ, SLOT_KEYS_MAX, SLOT_ROUNDS_MAX};
use crate::redis::node::Node;
use crate::redis::page::{Page, RedisKey};
use crate::redis::scan::{
    End, FromScanned, Progress, end_coverage, joined, larger_offset, lists_every_lock, probe_server,
    scan_patterns, sources,
};
use crate::redis::server_info::Replica;
use crate::redis::settings::Settings;
use crate::{BackendError, Budget, ClockReading, Pass, Sink};
use config::redis::RedisMode;

pub(in crate::redis) async fn observe(
    cluster: &Cluster,
    settings: &Settings,
    budget: Budget,
    sink: &mut dyn Sink,
) -> Result<Pass, BackendError> {
    let progress = Progress::new(settings, budget, sink);
    let before = cluster.read_map(settings).await?;
    let moving_before = moves(cluster, settings, &before).await;
    let scans = before
        .masters
        .iter()
        .map(|master| scan_master(cluster, settings, master, &progress));
    let mut read = SlotSet::default();
    let mut end = End::AllSeen;
    let mut faults: Vec<(String, BackendError)> = Vec::new();
    let mut clock: Option<ClockReading> = None;
    for (master, scanned) in before.masters.iter().zip(join_all(scans).await) {
        match scanned {
            Ok(scanned) => {
                if scanned.end == End::BudgetUsed {
                    end = End::BudgetUsed;
                } else {
                    read.insert_ranges(&master.slots);
                }
                clock = larger_offset(clock, scanned.clock);
            }
            Err(error @ BackendError::Misconfigured { .. }) => return Err(error),
            Err(error) => faults.push((format!("{}:{}", master.host, master.port), error)),
        }
    }
    if faults.len() == before.masters.len()
        && let Some((_, error)) = faults.first()
    {
        return Err(error.clone());
    }
    let unsettled = follow_moves(cluster, settings, (before, moving_before), &progress).await?;
    for slot in &unsettled {
        read.remove(*slot);
    }
    let counts = std::mem::take(&mut *progress.counts());
    let coverage = end_coverage(end, &counts);
    if lists_every_lock(end, &counts) {
        let read = Arc::new(read.clone());
        let is_listed = move |name: &[u8]| read.contains(slot_of(name));
        progress.read_parts(settings, &counts.troubles, is_listed);
    }
    let fault = fault_text(cluster, &faults, &read, &unsettled);
    let coverage = match (&fault, coverage) {
        (Some(fault), Coverage::Complete) => Coverage::Partial {
            seen: counts.seen,
            of: None,
            why: Cow::Owned(fault.clone()),
        },
        (_, coverage) => coverage,
    };
    Ok(Pass {
        sources: sources(settings, &coverage, &counts, fault.as_deref()),
        clock: clock.map_or(
            Reported::unknown("this account may not read the servers' clocks (TIME)"),
            Reported::Value,
        ),
    })
}

struct Scanned {
    end: End,
    clock: Reported<ClockReading>,
}

async fn scan_master(
    cluster: &Cluster,
    settings: &Settings,
    master: &Master,
    progress: &Progress<'_>,
) -> Result<Scanned, BackendError> {
    let node = cluster.node(&master.host, master.port)?;
    let connection = node.connection(&node.scan_link, settings.poll_interval).await?;
    let scanned = async {
        let (clock, info) = probe_server(settings, &connection, RedisMode::Cluster).await?;
        if let Some(replica) = &info.replica {
            return Err(demoted(&node, replica));
        }
        let reader = FromScanned {
            connection: &connection,
            settings,
        };
        let end = scan_patterns(settings, &connection, &reader, progress).await?;
        Ok(Scanned { end, clock })
    };
    let scanned = scanned.await;
    match &scanned {
        Ok(_) => node.answered(settings.clock.tick()),
        Err(error) => {
            node.failed(error);
            node.scan_link.discard(&connection).await;
        }
    }
    scanned
}

/// The map was older than a fail-over: the next scan reads the new master.
fn demoted(node: &Node, replica: &Replica) -> BackendError {
    BackendError::Unreachable {
        detail: format!("{} is a replica of {} now", node.name(), replica.master),
    }
}

/// The moves of slots, as reported by each node that takes part in one.
async fn moves(cluster: &Cluster, settings: &Settings, map: &ClusterMap) -> Vec<Move> {
    let views = map.masters.iter().map(|master| async move {
        let node = cluster.node(&master.host, master.port).ok()?;
        // A node that does not answer moves nothing.
        if node.health().fault.is_some() {
            return None;
        }
        cluster.map_of(settings, &node).await.ok()
    });
    let views = join_all(views).await;
    views.into_iter().flatten().flat_map(|view| view.moving).collect()
}

/// Reads the keys of slots that moved during the scan, until no slot moves any more. Returns the
/// slots that could not be read.
async fn follow_moves(
    cluster: &Cluster,
    settings: &Settings,
    (mut before, mut moving): (ClusterMap, Vec<Move>),
    progress: &Progress<'_>,
) -> Result<BTreeSet<u16>, BackendError> {
    // Keys may have moved at any time of the scan, in a slot whose move goes on.
    let mut unread: BTreeSet<u16> = moving.iter().map(|slot_move| slot_move.slot).collect();
    for _ in 0..SLOT_ROUNDS_MAX {
        let now = cluster.read_map(settings).await?;
        let moving_now = moves(cluster, settings, &now).await;
        let mut open = changed_slots(&before, &now, &moving, &moving_now);
        open.append(&mut unread);
        let moved = std::mem::take(&mut progress.counts().moved);
        if open.is_empty() && moved.is_empty() {
            return Ok(unread);
        }
        if progress.left(settings).is_none() {
            open.extend(moved.iter().map(|(key, _)| slot_of(key)));
            return Ok(open);
        }
        let mut keys: BTreeSet<RedisKey> = moved.into_iter().map(|(key, _)| key).collect();
        for slot in &open {
            match keys_of_slot(cluster, settings, *slot, &now, &moving_now).await {
                Ok(found) => keys.extend(found),
                Err(error) => {
                    tracing::debug!("slot {slot} could not be listed: {error}");
                    unread.insert(*slot);
                }
            }
        }
        let keys: Vec<RedisKey> = keys.into_iter().collect();
        for chunk in keys.chunks(NAMES_PER_READ) {
            let deliver = |page: Page, _: &[RedisKey]| progress.accept(page);
            let missed = read_routed(cluster, settings, chunk.to_vec(), deliver).await;
            unread.extend(
                missed
                    .iter()
                    .flat_map(|missed| &missed.keys)
                    .map(|key| slot_of(key)),
            );
        }
        // A slot in the middle of a move was read on both sides, the older one first.
        (before, moving) = (now, moving_now);
    }
    let now = cluster.read_map(settings).await?;
    let moving_now = moves(cluster, settings, &now).await;
    unread.extend(changed_slots(&before, &now, &moving, &moving_now));
    Ok(unread)
}

/// Slots with another owner than before, and slots whose move began or ended meanwhile.
fn changed_slots(
    before: &ClusterMap,
    now: &ClusterMap,
    moving: &[Move],
    moving_now: &[Move],
) -> BTreeSet<u16> {
    let (old, new) = (before.owners(), now.owners());
    let mut changed: BTreeSet<u16> = (0..SLOTS).filter(|slot| old.get(slot) != new.get(slot)).collect();
    let started = moving_now.iter().filter(|slot_move| !moving.contains(slot_move));
    let ended = moving.iter().filter(|slot_move| !moving_now.contains(slot_move));
    changed.extend(started.chain(ended).map(|slot_move| slot_move.slot));
    changed
}

/// Keys of one slot that fit the patterns: of the node that hands it over first, so that a key
/// that moves in between is listed by the other.
async fn keys_of_slot(
    cluster: &Cluster,
    settings: &Settings,
    slot: u16,
    map: &ClusterMap,
    moving: &[Move],
) -> Result<Vec<RedisKey>, BackendError> {
    let moves = moving.iter().filter(|slot_move| slot_move.slot == slot);
    let mut places: Vec<&Master> = Vec::new();
    for slot_move in moves {
        places.extend(map.by_id(&slot_move.from));
        places.extend(map.by_id(&slot_move.to));
    }
    if places.is_empty() {
        places.extend(map.master_of(slot));
    }
    if places.is_empty() {
        return Err(BackendError::Unreachable {
            detail: format!("no node serves slot {slot}"),
        });
    }
    let mut keys = Vec::new();
    for master in places {
        let node = cluster.node(&master.host, master.port)?;
        let connection = node.connection(&node.query_link, settings.poll_interval).await?;
        let mut list = ::redis::cmd("CLUSTER");
        list.arg("GETKEYSINSLOT").arg(slot).arg(SLOT_KEYS_MAX);
        let Value::Array(found) = connection.query(&list).await? else {
            return Err(crate::redis::error::unexpected("CLUSTER GETKEYSINSLOT"));
        };
        if found.len() >= SLOT_KEYS_MAX as usize {
            return Err(misconfigured(
                format!("slot {slot} has more than {SLOT_KEYS_MAX} keys"),
                "Use fewer keys with one hash tag.".to_owned(),
            ));
        }
        keys.extend(found.into_iter().filter_map(|key| match key {
            Value::BulkString(key) if settings.fits(&key) => Some(key),
            _ => None,
        }));
    }
    Ok(keys)
}

/// Which masters do not answer, and which slots are not read.
fn fault_text(
    cluster: &Cluster,
    faults: &[(String, BackendError)],
    read: &SlotSet,
    unsettled: &BTreeSet<u16>,
) -> Option<String> {
    let masters = cluster.masters.borrow().len();
    let unanswered = (!faults.is_empty()).then(|| {
        let reasons: Vec<String> = faults
            .iter()
            .map(|(node, error)| format!("{node} ({error})"))
            .collect();
        format!(
            "{} of {masters} masters do not answer: {}",
            faults.len(),
            reasons.join(", ")
        )
    });
    let unserved = (0..SLOTS)
        .filter(|slot| !read.contains(*slot) && !unsettled.contains(slot))
        .count();
    let unserved =
        (faults.is_empty() && unserved > 0).then(|| format!("{unserved} slots are served by no node"));
    let moving = (!unsettled.is_empty()).then(|| {
        format!(
            "{} slots moved during the scan and were not read (does this account have +cluster|getkeysinslot?)",
            unsettled.len()
        )
    });
    joined(joined(unanswered, unserved.as_deref()), moving.as_deref())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn map(owners: &[(&str, (u16, u16))]) -> ClusterMap {
        let mut masters: BTreeMap<&str, Vec<(u16, u16)>> = BTreeMap::new();
        for (id, slots) in owners {
            masters.entry(id).or_default().push(*slots);
        }
        ClusterMap {
            masters: masters
                .into_iter()
                .map(|(id, slots)| Master {
                    id: id.to_owned(),
                    host: String::new(),
                    port: 1,
                    slots,
                })
                .collect(),
            moving: Vec::new(),
        }
    }

    #[test]
    fn slots_that_changed_their_owner_or_their_move_are_read_again() {
        // Slot 7 went from a to b; a move of slot 9 began; one of slot 11 goes on.
        let moving = |slot| Move {
            slot,
            from: "a".to_owned(),
            to: "b".to_owned(),
        };
        let before = map(&[("a", (0, 8191)), ("b", (8192, 16_383))]);
        let now = map(&[
            ("a", (0, 6)),
            ("b", (7, 7)),
            ("a", (8, 8191)),
            ("b", (8192, 16_383)),
        ]);
        let changed = changed_slots(&before, &now, &[moving(11)], &[moving(11), moving(9)]);
        assert_eq!(changed.into_iter().collect::<Vec<_>>(), [7, 9]);
    }
}
