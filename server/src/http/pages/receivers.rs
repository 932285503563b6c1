//! `/alerts/receivers/…`: receivers as pages without a script. Handlers parse, ask the notifier, answer with a page, or send
//! on to one so that reloading repeats nothing.

use app::server_pages::layout::{Chrome, PageSection, Section};
use app::server_pages::receivers::edit::{ReceiverForm, one};
use app::server_pages::receivers::list::{Receivers, receivers};
use app::server_pages::receivers::test_result::{TestResult, trials};
use app::server_pages::receivers::{Message, MessageState, ReceiverInput, ReceiverRow, path};
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use domain::notification::{Notice, NoticeStatus};
use secrecy::SecretString;

use crate::http::current_user::CurrentUser;
use crate::http::form_body::Form;
use crate::http::pages::response;
use crate::http::pages::response::see_other;
use crate::http::path_id::PathId;
use crate::http::receivers::{bad_kind, number, status};
use crate::http::state::AppState;
use crate::http::state::Services;
use crate::notify::{
    Delivery, DeliveryFilter, DeliveryState, NewReceiver, NotifyError, ReceiverKind, ReceiverView,
};

/// Of each of the two lists.
const LISTED: i64 = 20;

fn chrome(viewer: &CurrentUser) -> Chrome {
    response::chrome(&viewer.0, PageSection::Settings(Section::Receivers))
}

pub(in crate::http) async fn show(State(state): State<AppState>, viewer: CurrentUser, uri: Uri) -> Response {
    let done = match uri.query() {
        Some("added") => Some("Receiver added. Send a test message."),
        Some("removed") => Some("Removed."),
        Some("retried") => Some("Queued for delivery again."),
        _ => None,
    };
    let content = Receivers {
        done: done.map(str::to_owned),
        ..Receivers::default()
    };
    page(&state, &viewer, StatusCode::OK, content).await
}

pub(in crate::http) async fn add(State(state): State<AppState>, viewer: CurrentUser, form: Form) -> Response {
    let (name, kind) = (form.text("name"), form.text("kind"));
    let typed = ReceiverInput {
        name: name.clone(),
        kind: kind.clone(),
        fault: None,
    };
    let added = match ReceiverKind::parse(&kind) {
        Some(kind) => {
            let new = NewReceiver {
                name,
                kind,
                urls: urls(&form),
                secret: secret(&form),
            };
            Box::pin(state.notifier.add(&viewer.0, new)).await
        }
        None => Err(NotifyError::Invalid {
            field: "kind",
            why: bad_kind(),
            remedy: "Choose one.".to_owned(),
        }),
    };
    let error = match added {
        Ok(()) => return see_other("/alerts/receivers?added"),
        Err(error) => error,
    };
    let (fault, refusal) = error_text(&error);
    let content = Receivers {
        typed: ReceiverInput { fault, ..typed },
        refusal,
        ..Receivers::default()
    };
    page(&state, &viewer, status(&error), content).await
}

/// One on each line.
fn urls(form: &Form) -> Vec<SecretString> {
    let text = form.typed("urls");
    let lines = text.split_whitespace().map(SecretString::from);
    lines.collect()
}

fn secret(form: &Form) -> Option<SecretString> {
    let text = form.typed("secret");
    Some(text).filter(|text| !text.is_empty()).map(SecretString::from)
}

type Fault = Option<(String, String)>;

/// The invalid field with its error, or the error of the whole form.
fn error_text(error: &NotifyError) -> (Fault, Option<String>) {
    match error {
        NotifyError::Invalid {
            field: "kind", why, ..
        } => (None, Some(format!("The kind {why}."))),
        NotifyError::Invalid { field, why, remedy } => {
            (Some(((*field).to_owned(), format!("It {why}. {remedy}"))), None)
        }
        NotifyError::Exists { .. } => (
            Some((
                "name".to_owned(),
                "A receiver has this name already. Choose another name.".to_owned(),
            )),
            None,
        ),
        NotifyError::NotFound { .. }
        | NotifyError::TooMany { .. }
        | NotifyError::NotDead { .. }
        | NotifyError::Store(_)
        | NotifyError::NoChance
        | NotifyError::Locked { .. } => (None, Some(sentence(error))),
    }
}

fn sentence(error: &NotifyError) -> String {
    let text = error.to_string();
    let mut chars = text.chars();
    let first = chars.next().map(|first| first.to_uppercase().collect::<String>());
    format!("{}{}.", first.unwrap_or_default(), chars.as_str())
}

async fn page(state: &Services, viewer: &CurrentUser, code: StatusCode, content: Receivers) -> Response {
    let (content, code) = match filled(state, &content).await {
        Ok(filled) => (filled, code),
        Err(error) => {
            let refusal = Some(sentence(&error));
            (Receivers { refusal, ..content }, status(&error))
        }
    };
    response::html_response(code, receivers(&chrome(viewer), &content))
}

async fn filled(state: &Services, content: &Receivers) -> Result<Receivers, NotifyError> {
    let notifier = &state.notifier;
    let wanted = |state| DeliveryFilter {
        state,
        limit: Some(LISTED),
        ..DeliveryFilter::default()
    };
    let dead = notifier.deliveries(&wanted(Some(DeliveryState::Dead))).await?;
    let latest = notifier.deliveries(&wanted(None)).await?;
    let latest = latest.into_iter().filter(|one| one.state != DeliveryState::Dead);
    Ok(Receivers {
        rows: notifier.receivers().await?.into_iter().map(row).collect(),
        dead: dead.into_iter().map(message).collect(),
        latest: latest.map(message).collect(),
        now: state.now(),
        ..content.clone()
    })
}

