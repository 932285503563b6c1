//! Test message to a receiver, without the outbox; returns request and response.

use std::collections::BTreeMap;

use domain::audit::Action;
use domain::notification::{Notice, NoticeAlert, NoticeStatus};
use serde_json::{Value, json};

use super::http_sender::HttpReply;
use super::limits::FAULT_CHARS_MAX;
use super::message::{self, OutgoingRequest};
use super::receiver::ReceiverKind;
use super::{Notifier, NotifyError, fingerprint, http_sender, receivers};
use crate::audit::Entry;
use crate::identity::Principal;

/// One request and its result, without secrets.
#[derive(Debug, Clone)]
pub struct TestMessage {
    pub url: String,
    pub headers: Vec<(&'static str, String)>,
    /// Pretty-printed JSON; it was sent on one line.
    pub body: String,
    pub status: Option<u16>,
    pub answer: String,
    /// Why it was not accepted.
    pub fault: Option<String>,
}

impl Notifier {
    /// Sends a message marked as a test to every address of the receiver.
    ///
    /// # Errors
    /// There is no such receiver, or the audit entry cannot be written.
    pub async fn try_out(&self, who: &Principal, name: &str) -> Result<Vec<TestMessage>, NotifyError> {
        let receiver = receivers::find_by_name(self, name).await?;
        if let Some(why) = receiver.locked.clone() {
            return Err(NotifyError::Locked { why });
        }
        let entry = Entry {
            after: Some(json!({"receiver": name})),
            ..Entry::new(Action::ReceiverTest, "ok", who.actor(None), who.origin.clone())
        };
        self.audit.append(entry).await?;
        let target = self.message_target();
        let notice = notice(who.name(), target.now.timestamp_millis());
        let letters = match receiver.kind {
            ReceiverKind::Alertmanager => message::active(&receiver, &notice.alerts, target),
            ReceiverKind::Webhook | ReceiverKind::Slack => {
                let id = runtime::random::prefixed_id("n_");
                message::notice_requests(&receiver, &notice, &id, target)
            }
        };
        let mut trials = Vec::new();
        for letter in &letters {
            let answer = Box::pin(self.courier.send(letter, target.now)).await;
            let fault = answer
                .verdict
                .fault()
                .map(|why| http_sender::truncate(why, FAULT_CHARS_MAX));
            receivers::record_result(self.db(), &receiver.id, fault.as_deref(), self.now_ms()).await?;
            trials.push(trial(letter, answer));
        }
        Ok(trials)
    }
}

fn trial(letter: &OutgoingRequest, answer: HttpReply) -> TestMessage {
    let body: Value = serde_json::from_str(&letter.body).unwrap_or_default();
    let headers = letter
        .headers
        .iter()
        .map(|header| (header.name, header.display_value().to_owned()));
    TestMessage {
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
                &format!("{by} sent this test message to check the receiver."),
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
