//! Receivers: notification targets, delivery status, dead letters.
//!
//! Secrets and secret URLs are write-only in these forms.

mod deliveries;
pub mod edit;
pub mod list;
pub mod test_result;

use leptos::prelude::*;

use crate::server_pages::field::{Area, Field};

/// A receiver as listed.
#[derive(Debug, Clone, Default)]
pub struct ReceiverRow {
    pub name: String,
    /// `alertmanager`, `webhook` or `slack`.
    pub kind: &'static str,
    pub urls: Vec<String>,
    pub has_secret: bool,
    pub last_ok_at: Option<i64>,
    pub last_fault_at: Option<i64>,
    /// Error of the last delivery, if it failed.
    pub fault: Option<String>,
    pub waiting: u64,
    pub dead: u64,
}

/// One message to one receiver.
#[derive(Debug, Clone)]
pub struct Message {
    pub id: String,
    pub receiver: String,
    pub state: MessageState,
    /// Summary: `firing LongHeld`.
    pub what: String,
    pub attempts: i64,
    pub created_at: i64,
    pub ended_at: Option<i64>,
    pub next_at: i64,
    pub answer: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageState {
    Waiting,
    Delivered,
    Dead,
}

/// Input of a rejected form, with the invalid field. Never a secret, never a URL that may be
/// one.
#[derive(Debug, Clone, Default)]
pub struct ReceiverInput {
    pub name: String,
    pub kind: String,
    pub fault: Option<(String, String)>,
}

impl ReceiverInput {
    fn fault_of(&self, field: &str) -> Option<String> {
        let fault = self.fault.as_ref().filter(|(name, _)| name == field);
        fault.map(|(_, why)| why.clone())
    }
}

/// URL of the receiver's edit page.
pub fn path(name: &str) -> String {
    format!("/alerts/receivers/{name}")
}

/// For display: `Alertmanager`.
fn kind_word(kind: &str) -> &'static str {
    match kind {
        "alertmanager" => "Alertmanager",
        "slack" => "Slack",
        _ => "webhook",
    }
}

fn urls_field(typed: &ReceiverInput, is_new: bool) -> AnyView {
    let help = match is_new {
        true => "HTTPS. Alertmanager: every peer, one per line. Slack: the webhook URL.",
        false => "Leave empty to keep the current value.",
    };
    let area = Area {
        name: "urls",
        label: "Address",
        value: String::new(),
        help: Some(help),
        fault: typed.fault_of("urls"),
    };
    area.view_if(is_new)
}

fn secret_field(typed: &ReceiverInput, is_new: bool) -> AnyView {
    let help = match is_new {
        true => {
            "Webhook: key that signs each message, at least 16 bytes (openssl rand -hex 32). Alertmanager: optional bearer token. Not shown again."
        }
        false => "Leave empty to keep the current secret.",
    };
    Field {
        help: Some(help),
        fault: typed.fault_of("secret"),
        is_required: false,
        ..Field::password("secret", "Secret", "off")
    }
    .view()
}
