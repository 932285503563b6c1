//! One scan: reads every node below the configured paths and delivers its locks as they are
//! read.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use domain::duration::millis;
use domain::limits::RESOURCE_BYTES_MAX;
use domain::observation::{Coverage, ObservedLock};
use domain::reported::{Reported, Why};
use domain::tick::Tick;
use futures::StreamExt;
use futures::stream::FuturesUnordered;

use super::ZookeeperBackend;
use super::connection::IN_FLIGHT_MAX;
use super::error::ZookeeperError;
use super::node::{self, Found, NodeRead};
use super::row;
use crate::error::misconfigured;
use crate::{BackendError, Batch, Budget, Pass, Sink, SourcePass};

/// Locks per batch.
const BATCH_LOCKS: usize = 256;
/// ZooKeeper's own nodes, below `/`; below a chroot the name is free.
const OWN_NODES: &str = "/zookeeper";

pub(super) const NO_CLOCK: &str = "ZooKeeper reports no clock to a client that only reads";

/// Nodes that this account may not list.
#[derive(Clone, Default)]
struct HiddenNodes {
    /// Their children are unknown, except those in `read_below`.
    paths: BTreeSet<String>,
    /// Those of them that are configured: they may be locks themselves, which are not delivered.
    denied: BTreeSet<String>,
    /// Configured paths below them, which are read by their names.
    read_below: BTreeSet<String>,
}

impl HiddenNodes {
    /// Whether a scan cannot tell that the lock is free.
    fn hide(&self, name: &[u8]) -> bool {
        let Ok(name) = std::str::from_utf8(name) else {
            return false;
        };
        if self.denied.contains(name) || self.read_below.contains(name) {
            return self.denied.contains(name);
        }
        // From the parent up: the nearest one decides.
        for (at, _) in name.rmatch_indices('/') {
            let above = if at == 0 { "/" } else { &name[..at] };
            if self.paths.contains(above) || self.read_below.contains(above) {
                return self.paths.contains(above);
            }
        }
        false
    }
}

/// State of one scan.
#[derive(Default)]
struct Walk {
    /// Paths to be read.
    waiting: Vec<String>,
    nodes_read: u64,
    batch: Vec<ObservedLock>,
    batch_at: Option<Tick>,
    /// Why the scan is partial.
    cut: Option<Why>,
    /// Names a lock whose path is too long to be listed. All others are read.
    too_long: Option<Why>,
    hidden: HiddenNodes,
    /// Configured paths that cannot be read.
    faults: Vec<String>,
    /// The error that ended the scan.
    error: Option<BackendError>,
}

impl Walk {
    fn add(&mut self, lock: ObservedLock, read_at: Tick, sink: &mut dyn Sink) {
        self.batch.push(lock);
        self.batch_at = Some(self.batch_at.map_or(read_at, |at| at.min(read_at)));
        if self.batch.len() >= BATCH_LOCKS {
            self.flush(sink);
        }
    }

    fn flush(&mut self, sink: &mut dyn Sink) {
        if let Some(sent_at) = self.batch_at.take() {
            sink.accept(Batch {
                sent_at,
                locks: std::mem::take(&mut self.batch),
                gone: Vec::new(),
            });
        }
    }

    fn coverage(&self) -> Coverage {
        let unread = self.waiting.len() + self.hidden.paths.len();
        let hidden = || self.hidden_reason().map(Why::from);
        match self.cut.clone().or_else(hidden).or(self.too_long.clone()) {
            None => Coverage::Complete,
            Some(why) => Coverage::Partial {
                seen: self.nodes_read,
                of: Some(self.nodes_read + unread as u64).filter(|of| *of > self.nodes_read),
                why,
            },
        }
    }

    /// Locks below hidden nodes are not known to be free.
    fn hidden_reason(&self) -> Option<String> {
        let first = hidden_children(self.hidden.paths.first()?);
        let more = match self.hidden.paths.len() {
            1 => String::new(),
            count => {
                let others = domain::format::counted(count as u64 - 1, "other node", "other nodes");
                format!(", as do those of {others}")
            }
        };
        Some(format!("{first}{more}. {}", first.remedy()))
    }
}

fn hidden_children(path: &str) -> BackendError {
    ZookeeperError::from(zookeeper_client::Error::NoAuth)
        .on_path(path)
        .error
}

impl ZookeeperBackend {
    pub(super) async fn pass(&self, budget: Budget, sink: &mut dyn Sink) -> Result<Pass, BackendError> {
        let deadline = self.link.clock.tick().plus(millis(budget.time_max));
        self.link.sync().await.map_err(|fault| fault.error)?;
        self.cache.begin_scan();
        let mut walk = Walk {
            waiting: self.link.settings.paths.clone(),
            ..Walk::default()
        };
        self.read_nodes(&mut walk, deadline, sink).await;
        walk.flush(sink);
        if walk.cut.is_none() {
            self.cache.end_scan();
            let hidden = walk.hidden.clone();
            let covers = move |name: &[u8]| !hidden.hide(name);
            sink.read_part(&row::source(), Arc::new(covers));
        }
        let denied = || walk.hidden.denied.first().map(|path| hidden_children(path));
        if walk.nodes_read == 0
            && let Some(error) = walk.error.clone().or_else(denied)
        {
            return Err(error);
        }
        if !walk.faults.is_empty() {
            self.check_chroot().await?;
        }
        let fault = walk.error.take().map(|error| error.to_string());
        let coverage = walk.coverage();
        walk.faults.extend(fault);
        walk.faults.extend(walk.hidden_reason());
        Ok(Pass {
            sources: vec![SourcePass {
                source: row::source(),
                coverage,
                fault: (!walk.faults.is_empty()).then(|| walk.faults.join("; ")),
            }],
            clock: Reported::unknown(NO_CLOCK),
        })
    }

