//! Receivers, what is on its way to them, and what trying one came to.

use chrono::{DateTime, Utc};
use domain::notice::NoticeStatus;
use serde::Serialize;
use utoipa::ToSchema;

use super::people::moment;
use crate::notify::{Delivery, ReceiverView, Trial};

#[derive(Debug, Serialize, ToSchema)]
#[schema(title = "Receivers")]
pub struct ReceiversWire {
    pub receivers: Vec<ReceiverWire>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "Receiver")]
pub struct ReceiverWire {
    name: String,
    /// `alertmanager`, `webhook` or `slack`.
    kind: &'static str,
    /// As far as they may be shown: of Slack the host, of others all but the query.
    urls: Vec<String>,
    /// The secret itself is never shown.
    has_secret: bool,
    created_at: Option<DateTime<Utc>>,
    created_by: String,
    /// When it last took a message.
    last_ok_at: Option<DateTime<Utc>>,
    /// When it last did not.
    last_fault_at: Option<DateTime<Utc>>,
    last_fault: Option<String>,
    /// Messages on their way.
    waiting: u64,
    /// Messages that were given up.
    dead: u64,
}

impl From<ReceiverView> for ReceiverWire {
    fn from(view: ReceiverView) -> Self {
        Self {
            name: view.name,
            kind: view.kind.wire(),
            urls: view.urls,
            has_secret: view.has_secret,
            created_at: moment(view.created_at),
            created_by: view.created_by,
            last_ok_at: view.last_ok_at.and_then(moment),
            last_fault_at: view.last_fault_at.and_then(moment),
            last_fault: view.locked.or(view.last_fault),
            waiting: view.waiting,
            dead: view.dead,
        }
    }
}

#[derive(ToSchema)]
#[schema(title = "NewReceiver", example = json!({
    "name": "ops", "kind": "webhook", "urls": ["https://hooks.example.com/leasehold"], "secret": "sixteen-bytes-or-more"
}))]
#[expect(dead_code, reason = "describes the body for the API's description")]
pub struct NewReceiverWire {
    /// 1 to 63 of a-z, 0-9 and -.
    name: String,
    /// `alertmanager`, `webhook` or `slack`.
    kind: String,
    /// Of an Alertmanager every peer; of others one. HTTPS, or in a network that `[notify] allow` declares.
    urls: Vec<String>,
    /// Signs a webhook's messages: at least 16 bytes. Of an Alertmanager a bearer token. Not for Slack.
    secret: Option<String>,
}

#[derive(ToSchema)]
#[schema(title = "ReceiverChange", example = json!({"urls": ["https://hooks.example.com/leasehold-2"]}))]
#[expect(dead_code, reason = "describes the body for the API's description")]
pub struct ReceiverChangeWire {
    /// Absent: they stay.
    urls: Option<Vec<String>>,
    /// Absent: it stays.
    secret: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(title = "Trials")]
pub struct TrialsWire {
    pub trials: Vec<TrialWire>,
}

/// One request and its answer, without secrets.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "Trial")]
pub struct TrialWire {
    url: String,
    headers: Vec<HeaderWire>,
    body: String,
    /// Null: there was no answer.
    status: Option<u16>,
    answer: String,
    /// Why it was not taken; null: it was.
    fault: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(title = "Header")]
struct HeaderWire {
    name: &'static str,
    value: String,
}

impl From<Trial> for TrialWire {
    fn from(trial: Trial) -> Self {
        let headers = trial.headers.into_iter();
        Self {
            url: trial.url,
            headers: headers.map(|(name, value)| HeaderWire { name, value }).collect(),
            body: trial.body,
            status: trial.status,
            answer: trial.answer,
            fault: trial.fault,
        }
    }
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "Notifications")]
pub struct NotificationsWire {
    pub notifications: Vec<NotificationWire>,
    /// Give it as `before` for those below; null: these are the oldest.
    pub next_cursor: Option<String>,
}

/// One message to one receiver.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "Notification")]
pub struct NotificationWire {
    id: String,
    receiver: String,
    /// `pending`, `delivered` or `dead`.
    state: &'static str,
    /// `firing` or `resolved`.
    status: Option<&'static str>,
    group: Option<String>,
    /// How many are in it.
    alerts: u64,
    /// What the receiver is sent as `X-Notification-Id`.
    notification_id: String,
    attempts: i64,
    created_at: Option<DateTime<Utc>>,
    /// Null unless it is pending.
    next_at: Option<DateTime<Utc>>,
    ended_at: Option<DateTime<Utc>>,
    /// What came of the last attempt.
    answer: Option<String>,
}

impl From<Delivery> for NotificationWire {
    fn from(delivery: Delivery) -> Self {
        let notice = delivery.notice.as_ref();

        Self {
            id: delivery.id.to_string(),
            status: delivery.status().map(|status| match status {
                NoticeStatus::Firing => "firing",
                NoticeStatus::Resolved => "resolved",
            }),
            group: notice.map(|notice| notice.group.clone()),
            alerts: notice.map(domain::notice::Notice::size).unwrap_or_default(),
            state: delivery.state.wire(),
            next_at: moment(delivery.next_at).filter(|_| delivery.ended_at.is_none()),
            receiver: delivery.receiver,
            notification_id: delivery.notice_id,
            attempts: delivery.attempts,
            created_at: moment(delivery.created_at),
            ended_at: delivery.ended_at.and_then(moment),
            answer: delivery.answer,
        }
    }
}
