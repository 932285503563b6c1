//! The answer of `GET /v1/contention`.

use chrono::DateTime;
use domain::contention::recommendations::Advice;
use domain::contention::{Contention, ContentionRow};
use domain::history::histogram::ERROR;
use domain::names::BackendName;
use domain::time_format::iso;
use serde::Serialize;
use utoipa::ToSchema;

#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "Contention")]
pub(in crate::http) struct ContentionDto {
    from: String,
    to: String,
    /// Length of a cell.
    cell_ms: i64,
    /// Wait time of all owners together, in the whole range.
    waited_ms: u64,
    /// Largest relative error of a quantile.
    quantile_error: f64,
    /// Worst first.
    prefixes: Vec<PrefixWaitDto>,
    /// Prefixes that are not listed.
    others: Option<OthersDto>,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "PrefixWait")]
pub(in crate::http) struct PrefixWaitDto {
    backend: String,
    /// Names with their ids as `*`.
    prefix: String,
    waited_ms: Option<u64>,
    /// Waits that ended.
    waits: Option<u64>,
    wait_p50_ms: Option<i64>,
    wait_p95_ms: Option<i64>,
    acquired: u64,
    /// Only the lease service reports it.
    refused: Option<u64>,
    held_ms: u64,
    hold_p95_ms: Option<i64>,
    /// Number of ended holds that began or ended in an outage of the backend: their length is only known to be within an interval.
    holds_uncertain: u64,
    /// The resource with the most wait time. Its share is a lower bound.
    heaviest: Option<HeaviestDto>,
    advice: Vec<AdviceDto>,
    /// One value for each cell, oldest first; null: unknown.
    waiting_ms: Vec<Option<u64>>,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "HeaviestResource")]
pub(in crate::http) struct HeaviestDto {
    resource: String,
    share_percent: u64,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "Advice")]
pub(in crate::http) struct AdviceDto {
    /// `queue_or_partition`, `is_it_needed`, `longer_ttl`, `renew_sooner`, `shorter_ttl`, `efficiency_only`.
    kind: &'static str,
    what: String,
    /// The numbers on which it is based.
    why: String,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "OtherPrefixes")]
pub(in crate::http) struct OthersDto {
    prefixes: usize,
    waited_ms: u64,
    waiting_ms: Vec<Option<u64>>,
}

impl ContentionDto {
    pub(super) fn from_contention(found: Contention) -> Self {
        let moment = |ms| DateTime::from_timestamp_millis(ms).map_or_else(String::new, iso);
        Self {
            from: moment(found.span.from),
            to: moment(found.span.to()),
            cell_ms: found.span.cell_ms,
            waited_ms: found.waited_ms,
            quantile_error: ERROR,
            prefixes: found.rows.iter().map(PrefixWaitDto::from_row).collect(),
            others: found.others.map(|others| OthersDto {
                prefixes: others.prefixes,
                waited_ms: others.waited_ms,
                waiting_ms: others.cells,
            }),
        }
    }
}

impl PrefixWaitDto {
    fn from_row(row: &ContentionRow) -> Self {
        let total = &row.total;
        let known = |value| row.is_known.then_some(value);
        Self {
            backend: row.backend.to_string(),
            prefix: row.prefix.clone(),
            waited_ms: known(total.waiting_ms),
            waits: known(total.waits.count()),
            wait_p50_ms: total.waits.quantile(0.5),
            wait_p95_ms: total.waits.quantile(0.95),
            acquired: total.acquired,
            refused: (row.backend == BackendName::builtin()).then_some(total.refused),
            held_ms: total.held_ms,
            hold_p95_ms: total.holds.quantile(0.95),
            holds_uncertain: total.holds_uncertain,
            heaviest: row.heaviest().map(|(resource, share_percent)| HeaviestDto {
                resource: resource.to_owned(),
                share_percent,
            }),
            advice: row.advice.iter().map(AdviceDto::from_advice).collect(),
            waiting_ms: row
                .cells
                .iter()
                .map(|cell| cell.as_ref().map(|sum| sum.waiting_ms))
                .collect(),
        }
    }
}

impl AdviceDto {
    fn from_advice(advice: &Advice) -> Self {
        Self {
            kind: advice.kind.as_str(),
            what: advice.what.clone(),
            why: advice.why.clone(),
        }
    }
}
