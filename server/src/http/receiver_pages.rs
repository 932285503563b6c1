//! `/alerts/receivers/…`: receivers as pages without a script. Handlers parse, ask the notifier, answer with a page, or send
//! on to one so that reloading repeats nothing.

use std::sync::Arc;

use app::forms::chrome::{Chrome, Place, Section};
use app::forms::receivers::list::{Receivers, receivers};
use app::forms::receivers::one::{One, one};
use app::forms::receivers::trial::{Trial, trials};
use app::forms::receivers::{Message, MessageState, Row, Typed, path};
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use axum::routing::{get, post};
use domain::notice::{Notice, NoticeStatus};
use secrecy::SecretString;

use super::audit::Desk;
use super::people::Id;
use super::receivers::{bad_kind, number, status};
use super::settings::form::Form;
use super::settings::{Viewer, on_to};
use super::{form_page, pages};
use crate::notify::{Delivery, DeliveryState, Kind, NewReceiver, NotifyError, ReceiverView, Wanted};

/// Of each of the two lists.
const LISTED: i64 = 20;

pub(super) fn router(desk: Arc<Desk>) -> Router {
    Router::new()
        .route("/alerts/receivers", get(show).post(add))
        .route("/alerts/receivers/{name}", get(show_one).post(change))
        .route("/alerts/receivers/{name}/remove", post(remove))
        .route("/alerts/receivers/{name}/test", post(try_out))
        .route("/alerts/notifications/{id}/retry", post(retry))
        .layer(axum::middleware::map_response(pages::set_headers))
        .with_state(desk)
}

fn chrome(viewer: &Viewer) -> Chrome {
    form_page::chrome(&viewer.0, Place::Settings(Section::Receivers))
}

async fn show(State(desk): State<Arc<Desk>>, viewer: Viewer, uri: Uri) -> Response {
    let done = match uri.query() {
        Some("added") => Some("Added. Try it, before an alert does."),
        Some("removed") => Some("Removed."),
        Some("retried") => Some("On its way again."),
        _ => None,
    };
    let content = Receivers {
        done: done.map(str::to_owned),
        ..Receivers::default()
    };
    page(&desk, &viewer, StatusCode::OK, content).await
}

