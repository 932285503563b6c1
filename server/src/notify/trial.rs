//! Trying a receiver: one marked message, past the outbox, with the request and the answer to look at.

use std::collections::BTreeMap;

use domain::audit::Action;
use domain::notice::{Notice, NoticeAlert, NoticeStatus};
use serde_json::{Value, json};

use super::courier::Answer;
use super::limits::FAULT_CHARS_MAX;
use super::message::{self, Letter};
use super::receiver::Kind;
use super::{Notifier, NotifyError, courier, fingerprint, receivers};
use crate::audit::Entry;
use crate::identity::Who;

/// One request and what came of it. Without secrets.
#[derive(Debug, Clone)]
pub struct Trial {
    pub url: String,
    pub headers: Vec<(&'static str, String)>,
    /// JSON, over several lines; it was sent in one.
    pub body: String,
    pub status: Option<u16>,
    pub answer: String,
    /// Why it was not taken.
    pub fault: Option<String>,
}

impl Notifier {
    /// Sends a message that says of itself that it is a test, to every address of the receiver.
    ///
    /// # Errors
    /// There is no such receiver, or the record cannot be written.
    pub async fn try_out(&self, who: &Who, name: &str) -> Result<Vec<Trial>, NotifyError> {
        let receiver = receivers::named(self, name).await?;
        if let Some(why) = receiver.locked.clone() {
            return Err(NotifyError::Locked { why });
        }
        let entry = Entry {
            after: Some(json!({"receiver": name})),
            ..Entry::new(Action::ReceiverTest, "ok", who.actor(None), who.origin.clone())
        };
        self.audit.append(entry).await?;
        let place = self.place();
        let notice = notice(who.name(), place.now.timestamp_millis());
        let letters = match receiver.kind {
            Kind::Alertmanager => message::standing(&receiver, &notice.alerts, place),
            Kind::Webhook | Kind::Slack => {
                let id = format!("n_{:032x}", rand::random::<u128>());
                message::once(&receiver, &notice, &id, place)
            }
        };
        let mut trials = Vec::new();
        for letter in &letters {
            let answer = Box::pin(self.courier.send(letter, place.now)).await;
            let fault = answer
                .verdict
                .fault()
                .map(|why| courier::shown(why, FAULT_CHARS_MAX));
            receivers::note(self.db(), &receiver.id, fault.as_deref(), self.now_ms()).await?;
            trials.push(trial(letter, answer));
        }
        Ok(trials)
    }
}

fn trial(letter: &Letter, answer: Answer) -> Trial {
    let body: Value = serde_json::from_str(&letter.body).unwrap_or_default();
    let headers = letter
        .headers
        .iter()
        .map(|header| (header.name, header.shown().to_owned()));
    Trial {
        url: letter.shown_url.clone(),
        headers: headers.collect(),
        body: format!("{body:#}"),
        status: answer.status,
        fault: answer.verdict.fault().map(str::to_owned),
        answer: answer.text,
    }
}

fn notice(by: &str, now: i64) -> Notice {
    let map = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        pairs.iter().map(owned).collect()
    };
    let labels = map(&[("alertname", "LeaseholdTest"), ("severity", "none")]);
    let by = domain::escape::visible(by);
    let alert = NoticeAlert {
        status: NoticeStatus::Firing,
        annotations: map(&[
            ("summary", "This is a test. Nothing is wrong."),
            (
                "description",
                &format!("{by} tries whether this receiver hears Leasehold."),
            ),
        ]),
        starts_at: now,
        ends_at: None,
        path: "/alerts/receivers".to_owned(),
        fingerprint: fingerprint(&labels),
        labels,
    };
    Notice {
        group: "leasehold-test".to_owned(),
        receivers: Vec::new(),
        group_labels: map(&[("alertname", "LeaseholdTest")]),
        alerts: vec![alert],
        truncated: 0,
    }
}
