//! `GET /v1/audit`

use app::console::ConsoleError;
use axum::Json;
use axum::extract::{RawQuery, State};

use super::{pairs, parse, unreadable};
use crate::http::current_user::ApiUser;
use crate::http::dto::audit::AuditPageDto;
use crate::http::problem::Problem;
use crate::http::state::AppState;

/// Entries of the audit log, newest first, as far as the caller may read.
///
/// Pages are exact while entries are appended: `nextCursor` continues below the last entry of the page.
#[utoipa::path(
    get, path = "/v1/audit", tag = "audit",
    params(
        ("actor" = Option<String>, Query, description = "Id or name of the user or token"),
        ("backend" = Option<String>, Query, description = "Name of a backend"),
        ("prefix" = Option<String>, Query, description = "Literal leading part of the resource"),
        ("action" = Option<String>, Query, description = "`FORCE_UNLOCK`, `LOGIN`, `DENY` and so on"),
        ("outcome" = Option<String>, Query,
            description = "`ok`, `released`, `outcome_unknown`, `forbidden` and so on"),
        ("unlockId" = Option<String>, Query, description = "Every step of one forced unlock"),
        ("from" = Option<String>, Query, description = "RFC 3339; UTC without a zone"),
        ("to" = Option<String>, Query, description = "The same; exclusive"),
        ("limit" = Option<u32>, Query, description = "1 to 1000, default 100"),
        ("cursor" = Option<String>, Query, description = "`nextCursor` of the previous page")
    ),
    responses(
        (status = 200, body = AuditPageDto),
        (status = 400, body = Problem, content_type = "application/problem+json"),
        (status = 403, body = Problem, content_type = "application/problem+json"),
        (status = 503, body = Problem, content_type = "application/problem+json")
    )
)]
pub(in crate::http) async fn list(
    State(state): State<AppState>,
    user: ApiUser,
    RawQuery(query): RawQuery,
) -> Result<Json<AuditPageDto>, Problem> {
    let query = parse(&pairs(query.as_deref()), &user.who);
    let query = query.map_err(|error| user.problem(ConsoleError::BadQuery(error)))?;
    let page = state.auth.audit.page(&query).await;
    page.map(|page| Json(page.into()))
        .map_err(|error| user.problem(unreadable(&error)))
}
