//! Server version, account permissions, and declared capabilities.

use ::redis::Pipeline;
use domain::backend::{AccountPermission, Capability};
use domain::reported::Reported;
use futures::future::join_all;

use super::node::Node;
use super::server_info::{ServerInfo, text};
use super::settings::Settings;
use super::{RedisBackend, Topology, acl, glob, release};
use crate::{BackendError, Probe, RELEASE};
use config::redis::RedisMode;

/// One server.
pub(super) async fn run(settings: &Settings, node: &Node, mode: RedisMode) -> Result<Probe, BackendError> {
    let connection = node.query_link.connection().await?;
    let probed = probe_server(settings, &connection, mode).await;
    if probed.is_err() {
        node.query_link.discard(&connection).await;
    }
    probed
}

/// Several servers: of each permission the worst. Those that do not answer are named.
///
/// # Errors
/// None answers, or one is of another kind.
pub(super) async fn run_all<'a>(
    settings: &Settings,
    nodes: impl Iterator<Item = &'a Node>,
    mode: RedisMode,
) -> Result<Probe, BackendError> {
    let probes = nodes.map(|node| async move {
        let timeout = settings
            .poll_interval
            .max(super::limits::NODE_TIMEOUT_MIN)
            .min(settings.timeout);
        let probed = tokio::time::timeout(timeout, run(settings, node, mode)).await;
        let probed = probed.unwrap_or_else(|_| Err(super::error::no_answer(timeout)));
        (node.name(), probed)
    });
    let mut versions: Vec<(String, usize)> = Vec::new();
    let mut rights: Vec<AccountPermission> = Vec::new();
    let mut first_error = None;
    for (name, probed) in join_all(probes).await {
        let probe = match probed {
            Ok(probe) => probe,
            Err(BackendError::Misconfigured { detail, remedy }) => {
                return Err(BackendError::Misconfigured {
                    detail: format!("{name}: {detail}"),
                    remedy,
                });
            }
            Err(error) => {
                first_error.get_or_insert(error);
                continue;
            }
        };
        let version = match probe.version {
            Reported::Value(version) => version,
            Reported::Unknown(why) | Reported::NotApplicable(why) => why.into_owned(),
        };
        match versions.iter_mut().find(|(known, _)| *known == version) {
            Some((_, count)) => *count += 1,
            None => versions.push((version, 1)),
        }
        if rights.is_empty() {
            rights = probe.rights;
        } else {
            for (right, other) in rights.iter_mut().zip(probe.rights) {
                if right.allowed == Reported::Value(right.wanted) {
                    right.allowed = other.allowed;
                }
            }
        }
    }
    match first_error {
        Some(error) if versions.is_empty() => Err(error),
        _ => Ok(Probe {
            version: Reported::Value(versions_text(&versions)),
            rights,
        }),
    }
}

fn versions_text(versions: &[(String, usize)]) -> String {
    let counts: Vec<String> = versions
        .iter()
        .map(|(version, count)| format!("{version} on {count}"))
        .collect();
    counts.join(", ")
}

async fn probe_server(
    settings: &Settings,
    connection: &super::connection::RedisConnection,
    mode: RedisMode,
) -> Result<Probe, BackendError> {
    let mut commands = Pipeline::with_capacity(1);
    commands.cmd("INFO");
    let answers = connection.query_all(&commands).await?;
    let version = match answers.first().and_then(text).map(ServerInfo::parse) {
        Some(info) => {
            info.check_mode(mode)?;
            described(&info)
        }
        None => Reported::unknown("this account may not run INFO"),
    };
    let sample = settings
        .patterns
        .first()
        .map(|pattern| glob::literal_prefix(pattern.as_bytes()))
        .unwrap_or_default();
    Ok(Probe {
        version,
        rights: acl::read_permissions(connection, &sample).await?,
    })
}

fn described(info: &ServerInfo) -> Reported<String> {
    let Some(version) = &info.version else {
        return Reported::unknown("INFO names no version");
    };
    let mut text = version.clone();
    if let Some(replica) = &info.replica {
        text.push_str(&format!(", replica of {}", replica.master));
    }
    if info.loading {
        text.push_str(", still loading its data");
    }
    Reported::Value(text)
}

pub(super) fn capabilities(backend: &RedisBackend) -> Vec<Capability> {
    let (may_unlock, how) = match &backend.topology {
        Topology::Standalone(node) => (node.unlocks.is_some(), release::HOW),
        Topology::Redlock(redlock) => (
            redlock.nodes.iter().all(|node| node.unlocks.is_some()),
            super::redlock::HOW,
        ),
        Topology::Cluster(cluster) => (cluster.may_unlock(), super::cluster::HOW),
        Topology::Sentinel(sentinel) => (sentinel.may_unlock(), super::sentinel::HOW),
    };
    vec![
        Capability::new("watch", true, &watching(backend)),
        Capability::new("waiters", false, "Redis keeps no queue of waiters"),
        Capability::new(
            "fencing",
            false,
            "Redis issues no fencing tokens; one inside a JSON value is shown",
        ),
        Capability::new(
            "ttl",
            true,
            "PTTL reports the time left, to the millisecond, not the granted TTL",
        ),
        if may_unlock {
            Capability::new(RELEASE, true, how)
        } else {
            Capability::new(RELEASE, false, release::NO_ACCOUNT)
        },
        Capability::new("clock", true, "TIME, once per scan"),
    ]
}

/// State of the watch: of each server where they differ.
fn watching(backend: &RedisBackend) -> String {
    let states = backend.topology.known_states();
    match states.as_slice() {
        [] => "keyspace notifications, where the servers send them; not connected yet".to_owned(),
        [(_, first), rest @ ..] if rest.iter().all(|(_, other)| other == first) => first.clone(),
        all => {
            let states: Vec<String> = all
                .iter()
                .map(|(name, state)| format!("{name}: {state}"))
                .collect();
            states.join("; ")
        }
    }
}
