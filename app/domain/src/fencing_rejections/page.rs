//! Everything that the fencing page shows.

use serde::{Deserialize, Serialize};

use super::{Rejection, RejectionFilter, Reporter, StaleOwner, over_time, reporters, stale_owners};
use crate::charts::range::{RangePreset, TimeRange};
use crate::charts::shown_range::ShownRange;
use crate::format;
use crate::history::HistoryEvent;
use crate::lock_detail::EventKind;
use crate::names::{LockId, OwnerId};
use crate::query::QueryError;
use crate::token::FencingToken;

/// Bars of the chart at most, and their least length in milliseconds: the shortest range.
const BARS_MAX: i64 = 48;
const BAR_MS_MIN: i64 = 60_000;
/// Rejections of one page, and rows of the other lists.
const ROWS_MAX: usize = 50;
const FEW: usize = 10;
const GRANTS_MAX: usize = 20;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FencingPage {
    pub range: ShownRange,
    /// Headline, as a finding.
    pub title: String,
    /// All matches of the range.
    pub total: u64,
    /// Rejections of the preceding period; `None`: there is no data of it.
    pub before: Option<u64>,
    /// Per equal part of the range.
    pub counts: Vec<u64>,
    pub stale: Vec<StaleOwner>,
    pub stale_total: u64,
    pub reporters: Vec<Reporter>,
    pub reporters_total: u64,
    /// One page, newest first.
    pub rejections: Vec<Rejection>,
    pub has_older: bool,
    /// Newest first; `None`: they could not be read.
    pub grants: Option<Vec<LatestGrant>>,
    /// No reports exist that the reader may see.
    pub is_unused: bool,
    /// Why rejections of the range are missing, as a sentence.
    pub left_out: Option<String>,
    /// Names of backends to choose from.
    pub backends: Vec<String>,
    /// Why the query was not run.
    pub error: Option<QueryError>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LatestGrant {
    /// Milliseconds since 1970.
    pub at: i64,
    pub lock: LockId,
    pub owner: Option<OwnerId>,
    pub token: Option<FencingToken>,
    pub kind: EventKind,
}

/// Input from which [`FencingPage`] is built. All rows match the query.
pub struct FencingInput {
    pub range: ShownRange,
    /// All of the range, newest first.
    pub rejections: Vec<Rejection>,
    pub before: Option<u64>,
    /// `None`: they could not be read.
    pub grants: Option<Vec<HistoryEvent>>,
    pub is_unused: bool,
    pub left_out: Option<String>,
    pub backends: Vec<String>,
}

impl FencingPage {
    /// The page of an invalid query: its form keeps the values.
    pub fn refused(error: QueryError, backends: Vec<String>, now: i64) -> Self {
        Self {
            range: ShownRange::new(Ok(None), RangePreset::Day, None, now),
            title: "Search not run".to_owned(),
            total: 0,
            before: None,
            counts: Vec::new(),
            stale: Vec::new(),
            stale_total: 0,
            reporters: Vec::new(),
            reporters_total: 0,
            rejections: Vec::new(),
            has_older: false,
            grants: None,
            is_unused: false,
            left_out: None,
            backends,
            error: Some(error),
        }
    }

    pub fn new(query: &RejectionFilter, input: FencingInput) -> Self {
        let FencingInput {
            range,
            rejections,
            before,
            grants,
            is_unused,
            left_out,
            backends,
        } = input;
        let mut stale = stale_owners(&rejections);
        let mut reporters = reporters(&rejections);
        let (stale_total, reporters_total) = (stale.len() as u64, reporters.len() as u64);
        let title = title(&rejections, &stale, range.as_picked());
        stale.truncate(FEW);
        reporters.truncate(FEW);
        let (total, counts) = (
            rejections.len() as u64,
            over_time(&rejections, range.scale, bars(&range)),
        );
        let mut older = rejections
            .into_iter()
            .filter(|row| query.before.is_none_or(|before| row.id < before));
        let page: Vec<Rejection> = older.by_ref().take(ROWS_MAX).collect();
        Self {
            title,
            total,
            before,
            counts,
            stale,
            stale_total,
            reporters,
            reporters_total,
            has_older: older.next().is_some(),
            error: None,
            rejections: page,
            grants: grants.map(|grants| grants.into_iter().take(GRANTS_MAX).map(grant).collect()),
            is_unused,
            left_out,
            backends,
            range,
        }
    }
}

fn bars(range: &ShownRange) -> usize {
    let bars = (range.scale.length_ms() / BAR_MS_MIN).clamp(1, BARS_MAX);
    usize::try_from(bars).unwrap_or(1)
}

fn grant(event: HistoryEvent) -> LatestGrant {
    LatestGrant {
        at: event.at,
        lock: LockId {
            backend: event.backend,
            source: event.source,
            resource: event.resource,
        },
        owner: event.owner,
        token: event.token,
        kind: event.kind,
    }
}

fn title(rejections: &[Rejection], stale: &[StaleOwner], range: TimeRange) -> String {
    let range_label = match range {
        TimeRange::Last(last) => format!("in the last {}", last.label()),
        TimeRange::Between { .. } => format!("from {}", range.label()),
    };
    if rejections.is_empty() {
        return format!("No fencing rejections {range_label}");
    }
    let known = stale.iter().filter(|stale| stale.owner.is_some()).count() as u64;
    let writes = format::counted(rejections.len() as u64, "write", "writes");
    match known {
        0 => format!("{writes} rejected {range_label}"),
        known => format!(
            "{writes} of {} rejected {range_label}",
            format::counted(known, "owner", "owners")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(rows: i64, before: Option<i64>) -> FencingPage {
        let row = |id| Rejection {
            id,
            at: id * 1_000,
            resource: "r".to_owned(),
            token: FencingToken::new(1),
            current: None,
            owner: Some(OwnerId::new("w")),
            source: "db".to_owned(),
            reason: "stale".to_owned(),
        };
        let mut query = RejectionFilter::from_pairs(&[]).unwrap();
        query.before = before;
        FencingPage::new(
            &query,
            FencingInput {
                range: ShownRange::new(Ok(None), RangePreset::Day, Some(0), 600_000),
                rejections: (1..=rows).rev().map(row).collect(),
                before: None,
                grants: Some(Vec::new()),
                is_unused: false,
                left_out: None,
                backends: Vec::new(),
            },
        )
    }

    #[test]
    fn pages_of_rejections_neither_repeat_nor_omit() {
        let mut ids = Vec::new();
        let mut next = None;
        loop {
            let page = page(120, next);
            assert_eq!(page.total, 120);
            ids.extend(page.rejections.iter().map(|row| row.id));
            next = page.rejections.last().map(|row| row.id);
            if !page.has_older {
                break;
            }
        }
        assert_eq!(ids, (1..=120).rev().collect::<Vec<i64>>());
    }

    #[test]
    fn bars_are_a_minute_long_at_least() {
        // Ten minutes of data: ten bars, which count all.
        let page = page(120, None);
        assert_eq!((page.counts.len(), page.counts.iter().sum::<u64>()), (10, 120));
        assert_eq!(page.title, "120 writes of 1 owner rejected in the last 24 h");
    }
}
