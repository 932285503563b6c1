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
/// ZooKeeper's own nodes, below `/`.
const OWN_NODES: &str = "/zookeeper";

pub(super) const NO_CLOCK: &str = "ZooKeeper reports no clock to a client that only reads";

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
    /// Nodes whose ACLs hide their children, also configured paths.
    hidden: BTreeSet<String>,
    /// Those of them that are configured: they may be locks themselves, which are not delivered.
    denied: BTreeSet<String>,
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
        let unread = self.waiting.len() + self.hidden.len();
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
        let first = hidden_children(self.hidden.first()?);
        let more = match self.hidden.len() {
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

/// Whether it is below a hidden node, or a configured path that is one.
fn is_hidden(name: &[u8], hidden: &BTreeSet<String>, denied: &BTreeSet<String>) -> bool {
    let Ok(name) = std::str::from_utf8(name) else {
        return false;
    };
    let is_below = || {
        name.match_indices('/')
            .any(|(at, _)| hidden.contains(&name[..at]))
    };
    denied.contains(name) || denied.contains("/") || is_below()
}

impl ZookeeperBackend {
    pub(super) async fn pass(&self, budget: Budget, sink: &mut dyn Sink) -> Result<Pass, BackendError> {
        let deadline = self.link.clock.tick().plus(millis(budget.time_max));
        self.cache.begin_scan();
        let mut walk = Walk {
            waiting: self.link.settings.paths.clone(),
            ..Walk::default()
        };
        self.read_nodes(&mut walk, deadline, sink).await;
        walk.flush(sink);
        if walk.cut.is_none() {
            self.cache.end_scan();
            let (hidden, denied) = (walk.hidden.clone(), walk.denied.clone());
            let covers = move |name: &[u8]| !is_hidden(name, &hidden, &denied);
            sink.read_part(&row::source(), Arc::new(covers));
        }
        let denied = || walk.denied.first().map(|path| hidden_children(path));
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
        let is_configured = self.link.settings.paths.contains(&path);
        match read.found {
            Found::Missing if is_configured => {
                walk.faults.push(format!(
                    "the path {path} does not exist, so no lock is held below it; correct `paths` or create it"
                ));
            }
            Found::Hidden(_) if is_configured => {
                walk.denied.insert(path.clone());
                walk.hidden.insert(path);
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
                walk.hidden.insert(path);
                return;
            }
            Found::Free | Found::Missing => {}
        }
        walk.nodes_read += 1;
        let folders = read.folders.into_iter().filter(|path| path != OWN_NODES);
        walk.waiting.extend(folders);
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

    #[test]
    fn names_below_a_hidden_node_are_not_covered() {
        // The node itself, a child, one far below, and a neighbour whose name begins alike; a configured path; the root.
        let hidden = BTreeSet::from(["/locks/team".to_owned()]);
        let none = BTreeSet::new();
        let is_found_hidden = |name: &str| is_hidden(name.as_bytes(), &hidden, &none);
        assert!(is_found_hidden("/locks/team/a") && is_found_hidden("/locks/team/a/b"));
        assert!(!is_found_hidden("/locks/team") && !is_found_hidden("/locks/team-2/a"));
        assert!(!is_found_hidden("/locks"));
        assert!(is_hidden(b"/locks/team", &hidden, &hidden));
        let root = BTreeSet::from(["/".to_owned()]);
        assert!(is_hidden(b"/locks", &root, &root));
    }
}
