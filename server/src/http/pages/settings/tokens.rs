//! `/settings/tokens`

use std::time::Duration;

use app::console::ConsoleError;
use app::forms::reply::FormReply;
use app::pages::settings::data::{TokenRow, TokensData};
use app::pages::settings::secret_panel::{CREATED_NAME, SECRET};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;

use super::{error_reply, page_error};
use crate::http::form_body::Form;
use crate::http::pages::form_request::FormRequest;
use crate::http::path_id::PathId;
use crate::http::state::{AppState, Services};
use crate::identity::limits::TOKEN_LIFETIME_MAX;
use crate::identity::{IdentityError, NewToken, Principal};

const DAY: Duration = Duration::from_secs(86_400);
const PAGE: &str = "/settings/tokens";

impl Services {
    pub(super) async fn tokens_data(&self) -> Result<TokensData, ConsoleError> {
        let known = self.auth.identity.tokens().await;
        let known = known.map_err(|error| page_error(&error))?;
        let rows = known.into_iter().map(|token| TokenRow {
            id: token.id,
            name: token.name,
            grants: token.grants,
            created_at: token.created_at,
            root: token.root.filter(|root| *root != token.created_by),
            created_by: token.created_by,
            expires_at: token.expires_at,
            used_at: token.used_at,
            revoked_at: token.revoked_at,
            successor_of: token.successor_of,
        });
        Ok(TokensData {
            rows: rows.collect(),
            backends: self.backends.names(),
            now: self.now(),
        })
    }

    async fn create_from(&self, who: &Principal, form: &Form) -> Result<String, IdentityError> {
        let new = NewToken {
            name: form.text("name"),
            grants: form.grants()?,
            expires_in: lifetime(&form.text("days"))?,
        };
        let predecessor = form.text("successor_of");
        let identity = &self.auth.identity;
        let secret = if predecessor.is_empty() {
            identity.create_token(who, new).await?
        } else {
            identity.create_successor(who, new, &predecessor).await?
        };
        Ok(secret.expose().to_owned())
    }
}

/// Whole days; empty: until revoked.
fn lifetime(days: &str) -> Result<Option<Duration>, IdentityError> {
    if days.is_empty() {
        return Ok(None);
    }
    let count = days.parse::<u32>().ok().filter(|count| *count > 0);
    let lifetime = count.and_then(|count| DAY.checked_mul(count));
    let valid = lifetime.filter(|lifetime| *lifetime <= TOKEN_LIFETIME_MAX);
    valid.map(Some).ok_or_else(|| {
        let max = TOKEN_LIFETIME_MAX.as_secs() / DAY.as_secs();
        IdentityError::invalid("days", format!("must be 1 to {max} days, or empty"))
    })
}

pub(in crate::http) async fn create(State(state): State<AppState>, form: FormRequest) -> Response {
    match state.create_from(&form.who, &form.form).await {
        Ok(secret) => {
            let values = vec![
                (CREATED_NAME.to_owned(), form.form.text("name")),
                (SECRET.to_owned(), secret),
            ];
            let reply = FormReply {
                values,
                ..FormReply::default()
            };
            form.reply(&state, PAGE, StatusCode::CREATED, reply).await
        }
        Err(error) => error_reply(&state, form, PAGE, &error).await,
    }
}

pub(in crate::http) async fn revoke(
    State(state): State<AppState>,
    PathId(id): PathId,
    form: FormRequest,
) -> Response {
    match state.auth.identity.revoke_token(&form.who, &id).await {
        Ok(_) => form.moved("/settings/tokens?revoked"),
        Err(error) => error_reply(&state, form, PAGE, &error).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_lifetime_is_an_error_not_an_endless_token() {
        assert_eq!(lifetime("").unwrap(), None);
        assert_eq!(lifetime("7").unwrap(), Some(DAY * 7));
        for days in ["0", "3661", "-1", "x", "1.5"] {
            assert!(lifetime(days).is_err(), "{days}");
        }
    }
}
