//! `/contention`: waiting by prefix, and who waits now, as far as the user may see.

mod live_waits;

use app::server_pages::contention::{ContentionResult, Shown, contention};
use app::server_pages::layout::PageSection;
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use domain::access::Visible;

use super::response;
use crate::http::contention::parse;
use crate::http::current_user::CurrentUser;
use crate::http::state::AppState;

pub(in crate::http) async fn show(
    State(state): State<AppState>,
    CurrentUser(who): CurrentUser,
    RawQuery(query): RawQuery,
) -> Response {
    let visible = Visible::to(&who.grants);
    let (status, found) = match parse(query.as_deref().unwrap_or_default()) {
        Err(error) => (
            StatusCode::BAD_REQUEST,
            ContentionResult::BadQuestion(error.field.clone(), error.message.clone()),
        ),
        Ok(asked) => match Box::pin(state.contention(&asked, &visible)).await {
            Err(error) => {
                tracing::warn!("history cannot be read: {error}");
                (StatusCode::SERVICE_UNAVAILABLE, ContentionResult::Nothing)
            }
            Ok((found, worst)) => {
                let (trees, trees_fault) = Box::pin(live_waits::trees(&*state.console.principal(&who))).await;
                let shown = Shown {
                    asked,
                    found,
                    worst,
                    trees,
                    trees_fault,
                    is_cut: !visible.is_everything(),
                };
                (StatusCode::OK, ContentionResult::Shown(Box::new(shown)))
            }
        },
    };
    let chrome = response::chrome(&who, PageSection::Contention);
    response::html_response(status, contention(&chrome, &found))
}
