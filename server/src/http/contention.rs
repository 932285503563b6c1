//! `GET /v1/contention`: waiting by prefix, as far as the caller may see.

mod dto;

use app::server_pages::contention::ContentionFilter;
use axum::Json;
use axum::extract::{RawQuery, State};
use domain::access::Visible;
use domain::audit::parse_moment;
use domain::charts::range::{RangePreset, TimeRange};
use domain::contention::recommendations::{self, Retained};
use domain::contention::{By, Contention, ROWS_MAX, worst};
use domain::history::rollup::Rollup;
use domain::history::series::{HistorySeries, HistorySpan};
use domain::query::QueryError;

use self::dto::ContentionDto;
use super::current_user::ApiUser;
use super::state::{AppState, Services};
use crate::http::problem::Problem;

/// Prefixes that advice is looked for beyond those shown: the ones that are taken most.
const BUSY_MAX: usize = 12;
/// Period of the recommendations, in milliseconds: the default retention.
const RETAINED_MS: i64 = 30 * 24 * 3_600_000;
const FIELDS: [&str; 8] = ["range", "from", "to", "by", "backend", "prefix", "at", "trees"];

pub(super) fn parse(query: &str) -> Result<ContentionFilter, QueryError> {
    let pairs = app::links::pairs(query);
    let borrowed = || pairs.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    if let Some((name, _)) = borrowed().find(|(name, _)| !FIELDS.contains(name)) {
        return Err(QueryError::new(
            name,
            format!("is not a parameter; allowed are {}", FIELDS.join(", ")),
        ));
    }
    let one = |field: &str| borrowed().find(|(name, value)| *name == field && !value.is_empty());
    let range = TimeRange::from_pairs(borrowed(), RangePreset::SixHours)?;
    let by = match one("by") {
        None => By::default(),
        Some((_, word)) => {
            By::parse(word).ok_or_else(|| QueryError::new("by", "must be wait or refusals"))?
        }
    };
    let cell = match (one("backend"), one("prefix"), one("at")) {
        (None, None, None) => None,
        (Some((_, backend)), Some((_, prefix)), Some((_, at))) => {
            let at = parse_moment(at)
                .ok_or_else(|| QueryError::new("at", "must be a time like 2026-05-01T02:40:00Z"))?;
            Some((backend.to_owned(), prefix.to_owned(), at.timestamp_millis()))
        }
        _ => {
            return Err(QueryError::new(
                "at",
                "must be set together with backend and prefix, or all three left out",
            ));
        }
    };
    Ok(ContentionFilter {
        range,
        by,
        cell,
        all_trees: one("trees").is_some_and(|(_, word)| word == "all"),
        pairs: pairs
            .iter()
            .filter(|(_, value)| !value.is_empty())
            .cloned()
            .collect(),
    })
}

/// Where waiting happened: prefixes by time, the worst first, with what their numbers advise. Null: not known.
#[utoipa::path(
    get, path = "/v1/contention", tag = "inventory",
    params(
        ("range" = Option<String>, Query, description = "1h, 6h (default), 24h, 7d or 30d"),
        ("from" = Option<String>, Query, description = "With `to`, instead of `range`: RFC 3339"),
        ("to" = Option<String>, Query, description = "At most 31 days later"),
        ("by" = Option<String>, Query, description = "`wait` (default) or `refusals`")
    ),
    responses(
        (status = 200, body = ContentionDto),
        (status = 400, body = Problem, content_type = "application/problem+json"),
        (status = 503, body = Problem, content_type = "application/problem+json")
    )
)]
pub(in crate::http) async fn list(
    State(state): State<AppState>,
    user: ApiUser,
    RawQuery(query): RawQuery,
) -> Result<Json<ContentionDto>, Problem> {
    let criteria = parse(query.as_deref().unwrap_or_default())
        .map_err(|error| user.problem(app::console::ConsoleError::BadQuery(error)))?;
    let found = Box::pin(state.contention(&criteria, &Visible::to(&user.who.grants))).await;
    let (found, worst) = found.map_err(|error| {
        tracing::warn!("history cannot be read: {error}");
        user.problem(Problem::store_unavailable())
    })?;
    Ok(Json(ContentionDto::from_contention(match criteria.by {
        By::Wait => found,
        By::Refusals => worst,
    })))
}

impl Services {
    /// By wait for the map, and as it was criteria for the table.
    pub(super) async fn contention(
        &self,
        criteria: &ContentionFilter,
        visible: &Visible,
    ) -> Result<(Contention, Contention), sqlx::Error> {
        let now = self.clock.now().wall.timestamp_millis();
        let scale = criteria.range.scale(now);
        let span = HistorySpan::new(scale.from(), scale.until(), now);
        let mut series = self.history.series(span).await?.seen_by(visible);
        let by_wait = worst(&series, By::Wait, ROWS_MAX);
        let mut places = by_wait.clone();
        let by_criterion = worst(&series, criteria.by, ROWS_MAX);
        places.extend(by_criterion.iter().filter(|place| !by_wait.contains(place)));
        self.history.deepen(&mut series, &places).await?;
        let retained = Box::pin(self.retained(&series, &places, visible, now)).await?;
        let advised = |mut found: Contention| {
            for row in &mut found.rows {
                row.advice.extend(recommendations::from_range(row));
                let of = retained
                    .iter()
                    .find(|(backend, prefix, _)| *backend == row.backend && *prefix == row.prefix);
                row.advice
                    .extend(of.into_iter().flat_map(|(_, _, advice)| advice.clone()));
            }
            found
        };
        let found = advised(domain::contention::contention(&series, &by_wait));
        let worst = advised(domain::contention::contention(&series, &by_criterion));
        Ok((found, worst))
    }

    /// What all that is retained advises, for the prefixes that have a row.
    async fn retained(
        &self,
        shown: &HistorySeries,
        places: &[usize],
        visible: &Visible,
        now: i64,
    ) -> Result<Vec<(domain::names::BackendName, String, Vec<recommendations::Advice>)>, sqlx::Error> {
        let span = HistorySpan::new(now - RETAINED_MS, now, now);
        let mut series = self.history.series(span).await?.seen_by(visible);
        let is_shown = |place: &usize| {
            let of = &series.prefixes[*place];
            let mut rows = places.iter().map(|place| &shown.prefixes[*place]);
            rows.any(|row| row.backend == of.backend && row.prefix == of.prefix)
        };
        let wanted: Vec<usize> = (0..series.prefixes.len())
            .filter(is_shown)
            .take(ROWS_MAX + BUSY_MAX)
            .collect();
        self.history.deepen(&mut series, &wanted).await?;
        let advised = wanted.iter().map(|place| {
            let of = &series.prefixes[*place];
            let watched = series.watched(&of.backend);
            let sum = |ms: fn(&domain::history::series::WatchedSpans) -> &Vec<i64>| {
                watched.map_or(0, |it| ms(it).iter().sum())
            };
            let history_advice = recommendations::from_history(Retained {
                sums: &of.total as &Rollup,
                watched_ms: sum(|it| &it.watched_ms),
                waits_ms: sum(|it| &it.waits_ms),
                has_tokens: !self.inventory.traits(&of.backend).lacks_fencing_tokens,
            });
            (of.backend.clone(), of.prefix.clone(), history_advice)
        });
        Ok(advised.collect())
    }
}
