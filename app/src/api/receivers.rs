//! Receivers of notifications.

use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;

use super::codec::EncodedResponse;
use super::error::ApiError;
use crate::page_data::receivers::{ReceiverData, ReceiversData};

#[server(name = GetReceivers, prefix = "/api", endpoint = "receivers", input = GetUrl, output = EncodedResponse)]
pub async fn receivers() -> Result<ReceiversData, ApiError> {
    let asked = super::error::from_context()?;
    asked.set_status(asked.pages()?.receivers().await)
}

#[server(name = GetReceiver, prefix = "/api", endpoint = "receiver", input = GetUrl, output = EncodedResponse)]
pub async fn receiver(name: String) -> Result<ReceiverData, ApiError> {
    let asked = super::error::from_context()?;
    asked.set_status(asked.pages()?.receiver(name).await)
}