    /// Reads until nothing is left, the deadline, or an error that the next read would have too.
    async fn read_nodes(&self, walk: &mut Walk, deadline: Tick, sink: &mut dyn Sink) {
        let mut reads = FuturesUnordered::new();
        loop {
            while reads.len() < IN_FLIGHT_MAX
                && let Some(path) = walk.waiting.pop()
            {
                reads.push(async move {
                    let read = node::read(&self.link, &self.cache, &path).await;
                    (path, read)
                });
            }
            let left_ms = u64::try_from(deadline.since(self.link.clock.tick())).unwrap_or(0);
            let next = tokio::time::timeout(Duration::from_millis(left_ms), reads.next()).await;
            match next {
                Ok(None) => return,
                Ok(Some((path, Ok(read)))) => self.take(path, read, walk, sink),
                Ok(Some((path, Err(fault)))) => {
                    walk.cut = Some(format!("the scan failed: {}", fault.error).into());
                    walk.error = Some(fault.error);
                    walk.waiting.push(path);
                    break;
                }
                Err(_) => {
                    walk.cut = Some(
                        "the scan timed out; raise `scan_timeout` or `requests_per_second`, or narrow `paths`".into(),
                    );
                    break;
                }
            }
        }
        // Reads in progress count as unread; only the number of these paths is used.
        walk.waiting
            .resize(walk.waiting.len() + reads.len(), String::new());
    }

    fn take(&self, path: String, read: NodeRead, walk: &mut Walk, sink: &mut dyn Sink) {
        let is_configured = self.link.settings.is_configured(&path);
        match read.found {
            Found::Missing if is_configured => {
                walk.faults.push(format!(
                    "the path {path} does not exist, so no lock is held below it; correct `paths` or create it"
                ));
            }
            Found::Hidden(_) if is_configured => {
                walk.hidden.denied.insert(path.clone());
                self.read_configured_below(path, walk);
                return;
            }
            Found::Lock(_) | Found::Hidden(_) if path.len() > RESOURCE_BYTES_MAX => {
                let path: String = path.chars().take(40).collect();
                let long = format!("a lock's path is longer than {RESOURCE_BYTES_MAX} bytes: {path}…");
                walk.too_long = Some(long.into());
            }
            Found::Lock(node) => walk.add(node.lock(), node.read_at, sink),
            Found::Hidden(read_at) => {
                walk.add(row::hidden(&path), read_at, sink);
                self.read_configured_below(path, walk);
                return;
            }
            Found::Free | Found::Missing => {}
        }
        walk.nodes_read += 1;
        let is_chrooted = self.link.settings.chroot.is_some();
        let folders = read.folders.into_iter();
        let folders = folders.filter(|path| is_chrooted || path != OWN_NODES);
        walk.waiting.extend(folders);
    }

    /// Goes on with the configured paths below a node that hides its children.
    fn read_configured_below(&self, hidden: String, walk: &mut Walk) {
        let below = self.link.settings.configured_below(&hidden);
        walk.hidden.read_below.extend(below.iter().cloned());
        walk.waiting.extend(below);
        walk.hidden.paths.insert(hidden);
    }

    /// Without its chroot every path is missing.
    pub(super) async fn check_chroot(&self) -> Result<(), BackendError> {
        let Some(chroot) = &self.link.settings.chroot else {
            return Ok(());
        };
        match node::stat(&self.link, "/").await {
            Ok(Some(_)) => Ok(()),
            Ok(None) => Err(misconfigured(
                format!("the chroot {chroot} does not exist"),
                format!("Correct the end of `connect`, or create the node: create {chroot}"),
            )),
            Err(fault) => Err(fault.error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set<const N: usize>(paths: [&str; N]) -> BTreeSet<String> {
        paths.map(str::to_owned).into()
    }

    #[test]
    fn names_below_a_hidden_node_are_not_covered() {
        // The node itself, a child, one far below, and a neighbour whose name begins alike; a configured path; the root.
        let mut hidden = HiddenNodes {
            paths: set(["/locks/team"]),
            ..HiddenNodes::default()
        };
        assert!(hidden.hide(b"/locks/team/a") && hidden.hide(b"/locks/team/a/b"));
        assert!(!hidden.hide(b"/locks/team") && !hidden.hide(b"/locks/team-2/a"));
        assert!(!hidden.hide(b"/locks"));
        hidden.denied = set(["/locks/team"]);
        assert!(hidden.hide(b"/locks/team"));
        let root = HiddenNodes {
            paths: set(["/"]),
            denied: set(["/"]),
            ..HiddenNodes::default()
        };
        assert!(root.hide(b"/locks") && root.hide(b"/locks/a") && root.hide(b"/"));
    }

    #[test]
    fn paths_read_below_a_hidden_node_are_covered() {
        // The root is hidden and /locks is not; a node below /locks is; a configured path below that one is hidden as well.
        let hidden = HiddenNodes {
            paths: set(["/", "/locks/team", "/locks/team/a"]),
            denied: set(["/", "/locks/team/a"]),
            read_below: set(["/locks", "/locks/team/a"]),
        };
        assert!(hidden.hide(b"/") && hidden.hide(b"/other") && hidden.hide(b"/other/a"));
        assert!(!hidden.hide(b"/locks") && !hidden.hide(b"/locks/b") && !hidden.hide(b"/locks/team"));
        assert!(hidden.hide(b"/locks/team/b"));
        assert!(hidden.hide(b"/locks/team/a") && hidden.hide(b"/locks/team/a/c"));
    }
}
