//! Fencing rejections of all shards: queries of each, merged.
//!
//! Each shard numbers its rejections. The number shown is that number times the number of shards, plus the index of the
//! shard: unique, and on one store the number itself. A position in the rejections is one number for each shard.

use domain::lease::StoreTime;

use super::LeaseService;
use super::error::LeaseError;
use super::shards::{ShardIndex, ShardReads};
use super::store::{RejectionCount, RejectionQuery, RejectionRange, RejectionRow, StaleWrite, StoreFuture};

/// How far rejections were read, by shard: the last id; `None` for a shard that did not answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RejectionPosition(Vec<Option<i64>>);

impl RejectionPosition {
    /// The position in each shard, in their order.
    pub fn new(ids: impl IntoIterator<Item = Option<i64>>) -> Self {
        Self(ids.into_iter().collect())
    }

    /// Whether every shard has answered.
    pub fn is_complete(&self) -> bool {
        self.0.iter().all(Option::is_some)
    }

    /// This position; in shards where it is unknown, that of `other`.
    #[must_use]
    pub fn or(&self, other: &Self) -> Self {
        self.merge(other, |one, other| one.or(other))
    }

    /// The later position in each shard, of those that are known.
    #[must_use]
    pub fn max(&self, other: &Self) -> Self {
        self.merge(other, Option::max)
    }

    fn merge(&self, other: &Self, pick: impl Fn(Option<i64>, Option<i64>) -> Option<i64>) -> Self {
        Self(
            self.0
                .iter()
                .zip(&other.0)
                .map(|(one, other)| pick(*one, *other))
                .collect(),
        )
    }

    /// A number that grows with each rejection of any shard.
    pub fn sum(&self) -> i64 {
        self.0.iter().flatten().sum()
    }

    fn in_shard(&self, shard: ShardIndex) -> Option<i64> {
        self.0.get(shard.number()).copied().flatten()
    }
}

/// Rejections to count, by shard: after a position, up to and including another one, that happened at `since` or later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RejectionSpan {
    pub after: RejectionPosition,
    /// `None`: to the end.
    pub to: Option<RejectionPosition>,
    pub since: StoreTime,
}

impl RejectionSpan {
    /// `None` when the position in this shard is unknown, or there is nothing between the two.
    fn in_shard(&self, shard: ShardIndex) -> Option<RejectionRange> {
        let after = self.after.in_shard(shard)?;
        let to = match &self.to {
            Some(to) => to.in_shard(shard)?,
            None => i64::MAX,
        };
        (to > after).then_some(RejectionRange {
            after,
            to,
            since: self.since,
        })
    }
}

impl LeaseService {
    /// Fencing rejections, newest first, at most 1000.
    ///
    /// # Errors
    /// `Unavailable`.
    pub async fn rejections(
        &self,
        resource: Option<&domain::names::Resource>,
    ) -> Result<Vec<RejectionRow>, LeaseError> {
        let ever = RejectionQuery {
            resource: resource.cloned(),
            names: None,
            from: StoreTime::from_ms(i64::MIN),
            until: StoreTime::from_ms(i64::MAX),
            most: 1000,
        };
        Ok(self.query_rejections(&ever).await?.rows)
    }

    /// Fencing rejections that match a query, newest first. Those of one resource are in its shard alone.
    ///
    /// # Errors
    /// `Unavailable`.
    pub async fn query_rejections(&self, filter: &RejectionQuery) -> Result<FoundRejections, LeaseError> {
        let map = self.shards.map();
        if let Some(resource) = &filter.resource {
            let shard = map.of_resource(resource);
            let read = self.shards.read_at(shard, |core| core.store.rejections(filter));
            let rows = numbered(shard, map.shards(), read.await?).collect();
            return Ok(FoundRejections {
                rows,
                is_complete: true,
            });
        }
        let found = self
            .shards
            .read_all(|shard, core| tag(shard, core.store.rejections(filter)))
            .await?;
        Ok(FoundRejections {
            is_complete: found.is_complete(),
            rows: merged(found, filter.most, map.shards()),
        })
    }

    /// Rejections counted by resource, owner and second, oldest first, of the shards that answer.
    ///
    /// # Errors
    /// `Unavailable` when none does.
    pub async fn rejection_counts(&self, span: &RejectionSpan) -> Result<Vec<RejectionCount>, LeaseError> {
        let ranges: Vec<Option<RejectionRange>> = (0..self.shards.map().shards())
            .map(|index| span.in_shard(ShardIndex::new(index)))
            .collect();
        let found = self.shards.read_all(|shard, core| match &ranges[shard.number()] {
            Some(range) => core.store.rejection_counts(range),
            None => Box::pin(std::future::ready(Ok(Vec::new()))),
        });
        let mut counts: Vec<RejectionCount> = found.await?.reads.into_iter().flatten().collect();
        if ranges.len() > 1 {
            counts.sort_by_key(|count| count.at);
        }
        Ok(counts)
    }

