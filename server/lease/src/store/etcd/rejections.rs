//! Fencing rejections. The id of one is made of the revision at which it was recorded and its place in the transaction,
//! so ids rise in commit order.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use domain::lease::StoreTime;
use domain::lease::scope::NameRange;
use domain::names::Resource;
use domain::token::FencingToken;
use etcd_client::{Client, GetOptions, KeyValue};

use super::EtcdStore;
use super::keys::{KeyRange, MS_MAX};
use super::snapshot::get_range;
use super::values::{RejectionValue, decode};
use crate::store::{RejectionCount, RejectionQuery, RejectionRange, RejectionRow, StaleWrite, StoreError};

const PAGE: i64 = 1_000;
/// First span of a backward read, in milliseconds.
const SPAN_MS: i64 = 3_600_000;
/// How far the clock of a reporter may be ahead: its rejection was recorded before the time that it names.
const REPORTER_AHEAD_MS: i64 = 3_600_000;
/// Second, resource, owner, and whether a newer token had been granted.
type CountKey = (i64, String, Option<String>, bool);

/// Rejections of one revision at most.
const PLACES: i64 = 1_024;

impl EtcdStore {
    /// Rejections of a range with their ids, oldest first; those recorded before the revision of `after` are left out.
    async fn read_rejections(
        &self,
        range: KeyRange,
        after: i64,
    ) -> Result<Vec<(i64, RejectionValue)>, StoreError> {
        let KeyRange { mut from, to } = range;
        let mut found = Vec::new();
        loop {
            let next = KeyRange {
                from: from.clone(),
                to: to.clone(),
            };
            let options = GetOptions::new()
                .with_limit(PAGE)
                .with_min_create_revision(after / PLACES);
            let (_, results) = self.read(&self.readers, vec![get_range(next, options)]).await?;
            let pairs = results.into_iter().next().unwrap_or_default();
            for pair in &pairs {
                let value: RejectionValue = decode(pair.key(), pair.value())?;
                found.push((rejection_id(pair, &value), value));
            }
            match pairs.last().filter(|_| pairs.len() as i64 >= PAGE) {
                Some(last) => from = [last.key(), b"\0"].concat(),
                None => break,
            }
        }
        found.sort_by_key(|(id, _)| *id);
        Ok(found)
    }

    /// How many were recorded in a range; etcd counts them in its index.
    async fn count_recorded(&self, range: KeyRange) -> Result<i64, StoreError> {
        let sent = self.guard.sent();
        let KeyRange { from, to } = range;
        let counted = self.readers.call(|mut client: Client| {
            let (from, options) = (
                from.clone(),
                GetOptions::new().with_count_only().with_range(to.clone()),
            );
            async move { client.get(from, Some(options)).await }
        });
        let counted = counted.await?;
        self.guard.check(sent, counted.header())?;
        Ok(counted.count())
    }

    /// The newest ones recorded in `from_ms..until_ms` that match, newest first, at most `rows_max`. Reads backwards in spans
    /// of about a page: etcd would sort all of them for a descending read.
    async fn newest_rejections(
        &self,
        (from_ms, until_ms): (i64, i64),
        rows_max: usize,
        matches: impl Fn(&RejectionValue) -> bool,
    ) -> Result<Vec<(i64, RejectionValue)>, StoreError> {
        let (from_ms, mut until_ms) = (from_ms.max(0), until_ms.min(MS_MAX));
        let (mut span_ms, mut newest) = (SPAN_MS, Vec::new());
        while until_ms > from_ms && newest.len() < rows_max {
            let begin_ms = until_ms.saturating_sub(span_ms).max(from_ms);
            let range = || self.keys.rejections_between(begin_ms, until_ms);
            let count = self.count_recorded(range()).await?;
            if count > PAGE && span_ms > 1 {
                span_ms /= 2;
                continue;
            }
            if count > 0 {
                let found = self.read_rejections(range(), 0).await?;
                newest.extend(found.into_iter().rev().filter(|(_, value)| matches(value)));
            }
            if count < PAGE / 4 {
                span_ms = span_ms.saturating_mul(4);
            }
            until_ms = begin_ms;
        }
        // Replicas record by clocks that differ a little.
        newest.sort_unstable_by_key(|(id, _)| Reverse(*id));
        newest.truncate(rows_max);
        Ok(newest)
    }

