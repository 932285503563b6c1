//! `/contention` and `GET /v1/contention`: where waiting happens, as far as the caller may see. Handlers parse, read the sums,
//! ask the backends who waits now, answer.

mod now;
mod wire;

use app::forms::chrome::Place;
use app::forms::contention::{Asked, Found, Shown, contention};
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use axum::routing::get;
use axum::{Json, Router};
use domain::access::Visible;
use domain::audit::parse_moment;
use domain::backend::BackendKind;
use domain::charts::range::{Last, TimeRange};
use domain::contention::advice::{self, Retained};
use domain::contention::{By, Contention, ROWS_MAX, worst};
use domain::history::rollup::Rollup;
use domain::history::series::{Series, Span};
use domain::query::QueryError;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use self::wire::ContentionWire;
use super::form_page;
use super::pages;
use super::problem::Problem;
use super::settings::Viewer;
use super::state::{AppState, InSight, Seen};

/// Prefixes that advice is looked for beyond those shown: the ones that are taken most.
const BUSY_MAX: usize = 12;
/// What advice rests on, in milliseconds: what is retained unless it is configured otherwise.
const RETAINED_MS: i64 = 30 * 24 * 3_600_000;
const FIELDS: [&str; 8] = ["range", "from", "to", "by", "backend", "prefix", "at", "trees"];

pub(super) fn api() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(list))
}

pub fn pages(state: AppState) -> Router {
    Router::new()
        .route("/contention", get(show))
        .layer(axum::middleware::map_response(pages::set_headers))
        .with_state(state)
}

fn parse(query: &str) -> Result<Asked, QueryError> {
    let pairs = app::links::pairs(query);
    let borrowed = || pairs.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    if let Some((name, _)) = borrowed().find(|(name, _)| !FIELDS.contains(name)) {
        return Err(QueryError::new(
            name,
            format!("is not a parameter; there are {}", FIELDS.join(", ")),
        ));
    }
    let one = |field: &str| borrowed().find(|(name, value)| *name == field && !value.is_empty());
    let range = TimeRange::from_pairs(borrowed(), Last::SixHours)?;
    let by = match one("by") {
        None => By::default(),
        Some((_, word)) => {
            By::parse(word).ok_or_else(|| QueryError::new("by", "is neither wait nor refusals"))?
        }
    };
    let cell = match (one("backend"), one("prefix"), one("at")) {
        (None, None, None) => None,
        (Some((_, backend)), Some((_, prefix)), Some((_, at))) => {
            let at = parse_moment(at)
                .ok_or_else(|| QueryError::new("at", "is no time; write 2026-05-01T02:40:00Z"))?;
            Some((backend.to_owned(), prefix.to_owned(), at.timestamp_millis()))
        }
        _ => {
            return Err(QueryError::new(
                "at",
                "goes with backend and prefix: all of them, or none",
            ));
        }
    };
    Ok(Asked {
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

async fn show(
    State(state): State<AppState>,
    Seen(console): Seen,
    Viewer(who): Viewer,
    RawQuery(query): RawQuery,
) -> Response {
    let visible = Visible::to(&who.grants);
    let (status, found) = match parse(query.as_deref().unwrap_or_default()) {
        Err(error) => (
            StatusCode::BAD_REQUEST,
            Found::BadQuestion(error.field.clone(), error.message.clone()),
        ),
        Ok(asked) => match Box::pin(state.contention(&asked, &visible)).await {
            Err(error) => {
                tracing::warn!("history cannot be read: {error}");
                (StatusCode::SERVICE_UNAVAILABLE, Found::Nothing)
            }
            Ok((found, worst)) => {
                let (trees, trees_fault) = Box::pin(now::trees(&*console)).await;
                let shown = Shown {
                    asked,
                    found,
                    worst,
                    trees,
                    trees_fault,
                    is_cut: !visible.is_everything(),
                };
                (StatusCode::OK, Found::Shown(Box::new(shown)))
            }
        },
    };
    let chrome = form_page::chrome(&who, Place::Contention);
    form_page::answer(status, contention(&chrome, &found))
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
        (status = 200, body = ContentionWire),
        (status = 400, body = Problem, content_type = "application/problem+json"),
        (status = 503, body = Problem, content_type = "application/problem+json")
    )
)]
pub(super) async fn list(
    State(state): State<AppState>,
    InSight(visible): InSight,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Result<Json<ContentionWire>, Problem> {
    let asked = parse(query.as_deref().unwrap_or_default()).map_err(|error| {
        Problem::from(app::console::ConsoleError::BadQuery(error)).with_request_id(&headers)
    })?;
    let found = Box::pin(state.contention(&asked, &visible)).await;
    let (found, worst) = found.map_err(|error| {
        tracing::warn!("history cannot be read: {error}");
        Problem::store_unavailable().with_request_id(&headers)
    })?;
    Ok(Json(ContentionWire::of(match asked.by {
        By::Wait => found,
        By::Refusals => worst,
    })))
}

impl AppState {
    /// By wait for the map, and as it was asked for the table.
    async fn contention(
        &self,
        asked: &Asked,
        visible: &Visible,
    ) -> Result<(Contention, Contention), sqlx::Error> {
        let now = self.clock.now().wall.timestamp_millis();
        let scale = asked.range.scale(now);
        let span = Span::over(scale.from(), scale.until(), now);
        let mut series = self.history.series(span).await?.seen_by(visible);
        let by_wait = worst(&series, By::Wait, ROWS_MAX);
        let mut places = by_wait.clone();
        let by_asked = worst(&series, asked.by, ROWS_MAX);
        places.extend(by_asked.iter().filter(|place| !by_wait.contains(place)));
        self.history.deepen(&mut series, &places).await?;
        let retained = Box::pin(self.retained(&series, &places, visible, now)).await?;
        let advised = |mut found: Contention| {
            for row in &mut found.rows {
                row.advice.extend(advice::of_range(row));
                let of = retained
                    .iter()
                    .find(|(backend, prefix, _)| *backend == row.backend && *prefix == row.prefix);
                row.advice
                    .extend(of.into_iter().flat_map(|(_, _, advice)| advice.clone()));
            }
            found
        };
        let found = advised(domain::contention::contention(&series, &by_wait));
        let worst = advised(domain::contention::contention(&series, &by_asked));
        Ok((found, worst))
    }

    /// What all that is retained advises, for the prefixes that have a row.
    async fn retained(
        &self,
        shown: &Series,
        places: &[usize],
        visible: &Visible,
        now: i64,
    ) -> Result<Vec<(domain::names::BackendName, String, Vec<advice::Advice>)>, sqlx::Error> {
        let span = Span::over(now - RETAINED_MS, now, now);
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
        let kinds = self.inventory.backends(self.clock.now());
        let advised = wanted.iter().map(|place| {
            let of = &series.prefixes[*place];
            let watched = series.watched(&of.backend);
            let sum = |ms: fn(&domain::history::series::Watched) -> &Vec<i64>| {
                watched.map_or(0, |it| ms(it).iter().sum())
            };
            let kind = kinds
                .iter()
                .find(|view| view.name == of.backend)
                .map(|view| view.kind);
            let told = advice::of_history(Retained {
                sums: &of.total as &Rollup,
                watched_ms: sum(|it| &it.watched_ms),
                waits_ms: sum(|it| &it.waits_ms),
                has_tokens: kind != Some(BackendKind::Redis),
            });
            (of.backend.clone(), of.prefix.clone(), told)
        });
        Ok(advised.collect())
    }
}