fn row(view: ReceiverView) -> ReceiverRow {
    ReceiverRow {
        fault: view.fault().map(str::to_owned),
        name: view.name,
        kind: view.kind.as_str(),
        urls: view.urls,
        has_secret: view.has_secret,
        last_ok_at: view.last_ok_at,
        last_fault_at: view.last_fault_at,
        waiting: view.waiting,
        dead: view.dead,
    }
}

fn message(delivery: Delivery) -> Message {
    Message {
        id: delivery.id.to_string(),
        state: match delivery.state {
            DeliveryState::Pending => MessageState::Waiting,
            DeliveryState::Delivered => MessageState::Delivered,
            DeliveryState::Dead => MessageState::Dead,
        },
        what: delivery
            .notice
            .as_ref()
            .map_or_else(|| "not understood".to_owned(), what),
        receiver: delivery.receiver,
        attempts: delivery.attempts,
        created_at: delivery.created_at,
        ended_at: delivery.ended_at,
        next_at: delivery.next_at,
        answer: delivery.answer,
    }
}

/// `firing: held for 41 m (3 alerts)`
fn what(notice: &Notice) -> String {
    let word = match notice.status() {
        NoticeStatus::Firing => "firing",
        NoticeStatus::Resolved => "resolved",
    };
    let first = notice.alerts.first();
    let name = first.and_then(|alert| alert.labels.get("alertname"));
    let about = first.and_then(|alert| alert.labels.get("resource"));
    let name = name.map_or("alert", String::as_str);
    let about = about.map(|about| format!(", {about}")).unwrap_or_default();
    let count = notice.alerts.len() as u64 + notice.truncated;
    let more = if count > 1 {
        format!(" and {} more", count - 1)
    } else {
        String::new()
    };
    format!("{word}: {name}{about}{more}")
}

pub(in crate::http) async fn show_one(
    State(state): State<AppState>,
    viewer: CurrentUser,
    PathId(name): PathId,
    uri: Uri,
) -> Response {
    let done = (uri.query() == Some("changed")).then(|| "Receiver changed. Send a test message.".to_owned());
    let content = ReceiverForm {
        done,
        ..ReceiverForm::default()
    };
    page_of(&state, &viewer, &name, (StatusCode::OK, content)).await
}

async fn page_of(
    state: &Services,
    viewer: &CurrentUser,
    name: &str,
    (code, content): (StatusCode, ReceiverForm),
) -> Response {
    let found = state.notifier.receivers().await;
    let found = found.map(|all| all.into_iter().find(|view| view.name == name));
    let missing = || NotifyError::NotFound {
        what: "receiver",
        name: domain::escape::visible(name).into_owned(),
    };
    match found.and_then(|found| found.ok_or_else(missing)) {
        Ok(view) => {
            let content = ReceiverForm {
                row: row(view),
                now: state.now(),
                ..content
            };
            response::html_response(code, one(&chrome(viewer), &content))
        }
        Err(error) => refused(state, viewer, &error).await,
    }
}

pub(in crate::http) async fn change(
    State(state): State<AppState>,
    viewer: CurrentUser,
    PathId(name): PathId,
    form: Form,
) -> Response {
    let urls = urls(&form);
    let changed = state.notifier.change(&viewer.0, &name, &urls, secret(&form));
    match Box::pin(changed).await {
        Ok(()) => see_other(&format!("{}?changed", path(&name))),
        Err(error @ NotifyError::NotFound { .. }) => refused(&state, &viewer, &error).await,
        Err(error) => {
            let (fault, refusal) = error_text(&error);
            let typed = ReceiverInput {
                fault,
                ..ReceiverInput::default()
            };
            let content = ReceiverForm {
                typed,
                refusal,
                ..ReceiverForm::default()
            };
            page_of(&state, &viewer, &name, (status(&error), content)).await
        }
    }
}

pub(in crate::http) async fn remove(
    State(state): State<AppState>,
    viewer: CurrentUser,
    PathId(name): PathId,
) -> Response {
    match state.notifier.remove(&viewer.0, &name).await {
        Ok(()) => see_other("/alerts/receivers?removed"),
        Err(error) => refused(&state, &viewer, &error).await,
    }
}

pub(in crate::http) async fn try_out(
    State(state): State<AppState>,
    viewer: CurrentUser,
    PathId(name): PathId,
) -> Response {
    let tried = match Box::pin(state.notifier.try_out(&viewer.0, &name)).await {
        Ok(tried) => tried,
        Err(error) => return refused(&state, &viewer, &error).await,
    };
    let shown = tried.into_iter().map(|trial| TestResult {
        url: trial.url,
        headers: trial.headers,
        body: trial.body,
        status: trial.status,
        answer: trial.answer,
        fault: trial.fault,
    });
    let shown: Vec<TestResult> = shown.collect();
    response::html_response(StatusCode::OK, trials(&chrome(&viewer), &name, &shown))
}

pub(in crate::http) async fn retry(
    State(state): State<AppState>,
    viewer: CurrentUser,
    PathId(id): PathId,
) -> Response {
    match state.notifier.retry(&viewer.0, number(&id)).await {
        Ok(()) => see_other("/alerts/receivers?retried"),
        Err(error) => refused(&state, &viewer, &error).await,
    }
}

/// Said on the list.
async fn refused(state: &Services, viewer: &CurrentUser, error: &NotifyError) -> Response {
    let content = Receivers {
        refusal: Some(sentence(error)),
        ..Receivers::default()
    };
    page(state, viewer, status(error), content).await
}