async fn add(State(desk): State<Arc<Desk>>, viewer: Viewer, form: Form) -> Response {
    let (name, kind) = (form.text("name"), form.text("kind"));
    let typed = Typed {
        name: name.clone(),
        kind: kind.clone(),
        fault: None,
    };
    let added = match Kind::parse(&kind) {
        Some(kind) => {
            let new = NewReceiver {
                name,
                kind,
                urls: urls(&form),
                secret: secret(&form),
            };
            Box::pin(desk.notifier.add(&viewer.0, new)).await
        }
        None => Err(NotifyError::Invalid {
            field: "kind",
            why: bad_kind(),
            mend: "Choose one.".to_owned(),
        }),
    };
    let error = match added {
        Ok(()) => return on_to("/alerts/receivers?added"),
        Err(error) => error,
    };
    let (fault, refusal) = said(&error);
    let content = Receivers {
        typed: Typed { fault, ..typed },
        refusal,
        ..Receivers::default()
    };
    page(&desk, &viewer, status(&error), content).await
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

/// The field with its fault, or what is said of the whole.
fn said(error: &NotifyError) -> (Fault, Option<String>) {
    match error {
        NotifyError::Invalid {
            field: "kind", why, ..
        } => (None, Some(format!("The kind {why}."))),
        NotifyError::Invalid { field, why, mend } => {
            (Some(((*field).to_owned(), format!("It {why}. {mend}"))), None)
        }
        NotifyError::Exists { .. } => (
            Some(("name".to_owned(), "There is one of this name already.".to_owned())),
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

async fn page(desk: &Desk, viewer: &Viewer, code: StatusCode, content: Receivers) -> Response {
    let (content, code) = match filled(desk, &content).await {
        Ok(filled) => (filled, code),
        Err(error) => {
            let refusal = Some(sentence(&error));
            (Receivers { refusal, ..content }, status(&error))
        }
    };
    form_page::answer(code, receivers(&chrome(viewer), &content))
}

async fn filled(desk: &Desk, content: &Receivers) -> Result<Receivers, NotifyError> {
    let notifier = &desk.notifier;
    let wanted = |state| Wanted {
        state,
        limit: Some(LISTED),
        ..Wanted::default()
    };
    let dead = notifier.deliveries(&wanted(Some(DeliveryState::Dead))).await?;
    let latest = notifier.deliveries(&wanted(None)).await?;
    let latest = latest.into_iter().filter(|one| one.state != DeliveryState::Dead);
    Ok(Receivers {
        rows: notifier.receivers().await?.into_iter().map(row).collect(),
        dead: dead.into_iter().map(message).collect(),
        latest: latest.map(message).collect(),
        now: desk.settings.now(),
        ..content.clone()
    })
}

fn row(view: ReceiverView) -> Row {
    Row {
        fault: view.fault().map(str::to_owned),
        name: view.name,
        kind: view.kind.wire(),
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

async fn show_one(State(desk): State<Arc<Desk>>, viewer: Viewer, Id(name): Id, uri: Uri) -> Response {
    let done = (uri.query() == Some("changed")).then(|| "Changed. Try it, before an alert does.".to_owned());
    let content = One {
        done,
        ..One::default()
    };
    page_of(&desk, &viewer, &name, (StatusCode::OK, content)).await
}

async fn page_of(desk: &Desk, viewer: &Viewer, name: &str, (code, content): (StatusCode, One)) -> Response {
    let found = desk.notifier.receivers().await;
    let found = found.map(|all| all.into_iter().find(|view| view.name == name));
    let missing = || NotifyError::NotFound {
        what: "receiver",
        name: domain::escape::visible(name).into_owned(),
    };
    match found.and_then(|found| found.ok_or_else(missing)) {
        Ok(view) => {
            let content = One {
                row: row(view),
                now: desk.settings.now(),
                ..content
            };
            form_page::answer(code, one(&chrome(viewer), &content))
        }
        Err(error) => refused(desk, viewer, &error).await,
    }
}

async fn change(State(desk): State<Arc<Desk>>, viewer: Viewer, Id(name): Id, form: Form) -> Response {
    let urls = urls(&form);
    let changed = desk.notifier.change(&viewer.0, &name, &urls, secret(&form));
    match Box::pin(changed).await {
        Ok(()) => on_to(&format!("{}?changed", path(&name))),
        Err(error @ NotifyError::NotFound { .. }) => refused(&desk, &viewer, &error).await,
        Err(error) => {
            let (fault, refusal) = said(&error);
            let typed = Typed {
                fault,
                ..Typed::default()
            };
            let content = One {
                typed,
                refusal,
                ..One::default()
            };
            page_of(&desk, &viewer, &name, (status(&error), content)).await
        }
    }
}

async fn remove(State(desk): State<Arc<Desk>>, viewer: Viewer, Id(name): Id) -> Response {
    match desk.notifier.remove(&viewer.0, &name).await {
        Ok(()) => on_to("/alerts/receivers?removed"),
        Err(error) => refused(&desk, &viewer, &error).await,
    }
}

async fn try_out(State(desk): State<Arc<Desk>>, viewer: Viewer, Id(name): Id) -> Response {
    let tried = match Box::pin(desk.notifier.try_out(&viewer.0, &name)).await {
        Ok(tried) => tried,
        Err(error) => return refused(&desk, &viewer, &error).await,
    };
    let shown = tried.into_iter().map(|trial| Trial {
        url: trial.url,
        headers: trial.headers,
        body: trial.body,
        status: trial.status,
        answer: trial.answer,
        fault: trial.fault,
    });
    let shown: Vec<Trial> = shown.collect();
    form_page::answer(StatusCode::OK, trials(&chrome(&viewer), &name, &shown))
}

async fn retry(State(desk): State<Arc<Desk>>, viewer: Viewer, Id(id): Id) -> Response {
    match desk.notifier.retry(&viewer.0, number(&id)).await {
        Ok(()) => on_to("/alerts/receivers?retried"),
        Err(error) => refused(&desk, &viewer, &error).await,
    }
}

/// Said on the list.
async fn refused(desk: &Desk, viewer: &Viewer, error: &NotifyError) -> Response {
    let content = Receivers {
        refusal: Some(sentence(error)),
        ..Receivers::default()
    };
    page(desk, viewer, status(error), content).await
}
