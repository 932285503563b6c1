//! Receivers, their queued notifications, and results of test messages.

use chrono::{DateTime, Utc};
use domain::notification::NoticeStatus;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::users::moment;
use crate::notify::{Delivery, ReceiverView, TestMessage};

#[derive(Debug, Serialize, ToSchema)]
#[schema(title = "Receivers")]
pub struct ReceiversDto {
    pub receivers: Vec<ReceiverDto>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "Receiver")]
pub struct ReceiverDto {
    name: String,
    /// `alertmanager`, `webhook` or `slack`.
    kind: &'static str,
    /// The parts that may be shown: for Slack the host, for others everything but the query.
    urls: Vec<String>,
    /// The secret itself is never shown.
    has_secret: bool,
    created_at: Option<DateTime<Utc>>,
    created_by: String,
    /// When it last accepted a message.
    last_ok_at: Option<DateTime<Utc>>,
    /// When a message to it last failed.
    last_fault_at: Option<DateTime<Utc>>,
    last_fault: Option<String>,
    /// Pending messages.
    waiting: u64,
    /// Dead letters.
    dead: u64,
}

impl From<ReceiverView> for ReceiverDto {
    fn from(view: ReceiverView) -> Self {
        Self {
            name: view.name,
            kind: view.kind.as_str(),
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

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(title = "NewReceiver", example = json!({
    "name": "ops", "kind": "webhook", "urls": ["https://hooks.example.com/leasehold"], "secret": "sixteen-bytes-or-more"
}))]
pub struct NewReceiverDto {
    /// 1 to 63 of a-z, 0-9 and -.
    pub name: String,
    /// `alertmanager`, `webhook` or `slack`.
    pub kind: String,
    /// Every peer of an Alertmanager; one address for other kinds. HTTPS, or in a network that `[notify] allowed_networks`
    /// declares.
    #[serde(default)]
    pub urls: Vec<String>,
    /// For a webhook: signs its messages, at least 16 bytes. For an Alertmanager: a bearer token. Not for Slack.
    pub secret: Option<String>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(title = "ReceiverChange", example = json!({"urls": ["https://hooks.example.com/leasehold-2"]}))]
pub struct ReceiverChangeDto {
    /// Absent: they stay.
    pub urls: Option<Vec<String>>,
    /// Absent: it stays. Required if an address has a scheme, host or port that the receiver did not have.
    pub secret: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(title = "Trials")]
pub struct TrialsDto {
    pub trials: Vec<TrialDto>,
}

/// One request and its response, without secrets.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "Trial")]
pub struct TrialDto {
    url: String,
    headers: Vec<HeaderDto>,
    body: String,
    /// Null: there was no response.
    status: Option<u16>,
    answer: String,
    /// Why it was not accepted; null: it was.
    fault: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(title = "Header")]
struct HeaderDto {
    name: &'static str,
    value: String,
}

impl From<TestMessage> for TrialDto {
    fn from(trial: TestMessage) -> Self {
        let headers = trial.headers.into_iter();
        Self {
            url: trial.url,
            headers: headers.map(|(name, value)| HeaderDto { name, value }).collect(),
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
pub struct NotificationsDto {
    pub notifications: Vec<NotificationDto>,
    /// Value of `before` for the next page; null: these are the oldest.
    pub next_cursor: Option<String>,
}

/// One message to one receiver.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "Notification")]
pub struct NotificationDto {
    id: String,
    receiver: String,
    /// `pending`, `delivered` or `dead`.
    state: &'static str,
    /// `firing` or `resolved`.
    status: Option<&'static str>,
    group: Option<String>,
    /// Number of alerts in the message.
    alerts: u64,
    /// Value of the header `X-Notification-Id`.
    notification_id: String,
    attempts: i64,
    created_at: Option<DateTime<Utc>>,
    /// Null unless it is pending.
    next_at: Option<DateTime<Utc>>,
    ended_at: Option<DateTime<Utc>>,
    /// Result of the last attempt.
    answer: Option<String>,
}

impl From<Delivery> for NotificationDto {
    fn from(delivery: Delivery) -> Self {
        let notice = delivery.notice.as_ref();

        Self {
            id: delivery.id.to_string(),
            status: delivery.status().map(|status| match status {
                NoticeStatus::Firing => "firing",
                NoticeStatus::Resolved => "resolved",
            }),
            group: notice.map(|notice| notice.group.clone()),
            alerts: notice.map(domain::notification::Notice::size).unwrap_or_default(),
            state: delivery.state.as_str(),
            next_at: moment(delivery.next_at).filter(|_| delivery.ended_at.is_none()),
            receiver: delivery.receiver,
            notification_id: delivery.notification_id,
            attempts: delivery.attempts,
            created_at: moment(delivery.created_at),
            ended_at: delivery.ended_at.and_then(moment),
            answer: delivery.answer,
        }
    }
}
