//! Settings: account, users, tokens, sessions, protected prefixes.

use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;

use super::codec::EncodedResponse;
use super::error::ApiError;
use crate::page_data::settings::{
    AccountData, ProtectedPrefixesData, SessionsData, TokensData, UserData, UsersData,
};

#[server(name = GetAccount, prefix = "/api", endpoint = "account", input = GetUrl, output = EncodedResponse)]
pub async fn account() -> Result<AccountData, ApiError> {
    let context = super::error::from_context()?;
    context.set_status(context.pages()?.account().await)
}

#[server(name = GetSessions, prefix = "/api", endpoint = "sessions", input = GetUrl, output = EncodedResponse)]
pub async fn sessions() -> Result<SessionsData, ApiError> {
    let context = super::error::from_context()?;
    context.set_status(context.pages()?.sessions().await)
}

#[server(name = GetUsers, prefix = "/api", endpoint = "users", input = GetUrl, output = EncodedResponse)]
pub async fn users() -> Result<UsersData, ApiError> {
    let context = super::error::from_context()?;
    context.set_status(context.pages()?.users().await)
}

#[server(name = GetUser, prefix = "/api", endpoint = "user", input = GetUrl, output = EncodedResponse)]
pub async fn user(id: String) -> Result<UserData, ApiError> {
    let context = super::error::from_context()?;
    context.set_status(context.pages()?.user(id).await)
}

#[server(name = GetTokens, prefix = "/api", endpoint = "tokens", input = GetUrl, output = EncodedResponse)]
pub async fn tokens() -> Result<TokensData, ApiError> {
    let context = super::error::from_context()?;
    context.set_status(context.pages()?.tokens().await)
}

#[server(name = GetProtectedPrefixes, prefix = "/api", endpoint = "protected-prefixes", input = GetUrl, output = EncodedResponse)]
pub async fn protected_prefixes() -> Result<ProtectedPrefixesData, ApiError> {
    let context = super::error::from_context()?;
    context.set_status(context.pages()?.protected_prefixes().await)
}
