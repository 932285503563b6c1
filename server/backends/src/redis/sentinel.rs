//! A master behind Sentinels: it is the server that most of them name.
//!
//! **Invariant:** a forced unlock runs only on a server that more than half of the configured
//! Sentinels name as the master, that reports itself as one, and that is still one inside the
//! script that deletes.

use std::collections::BTreeMap;
use std::sync::Arc;

use ::redis::Value;
use domain::force_release::Release;
use domain::generation::Generation;
use domain::names::{Resource, Source};
use domain::observation::{Coverage, Inspection};
use futures::future::join_all;
use parking_lot::Mutex;
use tokio::sync::watch as channel;

use super::connection::Link;
use super::connection_config::{self, Servers};
use super::limits::NODE_TIMEOUT_MIN;
use super::node::Node;
use super::release::{self, Guard};
use super::scan;
use super::server_info::text;
use super::settings::Settings;
use super::watch::{self, Watched};
use super::{RedisBackend, error, lookup};
use crate::error::misconfigured;
use crate::part_hints::PartHints;
use crate::{BackendError, Batch, Budget, Hints, Pass, Sink};
use config::BackendConfig;
use config::redis::{RedisConfig, RedisMode};

pub(super) const HOW: &str = "a script on the master that most Sentinels name deletes the key if it still holds the value seen \
                               and the server is still a master";

const MINORITY_REMEDY: &str = "Ended locks stay in the list until a majority names one master: start the Sentinels that \
                               do not answer, or remove those that no longer exist from `urls`";

const ACCOUNT_REMEDY: &str = "Check `sentinel_user` and `sentinel_password` (or `sentinel_password_file`); the account needs \
                              +ping +sentinel|get-master-addr-by-name.";

pub(super) struct Sentinel {
    servers: Servers,
    sentinels: Vec<(String, Link)>,
    master_name: String,
    /// The master of the last answer.
    master: Mutex<Option<Arc<Node>>>,
    /// Its address; changes with a fail-over.
    address: channel::Sender<String>,
}

/// The Sentinels' answer.
struct ElectedMaster {
    node: Arc<Node>,
    votes: usize,
    /// Sentinels that name none, each with the reason.
    silent: Vec<String>,
}

impl Sentinel {
    pub(super) fn new(config: &BackendConfig, redis: &RedisConfig) -> Result<Self, BackendError> {
        let Some(master_name) = redis.master_name.clone() else {
            return Err(misconfigured(
                "`master_name` is missing, and mode is \"sentinel\"".to_owned(),
                "Write the name that the Sentinels monitor, e.g. master_name = \"mymaster\".".to_owned(),
            ));
        };
        let (servers, listed) = connection_config::servers(config, redis)?;
        let sentinels = listed
            .iter()
            .map(|listed| connection_config::sentinel(&servers, redis, listed))
            .map(|target| target.map(|target| (target.name.clone(), Link::new(Arc::new(target)))));
        let sentinels = sentinels.collect::<Result<Vec<_>, _>>()?;
        Ok(Self {
            servers,
            sentinels,
            master_name,
            master: Mutex::default(),
            address: channel::Sender::new(String::new()),
        })
    }

    pub(super) const fn may_unlock(&self) -> bool {
        self.servers.may_unlock()
    }

    pub(super) fn address(&self) -> String {
        let names: Vec<&str> = self.sentinels.iter().map(|(name, _)| name.as_str()).collect();
        let master = self.address.borrow();
        let now = if master.is_empty() {
            String::new()
        } else {
            format!(", now {}", *master)
        };
        format!("{}{now} by {}", self.master_name, names.join(", "))
    }

    pub(super) fn known(&self) -> Option<Arc<Node>> {
        self.master.lock().clone()
    }

    /// The master, asked now.
    pub(super) async fn current(&self, settings: &Settings) -> Result<Arc<Node>, BackendError> {
        Ok(self.find_master(settings).await?.node)
    }

