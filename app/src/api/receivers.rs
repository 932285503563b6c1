//! Receivers of notifications.

use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;

use super::codec::EncodedResponse;
use super::error::ApiError;
use crate::page_data::receivers::{ReceiverData, ReceiversData};

#[server(name = GetReceivers, prefix = "/api", endpoint = "receivers", input = GetUrl, output = EncodedResponse)]
pub async fn receivers() -> Result<ReceiversData, ApiError> {
    let context = super::error::from_context()?;
    context.set_status(context.pages()?.receivers().await)
}

#[server(name = GetReceiver, prefix = "/api", endpoint = "receiver", input = GetUrl, output = EncodedResponse)]
pub async fn receiver(name: String) -> Result<ReceiverData, ApiError> {
    let context = super::error::from_context()?;
    context.set_status(context.pages()?.receiver(name).await)
}
