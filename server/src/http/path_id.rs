//! The one id or name in a path.

use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;

use super::auth::route_permissions::is_page;
use super::problem::Problem;

/// Percent-decoded. Bytes that are not UTF-8 match no entry: 404 from the API; a page gets U+FFFD and answers by itself.
pub(super) struct PathId(pub(super) String);

impl<S: Send + Sync> FromRequestParts<S> for PathId {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let id = Path::<String>::from_request_parts(parts, state).await;
        match id {
            Ok(Path(id)) => Ok(Self(id)),
            Err(_) if is_page(parts.uri.path()) => Ok(Self(char::REPLACEMENT_CHARACTER.to_string())),
            Err(_) => {
                Err(Problem::not_found("no entry has this id".to_owned()).with_request_id(&parts.headers))
            }
        }
    }
}
