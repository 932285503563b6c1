//! `/alerts/receivers/…`: data of the receivers' pages, and their forms. Handlers parse, ask the notifier, send on to the next
//! page so that reloading repeats nothing, or give the form back with its error.

use app::console::{ConsoleError, ConsoleFuture};
use app::forms::reply::FormReply;
use app::pages::receivers::data::{
    Message, MessageState, ReceiverData, ReceiverRow, ReceiversData, ReceiversPort,
};
use app::pages::receivers::path;
use app::pages::receivers::test_result::{ANSWER, FAULT, REQUEST, URL};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use domain::access::Permission;
use domain::notification::{Notice, NoticeStatus};
use secrecy::SecretString;

use super::caller_data::{CallerData, unavailable};
use super::form_request::FormRequest;
use crate::http::form_body::Form;
use crate::http::path_id::PathId;
use crate::http::receivers::{bad_kind, retry_dead_letter, status};
use crate::http::state::{AppState, Services};
use crate::notify::{
    Delivery, DeliveryFilter, DeliveryState, NewReceiver, NotifyError, ReceiverKind, ReceiverView,
    TestMessage,
};

const LIST: &str = "/alerts/receivers";
/// Limit of each of the two lists.
const LISTED: i64 = 20;

impl ReceiversPort for CallerData {
    fn receivers(&self) -> ConsoleFuture<'_, ReceiversData> {
        Box::pin(async move {
            self.check(Permission::Administer)?;
            self.state.receivers_data().await
        })
    }

    fn receiver(&self, name: String) -> ConsoleFuture<'_, ReceiverData> {
        Box::pin(async move {
            self.check(Permission::Administer)?;
            self.state.receiver_data(&name).await
        })
    }
}

impl Services {
    async fn receivers_data(&self) -> Result<ReceiversData, ConsoleError> {
        let notifier = &self.notifier;
        let filter = |state| DeliveryFilter {
            state,
            limit: Some(LISTED),
            ..DeliveryFilter::default()
        };
        let read = async || {
            let dead = notifier.deliveries(&filter(Some(DeliveryState::Dead))).await?;
            let latest = notifier.deliveries(&filter(None)).await?;
            let latest = latest
                .into_iter()
                .filter(|delivery| delivery.state != DeliveryState::Dead);
            Ok::<_, NotifyError>(ReceiversData {
                rows: notifier.receivers().await?.into_iter().map(row).collect(),
                dead: dead.into_iter().map(message).collect(),
                latest: latest.map(message).collect(),
                now: self.now(),
            })
        };
        read().await.map_err(|error| unavailable(&sentence(&error)))
    }

    async fn receiver_data(&self, name: &str) -> Result<ReceiverData, ConsoleError> {
        let all = self.notifier.receivers().await;
        let all = all.map_err(|error| unavailable(&sentence(&error)))?;
        let found = all.into_iter().find(|view| view.name == name);
        let found = found.ok_or_else(|| {
            let missing = NotifyError::NotFound {
                what: "receiver",
                name: domain::escape::visible(name).into_owned(),
            };
            ConsoleError::NotFound {
                what: sentence(&missing),
            }
        })?;
        Ok(ReceiverData {
            row: row(found),
            now: self.now(),
        })
    }
}

pub(in crate::http) async fn add(State(state): State<AppState>, form: FormRequest) -> Response {
    let (name, kind) = (form.form.text("name"), form.form.text("kind"));
    let added = match ReceiverKind::parse(&kind) {
        Some(kind) => {
            let new = NewReceiver {
                name,
                kind,
                urls: urls(&form.form),
                secret: secret(&form.form),
            };
            Box::pin(state.notifier.add(&form.who, new)).await
        }
        None => Err(NotifyError::Invalid {
            field: "kind",
            why: bad_kind(),
            remedy: "Choose one.".to_owned(),
        }),
    };
    match added {
        Ok(()) => form.moved("/alerts/receivers?added"),
        Err(error) => error_reply(&state, form, LIST, &error).await,
    }
}

/// One on each line.
fn urls(form: &Form) -> Vec<SecretString> {
    let text = form.untrimmed("urls");
    let lines = text.split_whitespace().map(SecretString::from);
    lines.collect()
}

fn secret(form: &Form) -> Option<SecretString> {
    let text = form.untrimmed("secret");
    Some(text).filter(|text| !text.is_empty()).map(SecretString::from)
}

/// The invalid field with its error, or the error of the whole form.
fn reply(error: &NotifyError) -> FormReply {
    let of_field = |field: &str, fault: String| FormReply {
        faults: vec![(field.to_owned(), fault)],
        ..FormReply::default()
    };
    match error {
        NotifyError::Invalid {
            field: "kind", why, ..
        } => of_field("kind", format!("The kind {why}.")),
        NotifyError::Invalid { field, why, remedy } => of_field(field, format!("It {why}. {remedy}")),
        NotifyError::Exists { .. } => of_field(
            "name",
            "A receiver has this name already. Choose another name.".to_owned(),
        ),
        NotifyError::NotFound { .. }
        | NotifyError::TooMany { .. }
        | NotifyError::NotDead { .. }
        | NotifyError::Store(_)
        | NotifyError::NoChance
        | NotifyError::Locked { .. } => FormReply {
            alert: Some(sentence(error)),
            ..FormReply::default()
        },
    }
}

