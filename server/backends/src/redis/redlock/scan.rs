//! One scan over all nodes. Each node lists its keys; each key is read on all nodes at once, the
//! first time that a node lists it.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use domain::observation::Coverage;
use domain::reported::Reported;
use futures::future::join_all;
use parking_lot::Mutex;

use super::Redlock;
use super::confirm;
use super::node_reads::Connections;
use crate::error::misconfigured;
use crate::redis::node::Node;
use crate::redis::page::{Page, RedisKey};
use crate::redis::scan::{
    End, Progress, ReadKeys, end_coverage, joined, larger_offset, lists_every_lock, probe_server,
    scan_patterns,
};
use crate::redis::server_info::ServerInfo;
use crate::redis::settings::Settings;
use crate::{BackendError, Budget, ClockReading, Pass, Sink, SourcePass};
use config::redis::RedisMode;

pub(in crate::redis) async fn observe(
    redlock: &Redlock,
    settings: &Settings,
    budget: Budget,
    sink: &mut dyn Sink,
) -> Result<Pass, BackendError> {
    let progress = Progress::new(settings, budget, sink);
    let connections = Connections::open(settings, &redlock.nodes, |node| &node.scan_link).await?;
    let probed = probe_all(settings, &connections).await?;
    let reader = OnAllNodes {
        redlock,
        settings,
        connections: &connections,
        seen: Mutex::default(),
        unconfirmed: Mutex::default(),
    };
    let mut end = End::AllSeen;
    for index in 0..redlock.nodes.len() {
        let Some(connection) = connections.connection(index) else {
            continue;
        };
        match scan_patterns(settings, &connection, &reader, &progress).await {
            Ok(End::AllSeen) => {}
            Ok(End::BudgetUsed) => {
                end = End::BudgetUsed;
                break;
            }
            Err(error) => connections.fail(index, &error).await,
        }
    }
    if connections.unanswered_count() == redlock.nodes.len() {
        return Err(first_fault(redlock));
    }
    let unconfirmed = std::mem::take(&mut *reader.unconfirmed.lock());
    let in_motion = if progress.left(settings).is_some() {
        let deliver = |page| progress.accept(page);
        confirm::confirm(redlock, settings, &connections, unconfirmed, deliver).await?
    } else {
        end = End::BudgetUsed;
        HashSet::new()
    };
    let counts = std::mem::take(&mut *progress.counts());
    let coverage = end_coverage(end, &counts);
    let seen = std::mem::take(&mut *reader.seen.lock());
    let is_decided = connections.unanswered_count() < redlock.quorum();
    if lists_every_lock(end, &counts) && is_decided {
        redlock.history.lock().keep(&seen);
        // A key in motion may be held if a node is silent: attempts of another client change its values.
        let covers = move |name: &[u8]| !in_motion.contains(name);
        progress.read_part(&redlock.source, Arc::new(covers));
    }
    if !is_decided {
        progress.mark_undecided(&redlock.source);
    }
    let fault = unanswered_text(&connections);
    let key_fault = counts.troubles.of_keys();
    let key_fault = joined(key_fault, counts.troubles.of_hashes().as_deref());
    let key_fault = joined(key_fault, probed.replicas.as_deref());
    Ok(Pass {
        sources: vec![SourcePass {
            source: redlock.source.clone(),
            coverage: match &fault {
                Some(fault) if coverage.is_complete() => Coverage::Partial {
                    seen: counts.seen,
                    of: None,
                    why: Cow::Owned(fault.clone()),
                },
                _ => coverage,
            },
            fault: joined(key_fault, fault.as_deref()),
        }],
        clock: probed.clock,
    })
}

/// Reads keys on all nodes, each key once per scan.
struct OnAllNodes<'a> {
    redlock: &'a Redlock,
    settings: &'a Settings,
    connections: &'a Connections<'a>,
    /// Hashes of the keys that were read.
    seen: Mutex<HashSet<u64>>,
    unconfirmed: Mutex<Vec<(RedisKey, u64)>>,
}