    /// The server that most Sentinels name.
    async fn find_master(&self, settings: &Settings) -> Result<ElectedMaster, BackendError> {
        let timeout = settings.poll_interval.max(NODE_TIMEOUT_MIN).min(settings.timeout);
        let requests = self.sentinels.iter().map(|(name, link)| async move {
            let answer = tokio::time::timeout(timeout, query_sentinel(link, name, &self.master_name)).await;
            let answer = answer.unwrap_or_else(|_| Err(error::no_answer(timeout)));
            answer.map_err(sentinel_account)
        });
        let mut votes: BTreeMap<(String, u16), usize> = BTreeMap::new();
        let (mut silent, mut first_error) = (Vec::new(), None);
        for ((name, _), answer) in self.sentinels.iter().zip(join_all(requests).await) {
            match answer {
                Ok(address) => *votes.entry(address).or_default() += 1,
                Err(error) => {
                    silent.push(format!("{name} ({error})"));
                    first_error.get_or_insert(error);
                }
            }
        }
        let Some(((host, port), votes)) = votes.into_iter().max_by_key(|(_, votes)| *votes) else {
            return Err(first_error.unwrap_or_else(|| error::no_answer(timeout)));
        };
        Ok(ElectedMaster {
            node: self.adopt(&host, port)?,
            votes,
            silent,
        })
    }

    /// Why the server may not be the master; `None` if a majority names it.
    fn minority(&self, master: &ElectedMaster) -> Option<String> {
        let (votes, total) = (master.votes, self.sentinels.len());
        let name = master.node.name();
        let silent = match master.silent.is_empty() {
            true => String::new(),
            false => format!("; without an answer: {}", master.silent.join(", ")),
        };
        (votes * 2 <= total).then(|| {
            format!("{votes} of {total} Sentinels name {name} as the master, which is no majority{silent}")
        })
    }

    fn adopt(&self, host: &str, port: u16) -> Result<Arc<Node>, BackendError> {
        let fresh = Node::at(&self.servers, host, port)?;
        let mut master = self.master.lock();
        if let Some(known) = master.as_ref().filter(|known| known.name() == fresh.name()) {
            return Ok(known.clone());
        }
        let fresh = Arc::new(fresh);
        *master = Some(fresh.clone());
        drop(master);
        self.address.send_replace(fresh.name().to_owned());
        Ok(fresh)
    }

    /// Watches the master, and the next one after a fail-over.
    pub(super) async fn watch(&self, settings: &Settings, hints: Hints) {
        let mut changes = self.address.subscribe();
        // The first scan asks too.
        if let Err(failed) = self.current(settings).await {
            tracing::debug!("the master is not known yet: {failed}");
        }
        loop {
            changes.borrow_and_update();
            let node = self.known();
            let watching = async {
                match &node {
                    Some(node) => {
                        let watched = Watched {
                            settings,
                            node,
                            source: &settings.rows.key,
                        };
                        watch::run(watched, PartHints::single(&hints)).await;
                    }
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = watching => {}
                changed = changes.changed() => if changed.is_err() { return },
            }
            // Changes of the new master before the subscription were missed.
            hints.relist();
        }
    }
}

/// Sentinels have accounts of their own.
fn sentinel_account(error: BackendError) -> BackendError {
    match error {
        BackendError::Denied { detail, .. } => BackendError::Denied {
            detail: format!("a Sentinel: {detail}"),
            remedy: ACCOUNT_REMEDY.to_owned(),
        },
        other => other,
    }
}

/// The address that one Sentinel names.
async fn query_sentinel(link: &Link, name: &str, master: &str) -> Result<(String, u16), BackendError> {
    let connection = link.connection().await?;
    let mut command = ::redis::cmd("SENTINEL");
    command.arg("GET-MASTER-ADDR-BY-NAME").arg(master);
    match connection.raw(&command).await {
        Ok(Value::Array(parts)) => {
            let [host, port] = parts.as_slice() else {
                return Err(error::unexpected("SENTINEL"));
            };
            let port = text(port).and_then(|port| port.parse().ok());
            let host = text(host).map(str::to_owned);
            host.zip(port).ok_or_else(|| error::unexpected("SENTINEL"))
        }
        Ok(Value::Nil) => Err(misconfigured(
            format!("the Sentinel {name} monitors no master named {master:?}"),
            "Check `master_name`: SENTINEL MASTERS lists the names.".to_owned(),
        )),
        Ok(_) => Err(error::unexpected("SENTINEL")),
        Err(failed)
            if failed
                .detail()
                .is_some_and(|text| text.contains("unknown command")) =>
        {
            Err(misconfigured(
                format!("{name} is not a Sentinel"),
                "Name the Sentinels in `urls` (port 26379 by default), or set another `mode`.".to_owned(),
            ))
        }
        Err(failed) => {
            if !error::is_answer(&failed) {
                link.discard(&connection).await;
            }
            Err(error::mapped(&failed, connection.timeout()))
        }
    }
}

/// While no majority of the Sentinels names the server, another one may be the master: locks that it does not have are
/// not known to be released.
pub(super) async fn observe(
    sentinel: &Sentinel,
    settings: &Settings,
    budget: Budget,
    sink: &mut dyn Sink,
) -> Result<Pass, BackendError> {
    let master = sentinel.find_master(settings).await?;
    let node = &master.node;
    must_be_master(settings, node, &node.scan_link).await?;
    let Some(minority) = sentinel.minority(&master) else {
        return scan::run(settings, node, RedisMode::Sentinel, budget, sink).await;
    };
    let mut sink = WithoutRemovals { sink, locks: 0 };
    let mut pass = scan::run(settings, node, RedisMode::Sentinel, budget, &mut sink).await?;
    let fault = format!("{minority}. {MINORITY_REMEDY}");
    for part in &mut pass.sources {
        part.fault = scan::joined(part.fault.take(), Some(fault.as_str()));
        if part.coverage.is_complete() {
            part.coverage = Coverage::Partial {
                seen: sink.locks,
                of: None,
                why: minority.clone().into(),
            };
        }
    }
    Ok(pass)
}

/// Counts the locks, and forwards nothing from which a missing lock would follow.
struct WithoutRemovals<'a> {
    sink: &'a mut dyn Sink,
    locks: u64,
}