async fn error_reply(state: &AppState, form: FormRequest, page: &str, error: &NotifyError) -> Response {
    form.reply(state, page, status(error), reply(error)).await
}

fn sentence(error: &NotifyError) -> String {
    let text = error.to_string();
    let mut chars = text.chars();
    let first = chars.next().map(|first| first.to_uppercase().collect::<String>());
    format!("{}{}.", first.unwrap_or_default(), chars.as_str())
}

fn row(view: ReceiverView) -> ReceiverRow {
    ReceiverRow {
        fault: view.fault().map(str::to_owned),
        name: view.name,
        kind: view.kind.as_str().to_owned(),
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
            .map_or_else(|| "not understood".to_owned(), describe_notice),
        receiver: delivery.receiver,
        attempts: delivery.attempts,
        created_at: delivery.created_at,
        ended_at: delivery.ended_at,
        next_at: delivery.next_at,
        answer: delivery.answer,
    }
}

/// `firing: held for 41 m (3 alerts)`
fn describe_notice(notice: &Notice) -> String {
    let status = match notice.status() {
        NoticeStatus::Firing => "firing",
        NoticeStatus::Resolved => "resolved",
    };
    let first = notice.alerts.first();
    let name = first.and_then(|alert| alert.labels.get("alertname"));
    let resource = first.and_then(|alert| alert.labels.get("resource"));
    let name = name.map_or("alert", String::as_str);
    let resource = resource
        .map(|resource| format!(", {resource}"))
        .unwrap_or_default();
    let count = notice.alerts.len() as u64 + notice.truncated;
    let more = if count > 1 {
        format!(" and {} more", count - 1)
    } else {
        String::new()
    };
    format!("{status}: {name}{resource}{more}")
}

pub(in crate::http) async fn change(
    State(state): State<AppState>,
    PathId(name): PathId,
    form: FormRequest,
) -> Response {
    let urls = urls(&form.form);
    let changed = state.notifier.change(&form.who, &name, &urls, secret(&form.form));
    match Box::pin(changed).await {
        Ok(()) => form.moved(&format!("{}?changed", path(&name))),
        Err(error) => error_reply(&state, form, &page_of(&name, &error), &error).await,
    }
}

pub(in crate::http) async fn remove(
    State(state): State<AppState>,
    PathId(name): PathId,
    form: FormRequest,
) -> Response {
    match Box::pin(state.notifier.remove(&form.who, &name)).await {
        Ok(()) => form.moved("/alerts/receivers?removed"),
        Err(error) => error_reply(&state, form, &page_of(&name, &error), &error).await,
    }
}

pub(in crate::http) async fn try_out(
    State(state): State<AppState>,
    PathId(name): PathId,
    form: FormRequest,
) -> Response {
    match Box::pin(state.notifier.try_out(&form.who, &name)).await {
        Ok(peers) => {
            let reply = FormReply {
                values: peers.into_iter().flat_map(results).collect(),
                ..FormReply::default()
            };
            form.reply(&state, &path(&name), StatusCode::OK, reply).await
        }
        Err(error) => error_reply(&state, form, &page_of(&name, &error), &error).await,
    }
}

/// Request and response of one peer.
fn results(test: TestMessage) -> [(String, String); 4] {
    let headers = test
        .headers
        .iter()
        .map(|(name, value)| format!("{name}: {value}\n"));
    let request = format!(
        "POST {}\ncontent-type: application/json\n{}\n{}",
        test.url,
        headers.collect::<String>(),
        test.body
    );
    let answer = match test.status {
        Some(status) => format!("{status}\n\n{}", test.answer),
        None => "no answer".to_owned(),
    };
    [
        (URL, test.url),
        (REQUEST, request),
        (ANSWER, answer),
        (FAULT, test.fault.unwrap_or_default()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
}

pub(in crate::http) async fn retry(
    State(state): State<AppState>,
    PathId(id): PathId,
    form: FormRequest,
) -> Response {
    match retry_dead_letter(&state.notifier, &state.alerts, &form.who, &id).await {
        Ok(()) => form.moved("/alerts/receivers?retried"),
        Err(error) => error_reply(&state, form, LIST, &error).await,
    }
}

/// The page that shows the error: the receiver's, unless the receiver was removed.
fn page_of(name: &str, error: &NotifyError) -> String {
    match error {
        NotifyError::NotFound { .. } => LIST.to_owned(),
        _ => path(name),
    }
}
