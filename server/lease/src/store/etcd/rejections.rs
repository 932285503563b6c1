//! Fencing rejections. The id of one is the revision at which it was recorded, so ids rise in commit order.

use std::collections::BTreeMap;

use domain::lease::StoreTime;
use domain::lease::scope::NameRange;
use domain::names::Resource;
use domain::token::FencingToken;
use etcd_client::{GetOptions, KeyValue, SortOrder, SortTarget};

use super::EtcdStore;
use super::keys::KeyRange;
use super::snapshot::get_range;
use super::values::{RejectionValue, decode};
use crate::store::{RejectionCount, RejectionQuery, RejectionRange, RejectionRow, StaleWrite, StoreError};

const PAGE: i64 = 1_000;
/// Second, resource, owner, and whether a newer token had been granted.
type CountKey = (i64, String, Option<String>, bool);

/// Rejections of one revision at most.
const PLACES: i64 = 1_024;

impl EtcdStore {
    /// Rejections of a range with their ids, oldest first.
    async fn read_rejections(&self, range: KeyRange) -> Result<Vec<(i64, RejectionValue)>, StoreError> {
        let KeyRange { mut from, to } = range;
        let mut found = Vec::new();
        loop {
            let next = KeyRange {
                from: from.clone(),
                to: to.clone(),
            };
            let read = get_range(next, GetOptions::new().with_limit(PAGE));
            let (_, results) = self.read(&self.readers, vec![read]).await?;
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

    pub(super) async fn find_rejections(
        &self,
        filter: &RejectionQuery,
    ) -> Result<Vec<RejectionRow>, StoreError> {
        let found = self.read_rejections(self.keys.all_rejections()).await?;
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
        let most = usize::try_from(filter.most).unwrap_or(usize::MAX);
        let rows = found
            .into_iter()
            .rev()
            .filter(|(_, value)| matches(value))
            .take(most);
        Ok(rows.map(|(id, value)| row(id, value)).collect())
    }

    pub(super) async fn count_rejections(
        &self,
        range: &RejectionRange,
    ) -> Result<Vec<RejectionCount>, StoreError> {
        let found = self.read_rejections(self.keys.all_rejections()).await?;
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
        let last = GetOptions::new()
            .with_sort(SortTarget::Key, SortOrder::Descend)
            .with_limit(1);
        let read = get_range(self.keys.rejections_before(recorded.ms()), last);
        let (_, results) = self.read(&self.readers, vec![read]).await?;
        let Some(pair) = results.first().and_then(|pairs| pairs.first()) else {
            return Ok(0);
        };
        let value: RejectionValue = decode(pair.key(), pair.value())?;
        Ok(rejection_id(pair, &value))
    }

    pub(super) async fn find_stale_writes(&self, since: StoreTime) -> Result<Vec<StaleWrite>, StoreError> {
        let found = self.read_rejections(self.keys.all_rejections()).await?;
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