    /// Range of the rejections at this time of a reporter's clock or later.
    fn recorded_since(&self, at: StoreTime) -> KeyRange {
        let from_ms = at.ms().saturating_sub(REPORTER_AHEAD_MS);
        self.keys.rejections_between(from_ms, MS_MAX)
    }

    pub(super) async fn find_rejections(
        &self,
        filter: &RejectionQuery,
    ) -> Result<Vec<RejectionRow>, StoreError> {
        let resource = filter.resource.as_ref().map(Resource::text);
        let matches = |value: &RejectionValue| {
            resource.as_ref().is_none_or(|name| *name == value.resource)
                && filter
                    .names
                    .as_ref()
                    .is_none_or(|names| contains(names, &value.resource))
                && value.at >= filter.from.ms()
                && value.at < filter.until.ms()
        };
        let rows_max = usize::try_from(filter.most).unwrap_or(usize::MAX);
        let from_ms = filter.from.ms().saturating_sub(REPORTER_AHEAD_MS);
        let now_ms = self.store_clock.read().now.ms();
        // Another replica may be ahead of our clock.
        let recorded = (from_ms, now_ms.saturating_add(SPAN_MS));
        let found = self.newest_rejections(recorded, rows_max, matches).await?;
        Ok(found.into_iter().map(|(id, value)| row(id, value)).collect())
    }

    pub(super) async fn count_rejections(
        &self,
        range: &RejectionRange,
    ) -> Result<Vec<RejectionCount>, StoreError> {
        let found = self
            .read_rejections(self.recorded_since(range.since), range.after)
            .await?;
        let mut counts: BTreeMap<CountKey, (i64, RejectionCount)> = BTreeMap::new();
        for (id, value) in found {
            if id <= range.after || id > range.to || value.at < range.since.ms() {
                continue;
            }
            let is_older = value.highest.is_some_and(|highest| value.token < highest);
            let key = (
                value.at / 1_000,
                value.resource.clone(),
                value.owner.clone(),
                is_older,
            );
            let (last_id, count) = counts.entry(key).or_insert_with(|| {
                let count = RejectionCount {
                    resource: value.resource.clone(),
                    owner: value.owner.clone(),
                    token: 0,
                    highest: None,
                    at: StoreTime::from_ms(value.at),
                    is_older,
                    times: 0,
                };
                (id, count)
            });
            *last_id = id;
            count.token = value.token.cast_signed();
            count.highest = value.highest.map(u64::cast_signed);
            count.at = count.at.max(StoreTime::from_ms(value.at));
            count.times += 1;
        }
        let mut counts: Vec<(i64, RejectionCount)> = counts.into_values().collect();
        counts.sort_by_key(|(id, count)| (count.at, *id));
        Ok(counts.into_iter().map(|(_, count)| count).collect())
    }

    pub(super) async fn last_before(&self, recorded: StoreTime) -> Result<i64, StoreError> {
        let newest = self.newest_rejections((0, recorded.ms()), 1, |_| true).await?;
        Ok(newest.first().map_or(0, |(id, _)| *id))
    }

    pub(super) async fn find_stale_writes(&self, since: StoreTime) -> Result<Vec<StaleWrite>, StoreError> {
        let found = self.read_rejections(self.recorded_since(since), 0).await?;
        let mut newest: BTreeMap<String, RejectionValue> = BTreeMap::new();
        for (_, value) in found {
            let is_older = value.highest.is_none_or(|highest| value.token < highest);
            if value.at >= since.ms() && value.reason != "never_issued" && is_older {
                newest.insert(value.resource.clone(), value);
            }
        }
        let stale = |value: RejectionValue| StaleWrite {
            resource: Resource::from(value.resource.as_str()),
            token: FencingToken::new(value.token),
            owner: value.owner,
            at: StoreTime::from_ms(value.at),
        };
        Ok(newest.into_values().map(stale).collect())
    }
}

fn rejection_id(pair: &KeyValue, value: &RejectionValue) -> i64 {
    pair.create_revision() * PLACES + i64::from(value.place)
}

fn contains(names: &NameRange, name: &str) -> bool {
    name >= names.from.as_str() && names.to.as_deref().is_none_or(|to| name < to)
}

fn row(id: i64, value: RejectionValue) -> RejectionRow {
    RejectionRow {
        id,
        resource: value.resource,
        token: value.token.cast_signed(),
        highest: value.highest.map(u64::cast_signed),
        owner: value.owner,
        source: value.source,
        reason: value.reason,
        at: StoreTime::from_ms(value.at),
    }
}
