//! `GET /v1/contention`: waiting by prefix, as far as the caller may see.

mod dto;

use axum::Json;
use axum::extract::{RawQuery, State};
use domain::access::Visible;
use domain::charts::range::{RangePreset, TimeRange};
use domain::contention::{ContentionQuery, ContentionSort};
use domain::history::series::HistorySpan;

use self::dto::ContentionDto;
use super::current_user::ApiUser;
use super::state::AppState;
use crate::contention::ContentionReader;
use crate::http::problem::Problem;

/// Where waiting happened: prefixes by time, the worst first, with what their numbers advise. Null: not known.
#[utoipa::path(
    get, path = "/v1/contention", tag = "inventory",
    params(
        ("range" = Option<String>, Query, description = "1h, 6h (default), 24h, 7d or 30d"),
        ("from" = Option<String>, Query, description = "With `to`, instead of `range`: RFC 3339"),
        ("to" = Option<String>, Query, description = "At most 31 days later"),
        ("by" = Option<String>, Query, description = "`wait` (default), `refusals` or `held`")
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
    let pairs = app::links::pairs(query.as_deref().unwrap_or_default());
    let query = ContentionQuery::from_pairs(&pairs)
        .map_err(|error| user.problem(app::console::ConsoleError::BadQuery(error)))?;
    let now = state.clock.now().wall.timestamp_millis();
    let range = query.range.unwrap_or(TimeRange::Last(RangePreset::SixHours));
    let scale = range.scale(now);
    let reader = ContentionReader {
        history: &state.history,
        inventory: &state.inventory,
        visible: &Visible::to(&user.who.grants),
        now,
    };
    let span = HistorySpan::new(scale.from(), scale.until(), now);
    let (found, top) = Box::pin(reader.read(span, query.by)).await.map_err(|error| {
        tracing::warn!("history cannot be read: {error}");
        user.problem(Problem::store_unavailable())
    })?;
    Ok(Json(ContentionDto::from_contention(match query.by {
        ContentionSort::Wait => found,
        ContentionSort::Refusals | ContentionSort::Held => top,
    })))
}
