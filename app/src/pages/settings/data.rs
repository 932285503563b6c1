//! Data of the settings pages. Never a secret.

use domain::access::Grant;
use domain::unlock::ProtectionLevel;
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;
use serde::{Deserialize, Serialize};

use crate::api::codec::EncodedResponse;
use crate::api::error::ApiError;
use crate::console::ConsoleFuture;

/// `/settings`
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountData {
    pub grants: Vec<Grant>,
    /// How this session began: `password`, `link`, `token` or the name of an identity provider.
    pub sign_in_method: String,
    pub authenticated_at: Option<i64>,
    pub has_password: bool,
    /// Managed by an identity provider.
    pub is_managed: bool,
    pub sessions: Vec<SessionRow>,
    /// Milliseconds since 1970, by the server's clock.
    pub now: i64,
}

/// `/settings/sessions`
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionsData {
    pub rows: Vec<SessionRow>,
    /// Milliseconds since 1970, by the server's clock.
    pub now: i64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionRow {
    pub id: String,
    pub user: String,
    pub sign_in_method: String,
    pub created_at: i64,
    pub seen_at: i64,
    pub ip: Option<String>,
    pub user_agent: Option<String>,
    /// The session of this request.
    pub is_current: bool,
}

/// `/settings/users`
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsersData {
    pub rows: Vec<UserRow>,
    pub backends: Vec<String>,
    /// Milliseconds since 1970, by the server's clock.
    pub now: i64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserRow {
    pub id: String,
    pub name: String,
    pub grants: Vec<Grant>,
    pub sign_in_method: String,
    pub is_disabled: bool,
    /// Last use of a live session.
    pub seen_at: Option<i64>,
}

/// `/settings/users/{id}`
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserData {
    pub id: String,
    pub name: String,
    pub grants: Vec<Grant>,
    pub sign_in_method: String,
    pub created_at: i64,
    pub disabled_at: Option<i64>,
    pub sessions: u64,
    pub active_tokens: Vec<UserToken>,
    /// Grants come from an identity provider at each sign-in.
    pub is_managed: bool,
    /// The user of this request.
    pub is_self: bool,
    pub backends: Vec<String>,
    /// Milliseconds since 1970, by the server's clock.
    pub now: i64,
}

/// Created by the user, directly or through tokens and links.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserToken {
    pub id: String,
    pub name: String,
}

/// `/settings/tokens`
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokensData {
    pub rows: Vec<TokenRow>,
    pub backends: Vec<String>,
    /// Milliseconds since 1970, by the server's clock.
    pub now: i64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenRow {
    pub id: String,
    pub name: String,
    pub grants: Vec<Grant>,
    pub created_at: i64,
    pub created_by: String,
    /// The user behind the creator, if different.
    pub root: Option<String>,
    pub expires_at: Option<i64>,
    pub used_at: Option<i64>,
    pub revoked_at: Option<i64>,
    /// Name of the token whose leases it inherits.
    pub successor_of: Option<String>,
}

impl TokenRow {
    pub fn is_active(&self, now: i64) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|at| at > now)
    }
}

/// `/settings/protected-prefixes`
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProtectedPrefixesData {
    pub rows: Vec<ProtectedPrefixRow>,
    pub backends: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProtectedPrefixRow {
    pub id: String,
    /// `None`: every backend.
    pub backend: Option<String>,
    /// Empty: every name.
    pub prefix: String,
    pub protection: ProtectionLevel,
    /// `standard`, below a protected prefix.
    pub is_exception: bool,
}

/// Port: the server implements it, for the caller of a request.
pub trait SettingsPort {
    fn account(&self) -> ConsoleFuture<'_, AccountData>;
    fn sessions(&self) -> ConsoleFuture<'_, SessionsData>;
    fn users(&self) -> ConsoleFuture<'_, UsersData>;
    fn user(&self, id: String) -> ConsoleFuture<'_, UserData>;
    fn tokens(&self) -> ConsoleFuture<'_, TokensData>;
    fn protected_prefixes(&self) -> ConsoleFuture<'_, ProtectedPrefixesData>;
}

#[server(name = GetAccount, prefix = "/api", endpoint = "account", input = GetUrl, output = EncodedResponse)]
pub async fn account() -> Result<AccountData, ApiError> {
    let context = crate::api::error::from_context()?;
    context.set_status(context.pages()?.account().await)
}

#[server(name = GetSessions, prefix = "/api", endpoint = "sessions", input = GetUrl, output = EncodedResponse)]
pub async fn sessions() -> Result<SessionsData, ApiError> {
    let context = crate::api::error::from_context()?;
    context.set_status(context.pages()?.sessions().await)
}

#[server(name = GetUsers, prefix = "/api", endpoint = "users", input = GetUrl, output = EncodedResponse)]
pub async fn users() -> Result<UsersData, ApiError> {
    let context = crate::api::error::from_context()?;
    context.set_status(context.pages()?.users().await)
}

#[server(name = GetUser, prefix = "/api", endpoint = "user", input = GetUrl, output = EncodedResponse)]
pub async fn user(id: String) -> Result<UserData, ApiError> {
    let context = crate::api::error::from_context()?;
    context.set_status(context.pages()?.user(id).await)
}

#[server(name = GetTokens, prefix = "/api", endpoint = "tokens", input = GetUrl, output = EncodedResponse)]
pub async fn tokens() -> Result<TokensData, ApiError> {
    let context = crate::api::error::from_context()?;
    context.set_status(context.pages()?.tokens().await)
}

#[server(name = GetProtectedPrefixes, prefix = "/api", endpoint = "protected-prefixes", input = GetUrl, output = EncodedResponse)]
pub async fn protected_prefixes() -> Result<ProtectedPrefixesData, ApiError> {
    let context = crate::api::error::from_context()?;
    context.set_status(context.pages()?.protected_prefixes().await)
}
