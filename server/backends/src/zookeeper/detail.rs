//! One lock read fresh: its queue with the owner of each waiter, and the holder's record.

use chrono::{DateTime, Utc};
use domain::escape;
use domain::limits::WAITERS_KEPT_MAX;
use domain::names::{OwnerId, Resource, Source};
use domain::observation::{Inspection, RawField, Waiter};
use domain::reported::Reported;
use futures::{StreamExt, TryStreamExt};
use zookeeper_client::Stat;

use super::ZookeeperBackend;
use super::connection::IN_FLIGHT_MAX;
use super::contender_cache::KnownOwner;
use super::error::ZookeeperError;
use super::node::{self, Contender, DATA_BYTES_MAX, Found, LockNode, session_text};
use super::release;
use super::row::{self, HIDDEN};
use super::settings::join;
use crate::owner_value::cut;

/// Longest raw value shown, in characters.
const RAW_CHARS_MAX: usize = 4_096;
const NO_WAITS: &str = "ZooKeeper reports no clock to compare with the time at which the node was created";

impl ZookeeperBackend {
    pub(super) async fn detail(
        &self,
        source: &Source,
        resource: &Resource,
    ) -> Result<Inspection, ZookeeperError> {
        self.link.sync().await?;
        match self.find(source, resource).await? {
            Found::Lock(node) => self.lock_detail(*node).await,
            Found::Hidden(_) => Ok(Inspection {
                lock: Some(row::hidden(&resource.text())),
                blast_radius: Reported::unknown(HIDDEN),
                ..Inspection::default()
            }),
            Found::Free | Found::Missing => Ok(Inspection::default()),
        }
    }

    async fn lock_detail(&self, node: LockNode) -> Result<Inspection, ZookeeperError> {
        let waiting = self.owners(&node.path, node.waiters()).await?;
        let owners = match node.holder_count() {
            1 => Vec::new(),
            _ => self.owners(&node.path, node.holders()).await?,
        };
        let waiters = (1..).zip(&waiting).map(|(position, owner_id)| Waiter {
            position,
            owner_id: owner_id.clone(),
            waited_ms: Reported::unknown(NO_WAITS),
            lease_remaining_ms: None,
        });
        Ok(Inspection {
            waiters: waiters.collect(),
            blast_radius: Reported::Value(release::radius(&node, waiting.first().cloned())),
            raw: self.raw(&node).await?,
            lock: Some(node.lock()),
            owners,
            ..Inspection::default()
        })
    }

    /// Owners in order; a contender that has gone meanwhile is left out.
    async fn owners(&self, parent: &str, queue: &[Contender]) -> Result<Vec<OwnerId>, ZookeeperError> {
        let queue = &queue[..queue.len().min(WAITERS_KEPT_MAX)];
        let mut reads = Vec::with_capacity(queue.len());
        reads.extend(
            queue
                .iter()
                .map(|contender| node::owner_of(&self.link, parent, contender, None)),
        );
        let reads = futures::stream::iter(reads).buffered(IN_FLIGHT_MAX);
        let owners: Vec<Option<KnownOwner>> = reads.try_collect().await?;
        Ok(owners
            .into_iter()
            .flatten()
            .map(|known| known.read.owner)
            .collect())
    }

    async fn raw(&self, node: &LockNode) -> Result<Vec<RawField>, ZookeeperError> {
        let Some(first) = node.queue.first() else {
            return Ok(Vec::new());
        };
        let path = join(&node.path, &first.name);
        let Some(stat) = node::stat(&self.link, &path).await? else {
            return Ok(Vec::new());
        };
        let data = match &node.first.note {
            Some(note) => format!("unknown: {note}"),
            None if stat.data_length > DATA_BYTES_MAX => format!("unknown: {}", node::LARGE_DATA),
            None => self.data(&path).await?,
        };
        Ok(fields(&path, &stat, data))
    }

    async fn data(&self, path: &str) -> Result<String, ZookeeperError> {
        let data = self
            .link
            .call(|client| async move { client.get_data(path).await })
            .await;
        match data {
            Ok((data, _)) => Ok(cut(&escape::text(&data), RAW_CHARS_MAX).into_owned()),
            Err(fault) if fault.is_no_node() => Ok("unknown: the node has gone meanwhile".to_owned()),
            Err(fault) => Err(fault),
        }
    }
}

fn fields(path: &str, stat: &Stat, data: String) -> Vec<RawField> {
    let field = |name: &str, value: String| RawField {
        name: name.to_owned(),
        value,
    };
    let time = |ms: i64| {
        DateTime::<Utc>::from_timestamp_millis(ms).map_or_else(|| ms.to_string(), |time| time.to_rfc3339())
    };
    vec![
        field("holder's node", path.to_owned()),
        field("data", data),
        field("data bytes", stat.data_length.to_string()),
        field("session", session_text(stat.ephemeral_owner)),
        field("czxid", format!("0x{:x}", stat.czxid)),
        field("mzxid", format!("0x{:x}", stat.mzxid)),
        field("version of the data", stat.version.to_string()),
        field("joined the queue", time(stat.ctime)),
        field("data written", time(stat.mtime)),
    ]
}
