//! Data of the receivers' pages. Never a secret, never an address that is one.

use serde::{Deserialize, Serialize};

/// `/alerts/receivers`
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceiversData {
    pub rows: Vec<ReceiverRow>,
    pub dead: Vec<Message>,
    pub latest: Vec<Message>,
    /// Milliseconds since 1970, by the server's clock.
    pub now: i64,
}

/// `/alerts/receivers/{name}`
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceiverData {
    pub row: ReceiverRow,
    /// Milliseconds since 1970, by the server's clock.
    pub now: i64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceiverRow {
    pub name: String,
    /// `alertmanager`, `webhook` or `slack`.
    pub kind: String,
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum MessageState {
    Waiting,
    Delivered,
    Dead,
}