impl Sink for WithoutRemovals<'_> {
    fn accept(&mut self, batch: Batch) {
        self.locks += batch.locks.len() as u64;
        self.sink.accept(Batch {
            gone: Vec::new(),
            ..batch
        });
    }
}

pub(super) async fn refresh(
    sentinel: &Sentinel,
    settings: &Settings,
    names: &[(Source, Resource)],
    sink: &mut dyn Sink,
) -> Result<(), BackendError> {
    let master = sentinel.find_master(settings).await?;
    let link = &master.node.query_link;
    must_be_master(settings, &master.node, link).await?;
    if sentinel.minority(&master).is_none() {
        return lookup::refresh(settings, link, names, sink).await;
    }
    let mut sink = WithoutRemovals { sink, locks: 0 };
    lookup::refresh(settings, link, names, &mut sink).await
}

/// While no majority names the server, a lock that it does not have is not known to be free.
pub(super) async fn inspect(
    sentinel: &Sentinel,
    settings: &Settings,
    source: &Source,
    resource: &Resource,
) -> Result<Inspection, BackendError> {
    let master = sentinel.find_master(settings).await?;
    let link = &master.node.query_link;
    must_be_master(settings, &master.node, link).await?;
    let inspection = lookup::inspect(settings, link, source, resource).await?;
    match sentinel.minority(&master) {
        Some(detail) if inspection.lock.is_none() => Err(BackendError::Unavailable {
            detail,
            remedy: format!("{MINORITY_REMEDY}."),
        }),
        _ => Ok(inspection),
    }
}

/// A demoted server's data is old: it is not shown as the present.
async fn must_be_master(settings: &Settings, node: &Node, link: &Link) -> Result<(), BackendError> {
    let connection = link.connection().await?;
    let (_, info) = scan::probe_server(settings, &connection, RedisMode::Sentinel).await?;
    match info.replica {
        None => Ok(()),
        Some(replica) => Err(BackendError::Unreachable {
            detail: format!(
                "{} is a replica of {} now; waiting for the Sentinels to name the master",
                node.name(),
                replica.master
            ),
        }),
    }
}

pub(super) async fn release(
    backend: &RedisBackend,
    sentinel: &Sentinel,
    (source, resource): (&Source, &Resource),
    expected: &Generation,
) -> Result<Release, BackendError> {
    let settings = &backend.settings;
    let master = sentinel.find_master(settings).await?;
    if let Some(minority) = sentinel.minority(&master) {
        return Ok(Release::refused(
            format!("{minority}; nothing was deleted"),
            "Restore the Sentinels, then review the lock again.",
        ));
    }
    must_be_master(settings, &master.node, &master.node.query_link).await?;
    let link = master.node.unlocks.as_ref();
    release::release(backend, link, Guard::Master, (source, resource), expected).await
}
