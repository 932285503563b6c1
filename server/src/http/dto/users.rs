//! Users, tokens, sessions and what they may do.

use chrono::{DateTime, Utc};
use domain::access::{Grant, Permission, Role};
use domain::lease::ValidationError;
use domain::names::BackendName;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::http::json_body::objects;
use crate::identity::{ActiveToken, EndedAccess, Principal, SessionView, TokenView, User};

#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(title = "Grant", example = json!({"role": "operator", "backend": "cache", "prefix": "tenant_1:"}))]
pub struct GrantDto {
    /// viewer, client, operator, approver, auditor or admin.
    role: String,
    /// Null: on every backend.
    backend: Option<String>,
    /// On whole segments; null: every name.
    prefix: Option<String>,
}

impl From<&Grant> for GrantDto {
    fn from(grant: &Grant) -> Self {
        Self {
            role: grant.role.as_str().to_owned(),
            backend: grant.backend.as_ref().map(ToString::to_string),
            prefix: grant.prefix.clone(),
        }
    }
}

impl GrantDto {
    /// # Errors
    /// Names the member of the grant at `index` that is not valid.
    fn parse(self, index: usize) -> Result<Grant, ValidationError> {
        let invalid = |member: &str, message: String| {
            ValidationError::new(format!("grants[{index}].{member}"), message)
        };
        let roles = || Role::ALL.map(Role::as_str).join(", ");
        let role =
            Role::parse(&self.role).ok_or_else(|| invalid("role", format!("must be one of {}", roles())))?;
        let backend = self.backend.map(|name| BackendName::parse(&name)).transpose();
        Ok(Grant {
            role,
            backend: backend.map_err(|_| invalid("backend", "is not a backend name".to_owned()))?,
            prefix: self.prefix,
        })
    }
}

/// # Errors
/// Names the first member of a grant that is not valid.
pub(in crate::http) fn parse_grants(grants: Vec<GrantDto>) -> Result<Vec<Grant>, ValidationError> {
    let parsed = grants.into_iter().enumerate();
    parsed.map(|(index, grant)| grant.parse(index)).collect()
}

pub(in crate::http) fn moment(ms: i64) -> Option<DateTime<Utc>> {
    DateTime::from_timestamp_millis(ms)
}

#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "User")]
pub struct UserDto {
    id: String,
    name: String,
    grants: Vec<GrantDto>,
    created_at: Option<DateTime<Utc>>,
    /// Null: may sign in.
    disabled_at: Option<DateTime<Utc>>,
    has_password: bool,
    /// The identity provider of the user; null for a local user.
    issuer: Option<String>,
}

impl From<&User> for UserDto {
    fn from(user: &User) -> Self {
        Self {
            id: user.id.clone(),
            name: user.name.clone(),
            grants: user.grants.iter().map(GrantDto::from).collect(),
            created_at: moment(user.created_at),
            disabled_at: user.disabled_at.and_then(moment),
            has_password: user.has_password,
            issuer: user.issuer.clone(),
        }
    }
}

#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(title = "Users")]
pub struct UsersDto {
    pub users: Vec<UserDto>,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "DisabledUser")]
pub struct DisabledUserDto {
    /// Created by the user, directly or through tokens and links; they work until they are revoked or expire.
    active_tokens: Vec<ActiveTokenDto>,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(title = "ActiveToken")]
pub struct ActiveTokenDto {
    id: String,
    name: String,
}

impl From<Vec<ActiveToken>> for DisabledUserDto {
    fn from(tokens: Vec<ActiveToken>) -> Self {
        let tokens = tokens.into_iter().map(|token| ActiveTokenDto {
            id: token.id,
            name: token.name,
        });
        Self {
            active_tokens: tokens.collect(),
        }
    }
}

#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(title = "Added")]
pub struct AddedDto {
    pub id: String,
}

/// Shown once.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(title = "SignInLink")]
pub struct LinkDto {
    /// Signs the user in, once, within an hour.
    pub link: String,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "Token")]
pub struct TokenDto {
    id: String,
    name: String,
    grants: Vec<GrantDto>,
    created_at: Option<DateTime<Utc>>,
    created_by: String,
    /// The user or token that created it; null where it is unknown.
    created_by_id: Option<String>,
    /// The user behind the chain of tokens and links that created it; null where it is unknown.
    root: Option<String>,
    /// Null: until it is revoked.
    expires_at: Option<DateTime<Utc>>,
    /// Exact to ten seconds; null: never.
    used_at: Option<DateTime<Utc>>,
    revoked_at: Option<DateTime<Utc>>,
    /// Name of the token whose leases it inherits; null: none.
    successor_of: Option<String>,
}

