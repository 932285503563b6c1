//! Message bodies for each kind of receiver. Pure: a notice, a target and a time in, a request out.

mod alertmanager;
mod slack;
mod webhook;

use chrono::{DateTime, SecondsFormat, Utc};
use domain::notification::{Notice, NoticeAlert};
use secrecy::{ExposeSecret as _, SecretString};
use url::Url;

use super::receiver::{Address, Receiver, ReceiverKind};
use runtime::webhook_signature::sign;

/// One request, ready to be sent.
#[derive(Debug, Clone)]
pub struct OutgoingRequest {
    pub url: Url,
    /// The address with its secret parts removed.
    pub shown_url: String,
    pub headers: Vec<Header>,
    pub body: String,
}

#[derive(Debug, Clone)]
pub struct Header {
    pub name: &'static str,
    value: SecretString,
    is_secret: bool,
}

impl Header {
    fn open(name: &'static str, value: impl Into<String>) -> Self {
        Self {
            name,
            value: SecretString::from(value.into()),
            is_secret: false,
        }
    }

    pub fn value(&self) -> &str {
        self.value.expose_secret()
    }

    /// Value for display.
    pub fn display_value(&self) -> &str {
        if self.is_secret {
            "(not shown)"
        } else {
            self.value()
        }
    }
}

/// The console's URL, and the time a message is made for.
#[derive(Debug, Clone, Copy)]
pub struct MessageTarget<'p> {
    /// Without a trailing slash.
    pub home: &'p str,
    pub now: DateTime<Utc>,
    /// When a firing alert lapses unless it is resent.
    pub lapses_at: DateTime<Utc>,
}

/// A notice for a webhook or Slack, sent once. `id` is the same for each attempt.
pub(super) fn notice_requests(
    receiver: &Receiver,
    notice: &Notice,
    id: &str,
    target: MessageTarget<'_>,
) -> Vec<OutgoingRequest> {
    let body = match receiver.kind {
        ReceiverKind::Slack => slack::body(notice, target.home),
        ReceiverKind::Webhook | ReceiverKind::Alertmanager => {
            webhook::body(notice, &receiver.name, target.home)
        }
    };
    let body = body.to_string();
    let mut headers = Vec::new();
    if let (ReceiverKind::Webhook, Some(secret)) = (receiver.kind, &receiver.secret) {
        let timestamp = target.now.timestamp().to_string();
        headers = vec![
            Header::open("x-signature", sign(secret, &timestamp, &body)),
            Header::open("x-timestamp", timestamp),
            Header::open("x-notification-id", id),
        ];
    }
    let request = |address: &Address| OutgoingRequest {
        url: address.url().clone(),
        shown_url: address.display_address(receiver.kind),
        headers: headers.clone(),
        body: body.clone(),
    };
    receiver.urls.iter().map(request).collect()
}

/// Current alerts, for every peer of an Alertmanager.
pub(super) fn active(
    receiver: &Receiver,
    alerts: &[NoticeAlert],
    target: MessageTarget<'_>,
) -> Vec<OutgoingRequest> {
    let body = alertmanager::body(alerts, target).to_string();
    let headers: Vec<Header> = receiver
        .secret
        .iter()
        .map(|token| Header {
            name: "authorization",
            value: SecretString::from(format!("Bearer {}", token.expose_secret())),
            is_secret: true,
        })
        .collect();
    let request = |address: &Address| {
        let url = alertmanager::endpoint(address.url());
        OutgoingRequest {
            shown_url: url.to_string(),
            url,
            headers: headers.clone(),
            body: body.clone(),
        }
    };
    receiver.urls.iter().map(request).collect()
}

/// RFC 3339 in UTC.
fn moment(ms: i64) -> String {
    let time = DateTime::from_timestamp_millis(ms).unwrap_or_default();
    time.to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// Absolute URL of an alert's page.
fn link(home: &str, alert: &NoticeAlert) -> String {
    format!("{home}{}", alert.path)
}

#[cfg(test)]
mod tests;
