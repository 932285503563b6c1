//! `/v1/inventory`, `/v1/prefixes`, `/v1/backends`.

use app::console::ConsoleError;
use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery, State};
use domain::names::{BackendName, Source};
use domain::query::{InventoryQuery, QueryError};

use super::current_user::ApiUser;
use super::state::ConsoleFor;
use crate::http::dto::backend::BackendDto;
use crate::http::dto::lock_detail::DetailDto;
use crate::http::dto::page::PageDto;
use crate::http::dto::prefix::PrefixDto;
use crate::http::problem::Problem;

/// Locks in one list, worst first unless sorted otherwise.
#[utoipa::path(
    get, path = "/v1/inventory", tag = "inventory",
    params(
        ("backend" = Option<Vec<String>>, Query, description = "Name of a backend; repeatable"),
        ("prefix" = Option<String>, Query, description = "Literal leading part of the resource"),
        ("owner" = Option<Vec<String>>, Query, description = "Exact owner; repeatable"),
        ("state" = Option<Vec<String>>, Query, description = "State; repeatable"),
        ("safety" = Option<String>, Query, description = "`correctness` or `efficiency`"),
        ("q" = Option<String>, Query, description = "Part of the resource or the owner"),
        ("sort" = Option<String>, Query,
            description = "resource, held, remaining, waiters or state; `-` before it for descending"),
        ("limit" = Option<u32>, Query, description = "1 to 1000, default 100; a page of long names has fewer"),
        ("cursor" = Option<String>, Query, description = "`nextCursor` of the previous page")
    ),
    responses(
        (status = 200, body = PageDto),
        (status = 400, body = Problem, content_type = "application/problem+json")
    )
)]
pub(in crate::http) async fn list(
    State(console): State<ConsoleFor>,
    user: ApiUser,
    RawQuery(query): RawQuery,
) -> Result<Json<PageDto>, Problem> {
    let query = parse(query.as_deref().unwrap_or_default());
    let page = match query {
        Ok(query) => console.principal(&user.who).inventory(query).await,
        Err(error) => Err(ConsoleError::BadQuery(error)),
    };
    page.map(|page| Json(PageDto::from(page)))
        .map_err(|error| user.problem(error))
}

fn parse(query: &str) -> Result<InventoryQuery, QueryError> {
    let pairs: Vec<_> = url::form_urlencoded::parse(query.as_bytes()).collect();
    InventoryQuery::from_pairs(pairs.iter().map(|(name, value)| (name.as_ref(), value.as_ref())))
}

/// One lock, read fresh: waiters in order, blockers, the raw record.
#[utoipa::path(
    get, path = "/v1/inventory/{backend}/{resource}", tag = "inventory",
    params(
        ("backend" = String, Path),
        ("resource" = String, Path, description = "Percent-encoded"),
        ("source" = Option<String>, Query, description = "Needed where two sources hold the same name")
    ),
    responses(
        (status = 200, body = DetailDto),
        (status = 404, body = Problem, content_type = "application/problem+json"),
        (status = 409, body = Problem, content_type = "application/problem+json"),
        (status = 503, body = Problem, content_type = "application/problem+json",
            description = "`backend_stale`: without a scan of the backend it is unknown whether the lock is held")
    )
)]
pub(in crate::http) async fn detail(
    State(console): State<ConsoleFor>,
    user: ApiUser,
    path: Result<Path<(String, String)>, PathRejection>,
    RawQuery(query): RawQuery,
) -> Result<Json<DetailDto>, Problem> {
    let lock_path = path.map_err(|_| ConsoleError::NotFound {
        what: "no lock has a name that is not UTF-8".to_owned(),
    });
    let id = lock_path.and_then(|Path((backend, resource))| {
        Ok((
            parse_backend_and_source(&backend, query.as_deref().unwrap_or_default())?,
            resource,
        ))
    });
    let detail = match id {
        Ok(((backend, source), resource)) => {
            console.principal(&user.who).lock(backend, source, resource).await
        }
        Err(error) => Err(error),
    };
    detail
        .map(|it| Json(DetailDto::from(it)))
        .map_err(|error| user.problem(error))
}

fn parse_backend_and_source(
    backend: &str,
    query: &str,
) -> Result<(BackendName, Option<Source>), ConsoleError> {
    let missing = |_| ConsoleError::NotFound {
        what: format!("no backend is named {backend:?}"),
    };
    let backend = BackendName::parse(backend).map_err(missing)?;
    let bad = |field: &str, message: String| ConsoleError::BadQuery(QueryError::new(field, message));
    let mut source = None;
    for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
        if name != "source" {
            return Err(bad(&name, "is not a parameter; allowed is source".to_owned()));
        }
        source = Some(Source::parse(&value).map_err(|error| bad("source", error.to_string()))?);
    }
    Ok((backend, source))
}

/// Children of a prefix in the segment tree, with counts.
#[utoipa::path(
    get, path = "/v1/prefixes", tag = "inventory",
    params(("prefix" = Option<String>, Query, description = "Literal; the tree splits behind each `:` and `/`")),
    responses(
        (status = 200, body = PrefixDto),
        (status = 400, body = Problem, content_type = "application/problem+json")
    )
)]
pub(in crate::http) async fn prefixes(
    State(console): State<ConsoleFor>,
    user: ApiUser,
    RawQuery(query): RawQuery,
) -> Result<Json<PrefixDto>, Problem> {
    let mut prefix = String::new();
    for (name, value) in url::form_urlencoded::parse(query.as_deref().unwrap_or_default().as_bytes()) {
        if name != "prefix" {
            let bad = QueryError::new(&name, "is not a parameter; allowed is prefix");
            return Err(user.problem(ConsoleError::BadQuery(bad)));
        }
        prefix = value.into_owned();
    }
    let node = console.principal(&user.who).prefixes(prefix).await;
    node.map(|it| Json(PrefixDto::from(it)))
        .map_err(|error| user.problem(error))
}

/// Every configured backend: its state, its capabilities, the permissions of its account.
#[utoipa::path(get, path = "/v1/backends", tag = "inventory", responses((status = 200, body = Vec<BackendDto>)))]
pub(in crate::http) async fn backends(
    State(console): State<ConsoleFor>,
    user: ApiUser,
) -> Result<Json<Vec<BackendDto>>, Problem> {
    let backends = console.principal(&user.who).backends().await;
    backends
        .map(|all| Json(all.into_iter().map(BackendDto::from).collect()))
        .map_err(|error| user.problem(error))
}