    /// Position of the last rejection recorded before a time of the store's clock; 0 without one.
    ///
    /// # Errors
    /// `Unavailable` when no shard answers.
    pub async fn last_rejection_before(&self, recorded: StoreTime) -> Result<RejectionPosition, LeaseError> {
        let found = self
            .shards
            .read_all(|shard, core| tag(shard, core.store.last_rejection_before(recorded)));
        let mut ids = vec![None; self.shards.map().shards() as usize];
        for (shard, id) in found.await?.reads {
            ids[shard.number()] = Some(id);
        }
        Ok(RejectionPosition(ids))
    }

    /// The newest rejected write with an older token of each resource, since a time of the
    /// store's clock, of the shards that answer.
    ///
    /// # Errors
    /// `Unavailable` when none does.
    pub async fn stale_writes(&self, since: StoreTime) -> Result<Vec<StaleWrite>, LeaseError> {
        let found = self.shards.read_all(|_, core| core.store.stale_writes(since));
        Ok(found.await?.reads.into_iter().flatten().collect())
    }
}

/// Rejections, and whether every shard that may have some has answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundRejections {
    pub rows: Vec<RejectionRow>,
    pub is_complete: bool,
}

/// The result with the shard that it is from.
fn tag<'s, T: Send + 's>(shard: ShardIndex, read: StoreFuture<'s, T>) -> StoreFuture<'s, (ShardIndex, T)> {
    Box::pin(async move { Ok((shard, read.await?)) })
}

fn numbered(shard: ShardIndex, shards: u32, rows: Vec<RejectionRow>) -> impl Iterator<Item = RejectionRow> {
    rows.into_iter().map(move |row| RejectionRow {
        id: row.id * i64::from(shards) + i64::from(shard.get()),
        ..row
    })
}

/// Ids of two shards do not compare, so the merged rows are in the order of their times.
fn merged(
    found: ShardReads<(ShardIndex, Vec<RejectionRow>)>,
    rows_max: u32,
    shards: u32,
) -> Vec<RejectionRow> {
    let mut rows: Vec<RejectionRow> = Vec::new();
    for (shard, read) in found.reads {
        rows.extend(numbered(shard, shards, read));
    }
    if shards > 1 {
        rows.sort_by_key(|row| std::cmp::Reverse((row.at, row.id)));
        rows.truncate(usize::try_from(rows_max).unwrap_or(usize::MAX));
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: i64, at: i64) -> RejectionRow {
        RejectionRow {
            id,
            resource: "r".to_owned(),
            token: 1,
            highest: None,
            owner: None,
            source: "test".to_owned(),
            reason: "reported".to_owned(),
            at: StoreTime::from_ms(at),
        }
    }

    #[test]
    fn rejections_of_two_shards_are_merged_by_time() {
        let found = ShardReads {
            reads: vec![
                (ShardIndex::new(0), vec![row(9, 900), row(8, 400)]),
                (ShardIndex::new(1), vec![row(2, 700), row(1, 100)]),
            ],
            unread: Vec::new(),
        };
        let rows = merged(found, 3, 2);
        let ids: Vec<(i64, i64)> = rows.iter().map(|row| (row.id, row.at.ms())).collect();
        assert_eq!(ids, [(18, 900), (5, 700), (16, 400)]);
    }

    #[test]
    fn a_position_continues_where_a_silent_shard_was() {
        let before = RejectionPosition::new([Some(5), Some(7)]);
        let now = RejectionPosition::new([Some(9), None]);
        assert!(before.is_complete() && !now.is_complete());
        assert_eq!(now.max(&before), RejectionPosition::new([Some(9), Some(7)]));
        assert_eq!(now.or(&before), RejectionPosition::new([Some(9), Some(7)]));
        let span = RejectionSpan {
            after: before,
            to: Some(now),
            since: StoreTime::from_ms(1),
        };
        let range = span.in_shard(ShardIndex::new(0)).unwrap();
        assert_eq!((range.after, range.to), (5, 9));
        assert_eq!(span.in_shard(ShardIndex::new(1)), None);
    }
}
