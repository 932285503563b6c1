//! What is sent, as each kind of receiver wants it. Pure: a notice, a place and a moment in, a request out.

mod alertmanager;
mod slack;
mod webhook;

use chrono::{DateTime, SecondsFormat, Utc};
use domain::notice::{Notice, NoticeAlert};
use secrecy::{ExposeSecret as _, SecretString};
use url::Url;

use super::receiver::{Address, Kind, Receiver};
use super::signature::sign;

/// One request, ready to go.
#[derive(Debug, Clone)]
pub struct Letter {
    pub url: Url,
    /// The address as far as people may see it.
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

    /// For people.
    pub fn shown(&self) -> &str {
        if self.is_secret {
            "(not shown)"
        } else {
            self.value()
        }
    }
}

/// Where the console is, and when it is.
#[derive(Debug, Clone, Copy)]
pub struct Place<'p> {
    /// Without a slash at its end.
    pub home: &'p str,
    pub now: DateTime<Utc>,
    /// When a firing alert lapses that is not said again.
    pub lapses_at: DateTime<Utc>,
}

/// A notice for a receiver that takes it once: a webhook or Slack. `id` is the same at each attempt.
pub(super) fn once(receiver: &Receiver, notice: &Notice, id: &str, place: Place<'_>) -> Vec<Letter> {
    let body = match receiver.kind {
        Kind::Slack => slack::body(notice, place.home),
        Kind::Webhook | Kind::Alertmanager => webhook::body(notice, &receiver.name, place.home),
    };
    let body = body.to_string();
    let mut headers = Vec::new();
    if let (Kind::Webhook, Some(secret)) = (receiver.kind, &receiver.secret) {
        let timestamp = place.now.timestamp().to_string();
        headers = vec![
            Header::open("x-signature", sign(secret, &timestamp, &body)),
            Header::open("x-timestamp", timestamp),
            Header::open("x-notification-id", id),
        ];
    }
    let letter = |address: &Address| Letter {
        url: address.url().clone(),
        shown_url: address.shown(receiver.kind),
        headers: headers.clone(),
        body: body.clone(),
    };
    receiver.urls.iter().map(letter).collect()
}

/// How alerts stand, for every peer of an Alertmanager.
pub(super) fn standing(receiver: &Receiver, alerts: &[NoticeAlert], place: Place<'_>) -> Vec<Letter> {
    let body = alertmanager::body(alerts, place).to_string();
    let headers: Vec<Header> = receiver
        .secret
        .iter()
        .map(|token| Header {
            name: "authorization",
            value: SecretString::from(format!("Bearer {}", token.expose_secret())),
            is_secret: true,
        })
        .collect();
    let letter = |address: &Address| {
        let url = alertmanager::endpoint(address.url());
        Letter {
            shown_url: url.to_string(),
            url,
            headers: headers.clone(),
            body: body.clone(),
        }
    };
    receiver.urls.iter().map(letter).collect()
}

/// RFC 3339 in UTC.
fn moment(ms: i64) -> String {
    let time = DateTime::from_timestamp_millis(ms).unwrap_or_default();
    time.to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// The page of an alert, for whoever is elsewhere.
fn link(home: &str, alert: &NoticeAlert) -> String {
    format!("{home}{}", alert.path)
}

#[cfg(test)]
mod tests;
