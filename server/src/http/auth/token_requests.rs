//! Requests with an API token.

use axum::extract::Request;
use axum::http::{HeaderValue, header};

use super::route_permissions::Route;
use super::{Authenticator, SessionGuard, client_ip, transport_security};
use crate::audit::Origin;
use crate::identity::{Principal, Subject, Token};

/// The secret of an `Authorization` header.
pub(super) fn bearer(value: &HeaderValue) -> Option<&str> {
    let value = value.to_str().ok()?;
    value.strip_prefix("Bearer ").map(str::trim)
}

impl Authenticator {
    pub(super) fn token_principal(&self, token: &Token, origin: Origin) -> Principal {
        Principal {
            subject: Subject::Token {
                id: token.id.clone(),
                name: token.name.clone(),
            },
            grants: token.grants.clone(),
            session: None,
            is_fresh: false,
            origin,
            predecessors: token.predecessors.clone(),
            read_only: self.identity.directory().read_only,
            alerts_overdue: self.evaluation.is_overdue(),
        }
    }

    /// Admits a request with a token that this server knows to a route that the token may use, as the layer would. `None`: the
    /// layer decides.
    pub(in crate::http) fn admit_token(&self, request: &Request, route: Route) -> Option<SessionGuard> {
        let value = request.headers().get(header::AUTHORIZATION)?;
        if transport_security::refusal(request, &self.proxies, &self.home).is_some() {
            return None;
        }
        let token = self.identity.known_token(bearer(value)?)?;
        let who = self.token_principal(&token, client_ip::from_request(request, &self.proxies));
        self.check(&who, route.access?, request).ok()?;
        Some(SessionGuard {
            identity: self.identity.clone(),
            who,
        })
    }
}
