//! Data of the receivers' pages. Never a secret, never an address that is one.

use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;
use serde::{Deserialize, Serialize};

use crate::api::codec::EncodedResponse;
use crate::api::error::ApiError;
use crate::console::ConsoleFuture;

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

/// Port: the server implements it, for the caller of a request.
pub trait ReceiversPort {
    fn receivers(&self) -> ConsoleFuture<'_, ReceiversData>;
    fn receiver(&self, name: String) -> ConsoleFuture<'_, ReceiverData>;
}

#[server(name = GetReceivers, prefix = "/api", endpoint = "receivers", input = GetUrl, output = EncodedResponse)]
pub async fn receivers() -> Result<ReceiversData, ApiError> {
    let context = crate::api::error::from_context()?;
    context.set_status(context.pages()?.receivers().await)
}

#[server(name = GetReceiver, prefix = "/api", endpoint = "receiver", input = GetUrl, output = EncodedResponse)]
pub async fn receiver(name: String) -> Result<ReceiverData, ApiError> {
    let context = crate::api::error::from_context()?;
    context.set_status(context.pages()?.receiver(name).await)
}
