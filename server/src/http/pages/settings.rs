//! `/settings/…`: data of the settings pages, and their forms. Handlers parse, ask identity, send on to the next page so that
//! reloading repeats nothing, or give the form back with its error.

pub(in crate::http) mod account;
pub(in crate::http) mod protected_prefixes;
pub(in crate::http) mod sessions;
pub(in crate::http) mod tokens;
pub(in crate::http) mod user;
pub(in crate::http) mod users;

use app::console::{ConsoleError, ConsoleFuture};
use app::forms::reply::FormReply;
use app::pages::settings::data::{
    AccountData, ProtectedPrefixesData, SessionsData, SettingsPort, TokensData, UserData, UsersData,
};
use axum::response::Response;
use domain::access::Permission;

use crate::http::pages::caller_data::{CallerData, unavailable};
use crate::http::pages::form_request::FormRequest;
use crate::http::pages::response::{sentence, status_of, with_retry_after};
use crate::http::state::AppState;
use crate::identity::IdentityError;

impl SettingsPort for CallerData {
    fn account(&self) -> ConsoleFuture<'_, AccountData> {
        Box::pin(self.state.account_data(&self.who))
    }

    fn sessions(&self) -> ConsoleFuture<'_, SessionsData> {
        Box::pin(async move {
            self.check(Permission::Administer)?;
            self.state.sessions_data(&self.who).await
        })
    }

    fn users(&self) -> ConsoleFuture<'_, UsersData> {
        Box::pin(async move {
            self.check(Permission::Administer)?;
            self.state.users_data().await
        })
    }

    fn user(&self, id: String) -> ConsoleFuture<'_, UserData> {
        Box::pin(async move {
            self.check(Permission::Administer)?;
            self.state.user_data(&self.who, &id).await
        })
    }

    fn tokens(&self) -> ConsoleFuture<'_, TokensData> {
        Box::pin(async move {
            self.check(Permission::Administer)?;
            self.state.tokens_data().await
        })
    }

    fn protected_prefixes(&self) -> ConsoleFuture<'_, ProtectedPrefixesData> {
        Box::pin(async move {
            self.check(Permission::Administer)?;
            self.state.protected_prefixes_data().await
        })
    }
}

/// The content of a page could not be read or does not exist.
fn page_error(error: &IdentityError) -> ConsoleError {
    match error {
        IdentityError::NotFound { .. } => ConsoleError::NotFound {
            what: sentence(error),
        },
        _ => unavailable(&sentence(error)),
    }
}

/// The invalid field with its error, or the error of the whole form.
fn reply(error: &IdentityError) -> FormReply {
    match error {
        IdentityError::Invalid { field, why } => FormReply {
            faults: vec![(field_name(field), format!("It {why}."))],
            ..FormReply::default()
        },
        other => FormReply {
            alert: Some(sentence(other)),
            ..FormReply::default()
        },
    }
}

/// Identity names fields as the API does; forms use snake case.
fn field_name(field: &str) -> String {
    match field {
        "successorOf" => "successor_of".to_owned(),
        other => other.to_owned(),
    }
}

async fn error_reply(state: &AppState, form: FormRequest, page: &str, error: &IdentityError) -> Response {
    let response = form.reply(state, page, status_of(error), reply(error)).await;
    with_retry_after(response, error)
}
