//! `/settings/users`

use std::collections::HashMap;

use app::console::ConsoleError;
use app::forms::reply::FormReply;
use app::pages::settings::data::{UserRow, UsersData};
use app::pages::settings::secret_panel::{CREATED_NAME, SECRET};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;

use super::{error_reply, page_error};
use crate::http::form_body::Form;
use crate::http::pages::form_request::FormRequest;
use crate::http::pages::response::{sentence, status_of, with_retry_after};
use crate::http::state::{AppState, Services};
use crate::identity::{IdentityError, NewUser, Principal, User};

const PAGE: &str = "/settings/users";

impl Services {
    pub(super) async fn users_data(&self) -> Result<UsersData, ConsoleError> {
        let sessions = self.auth.identity.sessions().await;
        let sessions = sessions.map_err(|error| page_error(&error))?;
        let mut seen: HashMap<&str, i64> = HashMap::new();
        for session in &sessions {
            let latest = seen.entry(&session.user_id).or_insert(session.seen_at);
            *latest = session.seen_at.max(*latest);
        }
        let directory = self.directory();
        let rows = directory.users.values().map(|user| UserRow {
            id: user.id.clone(),
            name: user.name.clone(),
            grants: user.grants.iter().cloned().collect(),
            sign_in_method: sign_in_method(user),
            is_disabled: user.disabled_at.is_some(),
            seen_at: seen.get(user.id.as_str()).copied(),
        });
        let mut rows: Vec<UserRow> = rows.collect();
        rows.sort_by(|left, right| (left.is_disabled, &left.name).cmp(&(right.is_disabled, &right.name)));
        Ok(UsersData {
            rows,
            backends: self.backends.names(),
            now: self.now(),
        })
    }

    async fn add_user(&self, who: &Principal, form: &Form) -> Result<String, IdentityError> {
        let new = NewUser {
            name: form.text("name"),
            grants: form.grants()?,
            password: None,
        };
        self.auth.identity.add_user(who, new).await
    }
}

pub(in crate::http) async fn add(State(state): State<AppState>, form: FormRequest) -> Response {
    let id = match state.add_user(&form.who, &form.form).await {
        Ok(id) => id,
        Err(error) => return error_reply(&state, form, PAGE, &error).await,
    };
    let name = form.form.text("name");
    match state.auth.identity.user_link(&form.who, &id).await {
        Ok(link) => {
            let reply = FormReply {
                values: vec![
                    (CREATED_NAME.to_owned(), name),
                    (SECRET.to_owned(), state.sign_in_link(&link)),
                ],
                ..FormReply::default()
            };
            form.reply(&state, PAGE, StatusCode::CREATED, reply).await
        }
        Err(error) => {
            // Adding the user again would be refused: the name is taken.
            let alert = format!(
                "{name} was added, but without a sign-in link: create one on the page of this user. {}",
                sentence(&error)
            );
            let reply = FormReply {
                alert: Some(alert),
                ..FormReply::default()
            };
            let response = form.reply(&state, PAGE, status_of(&error), reply).await;
            with_retry_after(response, &error)
        }
    }
}

/// `password`, `link` or the name of an identity provider.
pub(super) fn sign_in_method(user: &User) -> String {
    match (&user.issuer, user.has_password) {
        (Some(issuer), _) => issuer.clone(),
        (None, true) => "password".to_owned(),
        (None, false) => "link".to_owned(),
    }
}