impl From<TokenView> for TokenDto {
    fn from(token: TokenView) -> Self {
        Self {
            id: token.id,
            name: token.name,
            grants: token.grants.iter().map(GrantDto::from).collect(),
            created_at: moment(token.created_at),
            created_by: token.created_by,
            created_by_id: token.created_by_id,
            root: token.root,
            expires_at: token.expires_at.and_then(moment),
            used_at: token.used_at.and_then(moment),
            revoked_at: token.revoked_at.and_then(moment),
            successor_of: token.successor_of,
        }
    }
}

#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(title = "Tokens")]
pub struct TokensDto {
    pub tokens: Vec<TokenDto>,
}

/// Tokens, links and sessions that ended together with a token.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "RevokedToken")]
pub struct RevokedTokenDto {
    /// Names of this token and of those that came from it; empty if it had been revoked before.
    revoked_tokens: Vec<String>,
    /// Sign-in links that could still be used.
    ended_links: u64,
    ended_sessions: u64,
}

impl From<EndedAccess> for RevokedTokenDto {
    fn from(ended: EndedAccess) -> Self {
        Self {
            revoked_tokens: ended.tokens,
            ended_links: ended.links,
            ended_sessions: ended.sessions,
        }
    }
}

/// Shown once.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(title = "MadeToken")]
pub struct MadeTokenDto {
    pub token: String,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "Session")]
pub struct SessionDto {
    id: String,
    user_id: String,
    /// `password`, `link` or `oidc`.
    way: String,
    created_at: Option<DateTime<Utc>>,
    /// Exact to a minute.
    seen_at: Option<DateTime<Utc>>,
    ip: Option<String>,
    user_agent: Option<String>,
}

impl From<SessionView> for SessionDto {
    fn from(session: SessionView) -> Self {
        Self {
            id: session.id,
            user_id: session.user_id,
            way: session.way,
            created_at: moment(session.created_at),
            seen_at: moment(session.seen_at),
            ip: session.ip,
            user_agent: session.user_agent,
        }
    }
}

#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(title = "Sessions")]
pub struct SessionsDto {
    pub sessions: Vec<SessionDto>,
}

/// The principal of the request and its grants.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "Me")]
pub struct MeDto {
    id: String,
    name: String,
    /// `user` or `token`.
    kind: &'static str,
    grants: Vec<GrantDto>,
    /// When the user last authenticated; null for a token.
    authenticated_at: Option<DateTime<Utc>>,
    /// Forced unlocks are switched off.
    read_only: bool,
}

impl From<&Principal> for MeDto {
    fn from(who: &Principal) -> Self {
        let session = who.session.as_ref();
        Self {
            id: who.id().to_owned(),
            name: who.name().to_owned(),
            kind: if who.is_token() { "token" } else { "user" },
            grants: who.grants.iter().map(GrantDto::from).collect(),
            authenticated_at: session.and_then(|session| moment(session.authenticated_at)),
            read_only: who.read_only,
        }
    }
}

#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(title = "Role")]
pub struct RoleDto {
    role: &'static str,
    rights: Vec<&'static str>,
}

impl From<Role> for RoleDto {
    fn from(role: Role) -> Self {
        Self {
            role: role.as_str(),
            rights: role.rights().iter().copied().map(Permission::as_str).collect(),
        }
    }
}

#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(title = "Roles")]
pub struct RolesDto {
    pub roles: Vec<RoleDto>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(title = "NewUser", example = json!({"name": "bea", "grants": [{"role": "operator", "prefix": "tenant_1:"}]}))]
pub struct NewUserDto {
    pub name: String,
    #[serde(deserialize_with = "objects")]
    pub grants: Vec<GrantDto>,
    /// At least 12 characters; without one the user signs in by a link.
    pub password: Option<String>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(title = "Grants", example = json!({"grants": [{"role": "viewer"}]}))]
pub struct GrantsDto {
    #[serde(deserialize_with = "objects")]
    pub grants: Vec<GrantDto>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(title = "Password", example = json!({"password": "correct horse battery"}))]
pub struct PasswordDto {
    pub password: String,
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(title = "NewToken", example = json!({"name": "billing", "grants": [{"role": "client", "prefix": "billing:"}], "expiresInSeconds": 2_592_000}))]
pub struct NewTokenDto {
    pub name: String,
    #[serde(deserialize_with = "objects")]
    pub grants: Vec<GrantDto>,
    /// Absent: until it is revoked.
    pub expires_in_seconds: Option<i64>,
    /// Id or name of a token whose leases the new one inherits; that token may have expired or been revoked.
    pub successor_of: Option<String>,
}

#[derive(Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(title = "ReadOnly", example = json!({"readOnly": false}))]
pub struct ReadOnlyDto {
    pub read_only: bool,
}