impl ReadKeys for OnAllNodes<'_> {
    async fn read(&self, mut keys: Vec<RedisKey>) -> Result<Page, BackendError> {
        {
            let history = self.redlock.history.lock();
            let mut seen = self.seen.lock();
            keys.retain(|key| seen.insert(history.hash(key)));
        }
        if keys.is_empty() {
            return Ok(Page::new(self.settings.clock.tick()));
        }
        let none = HashMap::new();
        let read = confirm::read_once(self.redlock, self.settings, self.connections, keys, &none).await?;
        self.unconfirmed.lock().extend(read.unconfirmed);
        Ok(read.page)
    }
}

struct Probed {
    /// The clock that is farthest from ours.
    clock: Reported<ClockReading>,
    /// Nodes that are replicas.
    replicas: Option<String>,
}

async fn probe_all(settings: &Settings, connections: &Connections<'_>) -> Result<Probed, BackendError> {
    let probes = (0..connections.nodes.len()).map(|index| async move {
        let connection = connections.connection(index)?;
        Some(probe_server(settings, &connection, RedisMode::Redlock).await)
    });
    let mut clock: Option<ClockReading> = None;
    let mut infos: Vec<(&Node, ServerInfo)> = Vec::new();
    for (index, probe) in join_all(probes).await.into_iter().enumerate() {
        let Some(node) = connections.nodes.get(index) else {
            continue;
        };
        match probe {
            None => {}
            Some(Ok((reading, info))) => {
                node.answered(settings.clock.tick());
                if let Reported::Value(reading) = reading {
                    node.clock_read(reading.offset_ms());
                }
                clock = larger_offset(clock, reading);
                infos.push((node, info));
            }
            Some(Err(BackendError::Misconfigured { detail, remedy })) => {
                return Err(misconfigured(format!("{}: {detail}", node.name()), remedy));
            }
            Some(Err(error)) => connections.fail(index, &error).await,
        }
    }
    same_server_twice(&infos)?;
    let replicas: Vec<String> = infos
        .iter()
        .filter_map(|(node, info)| Some(format!("{}: {}", node.name(), info.replica.as_ref()?.fault())))
        .collect();
    Ok(Probed {
        clock: clock.map_or(
            Reported::unknown("no node reports its clock to this account (TIME)"),
            Reported::Value,
        ),
        replicas: (!replicas.is_empty()).then(|| replicas.join(". ")),
    })
}

/// Two addresses of one server would count its copy twice.
fn same_server_twice(infos: &[(&Node, ServerInfo)]) -> Result<(), BackendError> {
    let mut runs: HashMap<&str, &str> = HashMap::new();
    for (node, info) in infos {
        let Some(run) = info.run_id.as_deref() else {
            continue;
        };
        if let Some(other) = runs.insert(run, node.name()) {
            return Err(misconfigured(
                format!("{other} and {} are the same server", node.name()),
                "Name each node once in `urls`: a copy that counts twice is no quorum.".to_owned(),
            ));
        }
    }
    Ok(())
}

fn first_fault(redlock: &Redlock) -> BackendError {
    let faults = redlock.nodes.iter().filter_map(|node| {
        let fault = node.health().fault?;
        Some(format!("{}: {fault}", node.name()))
    });
    let faults: Vec<String> = faults.collect();
    BackendError::Unreachable {
        detail: format!("no node answers: {}", faults.join("; ")),
    }
}

/// Which nodes do not answer, and why.
fn unanswered_text(connections: &Connections<'_>) -> Option<String> {
    let unanswered: Vec<String> = connections
        .nodes
        .iter()
        .enumerate()
        .filter(|(index, _)| connections.is_unanswered(*index))
        .map(|(_, node)| {
            let fault = node.health().fault.unwrap_or_else(|| "no answer".to_owned());
            format!("{} ({fault})", node.name())
        })
        .collect();
    (!unanswered.is_empty()).then(|| {
        format!(
            "{} of {} nodes do not answer: {}",
            unanswered.len(),
            connections.nodes.len(),
            unanswered.join(", ")
        )
    })
}
