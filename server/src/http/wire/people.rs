//! People, tokens, sessions and what they may do.

use chrono::{DateTime, Utc};
use domain::access::{Grant, Right, Role};
use serde::Serialize;
use utoipa::ToSchema;

use crate::identity::{Person, SessionView, TokenView, Who};

#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "Grant", example = json!({"role": "operator", "backend": "cache", "prefix": "tenant_1:"}))]
pub struct GrantWire {
    /// viewer, client, operator, approver, auditor or admin.
    role: &'static str,
    /// Null: on every backend.
    backend: Option<String>,
    /// On whole segments; null: every name.
    prefix: Option<String>,
}

impl From<&Grant> for GrantWire {
    fn from(grant: &Grant) -> Self {
        Self {
            role: grant.role.wire(),
            backend: grant.backend.as_ref().map(ToString::to_string),
            prefix: grant.prefix.clone(),
        }
    }
}

pub(in crate::http) fn moment(ms: i64) -> Option<DateTime<Utc>> {
    DateTime::from_timestamp_millis(ms)
}

#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "Person")]
pub struct PersonWire {
    id: String,
    name: String,
    grants: Vec<GrantWire>,
    created_at: Option<DateTime<Utc>>,
    /// Null: may sign in.
    disabled_at: Option<DateTime<Utc>>,
    has_password: bool,
    /// The identity provider that says who they are; null for people of our own.
    issuer: Option<String>,
}

impl From<&Person> for PersonWire {
    fn from(person: &Person) -> Self {
        Self {
            id: person.id.clone(),
            name: person.name.clone(),
            grants: person.grants.iter().map(GrantWire::from).collect(),
            created_at: moment(person.created_at),
            disabled_at: person.disabled_at.and_then(moment),
            has_password: person.has_password,
            issuer: person.issuer.clone(),
        }
    }
}

#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(title = "People")]
pub struct PeopleWire {
    pub people: Vec<PersonWire>,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(title = "Added")]
pub struct AddedWire {
    pub id: String,
}

/// The one moment at which it is known.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(title = "SignInLink")]
pub struct LinkWire {
    /// Signs the person in, once, within an hour.
    pub link: String,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "Token")]
pub struct TokenWire {
    id: String,
    name: String,
    grants: Vec<GrantWire>,
    created_at: Option<DateTime<Utc>>,
    created_by: String,
    /// The person or token that created it; null where it is unknown.
    created_by_id: Option<String>,
    /// The person behind the chain of tokens and links that created it; null where it is unknown.
    root: Option<String>,
    /// Null: until it is revoked.
    expires_at: Option<DateTime<Utc>>,
    /// To ten seconds; null: never.
    used_at: Option<DateTime<Utc>>,
    revoked_at: Option<DateTime<Utc>>,
    /// Name of the token whose leases it inherits; null: none.
    successor_of: Option<String>,
}

impl From<TokenView> for TokenWire {
    fn from(token: TokenView) -> Self {
        Self {
            id: token.id,
            name: token.name,
            grants: token.grants.iter().map(GrantWire::from).collect(),
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
pub struct TokensWire {
    pub tokens: Vec<TokenWire>,
}

/// The one moment at which it is known.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(title = "MadeToken")]
pub struct MadeTokenWire {
    pub token: String,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "Session")]
pub struct SessionWire {
    id: String,
    person_id: String,
    /// `password`, `link` or `oidc`.
    way: String,
    created_at: Option<DateTime<Utc>>,
    /// To the minute.
    seen_at: Option<DateTime<Utc>>,
    ip: Option<String>,
    user_agent: Option<String>,
}

impl From<SessionView> for SessionWire {
    fn from(session: SessionView) -> Self {
        Self {
            id: session.id,
            person_id: session.person_id,
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
pub struct SessionsWire {
    pub sessions: Vec<SessionWire>,
}

/// Who asks, and what they may do.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "Me")]
pub struct MeWire {
    id: String,
    name: String,
    /// `person` or `token`.
    kind: &'static str,
    grants: Vec<GrantWire>,
    /// When the person last proved who they are; null for a token.
    authenticated_at: Option<DateTime<Utc>>,
    /// Nobody may release a lock for now.
    read_only: bool,
}

impl From<&Who> for MeWire {
    fn from(who: &Who) -> Self {
        let session = who.session.as_ref();
        Self {
            id: who.id().to_owned(),
            name: who.name().to_owned(),
            kind: if who.is_token() { "token" } else { "person" },
            grants: who.grants.iter().map(GrantWire::from).collect(),
            authenticated_at: session.and_then(|session| moment(session.authenticated_at)),
            read_only: who.read_only,
        }
    }
}

#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(title = "Role")]
pub struct RoleWire {
    role: &'static str,
    rights: Vec<&'static str>,
}

impl From<Role> for RoleWire {
    fn from(role: Role) -> Self {
        Self {
            role: role.wire(),
            rights: role.rights().iter().copied().map(Right::wire).collect(),
        }
    }
}

#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(title = "Roles")]
pub struct RolesWire {
    pub roles: Vec<RoleWire>,
}

/// `{name, grants:[{role, backend?, prefix?}], password?}`
#[derive(Serialize, ToSchema)]
#[schema(title = "NewPerson", example = json!({"name": "bea", "grants": [{"role": "operator", "prefix": "tenant_1:"}]}))]
pub struct NewPersonWire {
    name: String,
    grants: Vec<GrantWire>,
    /// At least 12 characters; without one they sign in by a link.
    password: Option<String>,
}

#[derive(Serialize, ToSchema)]
#[schema(title = "Grants", example = json!({"grants": [{"role": "viewer"}]}))]
pub struct GrantsWire {
    grants: Vec<GrantWire>,
}

#[derive(Serialize, ToSchema)]
#[schema(title = "Password", example = json!({"password": "correct horse battery"}))]
pub struct PasswordWire {
    password: String,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "NewToken", example = json!({"name": "billing", "grants": [{"role": "client", "prefix": "billing:"}], "expiresInSeconds": 2_592_000}))]
pub struct NewTokenWire {
    name: String,
    grants: Vec<GrantWire>,
    /// Absent: until it is revoked.
    expires_in_seconds: Option<i64>,
    /// Id or name of a token whose leases the new one inherits; that token may have expired or been revoked.
    successor_of: Option<String>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "ReadOnly", example = json!({"readOnly": false}))]
pub struct ReadOnlyWire {
    pub read_only: bool,
}
