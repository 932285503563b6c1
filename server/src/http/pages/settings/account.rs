//! `/settings`: the account of the user.

use app::console::ConsoleError;
use app::forms::reply::FormReply;
use app::pages::settings::data::AccountData;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;

use super::{error_reply, page_error, sessions};
use crate::http::pages::form_request::FormRequest;
use crate::http::state::{AppState, Services};
use crate::identity::{IdentityError, Principal, Subject};

impl Services {
    pub(super) async fn account_data(&self, who: &Principal) -> Result<AccountData, ConsoleError> {
        let known = self.auth.identity.sessions().await;
        let known = known.map_err(|error| page_error(&error))?;
        let own_sessions = known.into_iter().filter(|session| session.user_id == who.id());
        let rows: Vec<_> = own_sessions
            .map(|session| sessions::row(self, who, session))
            .collect();
        let current = rows.iter().find(|row| row.is_current);
        let directory = self.directory();
        let user = directory.users.get(who.id());
        Ok(AccountData {
            grants: who.grants.iter().cloned().collect(),
            sign_in_method: match (&who.subject, current) {
                (Subject::Token { .. }, _) => "token".to_owned(),
                (_, Some(row)) => row.sign_in_method.clone(),
                (_, None) => "unknown".to_owned(),
            },
            authenticated_at: who.session.as_ref().map(|session| session.authenticated_at),
            has_password: user.is_some_and(|user| user.has_password),
            is_managed: user.is_none_or(|user| user.issuer.is_some()),
            sessions: rows,
            now: self.now(),
        })
    }
}

pub(in crate::http) async fn change_password(State(state): State<AppState>, form: FormRequest) -> Response {
    let (old, new) = (form.form.secret("old"), form.form.secret("password"));
    let changed = state.auth.identity.change_password(&form.who, &old, &new);
    match changed.await {
        Ok(()) => form.moved("/settings?changed"),
        Err(IdentityError::WrongPassword) => {
            let reply = FormReply {
                faults: vec![("old".to_owned(), "The current password is wrong.".to_owned())],
                ..FormReply::default()
            };
            form.reply(&state, "/settings", StatusCode::UNPROCESSABLE_ENTITY, reply)
                .await
        }
        Err(error) => error_reply(&state, form, "/settings", &error).await,
    }
}
