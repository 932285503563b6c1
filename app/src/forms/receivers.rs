//! Receivers: who is told when alerts fire, whether they heard it, and what they never took.
//!
//! Secrets and the addresses that are secrets come in by these forms and never out again.

pub mod list;
mod messages;
pub mod one;
pub mod trial;

use leptos::prelude::*;

use crate::forms::field::{Area, Field};

/// As it is shown, by name.
#[derive(Debug, Clone, Default)]
pub struct Row {
    pub name: String,
    /// `alertmanager`, `webhook` or `slack`.
    pub kind: &'static str,
    pub urls: Vec<String>,
    pub has_secret: bool,
    pub last_ok_at: Option<i64>,
    pub last_fault_at: Option<i64>,
    /// Why it did not take the last message, if it did not.
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
    /// What it says: `firing LongHeld`.
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

/// What was typed before a refusal, with the field at fault. Never a secret, never an address that may be one.
#[derive(Debug, Clone, Default)]
pub struct Typed {
    pub name: String,
    pub kind: String,
    pub fault: Option<(String, String)>,
}

impl Typed {
    fn fault_of(&self, field: &str) -> Option<String> {
        let fault = self.fault.as_ref().filter(|(name, _)| name == field);
        fault.map(|(_, why)| why.clone())
    }
}

/// Where a receiver is edited.
pub fn path(name: &str) -> String {
    format!("/alerts/receivers/{name}")
}

/// For people: `Alertmanager`.
fn kind_word(kind: &str) -> &'static str {
    match kind {
        "alertmanager" => "Alertmanager",
        "slack" => "Slack",
        _ => "webhook",
    }
}

fn urls_field(typed: &Typed, is_new: bool) -> AnyView {
    let help = match is_new {
        true => {
            "HTTPS. Of an Alertmanager every peer, one on each line; of Slack the address that it gave you."
        }
        false => "Left empty, what is there stays.",
    };
    let area = Area {
        name: "urls",
        label: "Where to",
        value: String::new(),
        help: Some(help),
        fault: typed.fault_of("urls"),
    };
    area.view_if(is_new)
}

fn secret_field(typed: &Typed, is_new: bool) -> AnyView {
    let help = match is_new {
        true => {
            "Of a webhook: signs each message, at least 16 bytes (openssl rand -hex 32). Of an Alertmanager: a bearer token, if it wants one. It is never shown again."
        }
        false => "Left empty, what is there stays. It is never shown.",
    };
    Field {
        help: Some(help),
        fault: typed.fault_of("secret"),
        is_required: false,
        ..Field::password("secret", "Secret", "off")
    }
    .view()
}
