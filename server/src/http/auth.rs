//! Authentication and permissions: one layer before every route.
//!
//! **Invariants:** a route that the table does not name is refused; a request that changes something through a cookie
//! comes from our own pages; the principal comes from the cookie or the token, never from a body.

mod client_ip;
pub mod cookie;
mod csrf;
mod host_check;
mod layer;
mod rejected_form;
pub mod route_permissions;
mod sse_limits;
mod token_requests;
mod transport_security;

use std::sync::{Arc, LazyLock};

use app::session::{FirstRender, Refusal as PageRefusal};
use axum::extract::{MatchedPath, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Redirect, Response};
use domain::access::Permission;
use domain::audit::Action;
use domain::names::BackendName;

use self::layer::Next;
use self::route_permissions::{Access, Route, method_of};
use self::sse_limits::StreamKind;
use self::token_requests::bearer;
use crate::alerts::EvaluatorMonitor;
use crate::audit::{Audit, Entry, Origin};
use crate::http::REQUEST_ID;
use crate::http::demo_console::DemoConsole;
use crate::http::form_body::Form;
use crate::http::pages::{self, reauthenticate};
use crate::http::problem::Problem;
use crate::http::routes;
use crate::http::state::AppState;
use crate::identity::{Identity, IdentityError, Oidc, Principal, Subject};
use lease::LeaseCaller;
use runtime::clock::Stopwatch;
use runtime::telemetry::instruments;

pub use client_ip::Proxies;
pub use host_check::Hosts;
pub use layer::AuthLayer;
pub use sse_limits::{Streams, is_event_stream};
pub use transport_security::OverTls;

/// Limit of a path in an audit entry.
const PATH_BYTES_MAX: usize = 512;

/// Dependencies of the authentication layer.
#[derive(Clone)]
pub struct Authenticator {
    pub identity: Arc<Identity>,
    pub audit: Audit,
    pub proxies: Proxies,
    pub hosts: Hosts,
    pub streams: Streams,
    /// Cookies are for HTTPS only.
    pub is_secure: bool,
    /// The identity provider, where there is one.
    pub oidc: Option<Arc<Oidc>>,
    /// The public URL, without a trailing slash.
    pub home: Arc<str>,
    /// Whether alert rules are evaluated.
    pub evaluation: Arc<EvaluatorMonitor>,
    /// Set in the demo only.
    pub demo: Option<Arc<DemoConsole>>,
}

/// Passes a request on with [`Principal`] and [`SessionGuard`] in its extensions, or refuses it.
async fn guarded<S: Next>(state: AppState, request: Request, next: S) -> Response {
    let watch = Stopwatch::start();
    let method = method_of(request.method());
    let matched = request.extensions().get::<MatchedPath>();
    let route = route_permissions::find(request.method(), matched.map(MatchedPath::as_str));
    let response = admit(state, route, request, next).await;
    instruments().request(method, route.pattern, response.status().as_u16(), watch.seconds());
    response
}

/// Refusals are boxed: the future of every admitted request would be larger with them.
async fn admit<S: Next>(state: AppState, route: Route, mut request: Request, next: S) -> Response {
    let auth = &state.auth;
    if let Some(answer) = transport_security::refusal(&request, &auth.proxies, &auth.home) {
        return answer;
    }
    if let Some(answer) = auth.hosts.refusal(&request, &auth.home) {
        return answer;
    }
    let origin = client_ip::from_request(&request, &auth.proxies);
    let is_use = route.pattern != routes::EVENTS;
    let who = match auth.authenticate(request.headers(), origin, is_use).await {
        Ok(who) => who,
        Err(refusal) => {
            return problem_response(refusal.with_request_id(request.headers()));
        }
    };
    let access = route.access;
    let path = request.uri().path();
    let checked = match access {
        // The API has its own router, which resolves nothing.
        Some(_) if !path.starts_with("/v1/") && !route_permissions::is_normalized(path) => {
            Err(Refusal::NoSuchRoute)
        }
        Some(access) => auth.check(&who, access, &request).and_then(|()| {
            let is_stale = who.session.is_some() && !who.is_fresh;
            match route.is_for_fresh && is_stale {
                true => Err(Refusal::NotFresh),
                false => Ok(()),
            }
        }),
        None if route.is_known => Err(Refusal::NoSuchMethod),
        None => Err(Refusal::NoSuchRoute),
    };
    if let Err(refusal) = checked {
        return Box::pin(answer_refusal(&state, refusal, access, &who, request)).await;
    }
    request.extensions_mut().insert(SessionGuard {
        identity: auth.identity.clone(),
        who: who.clone(),
    });
    request.extensions_mut().insert(who.clone());
    let request_id = request.headers().get(REQUEST_ID).cloned();
    let pattern = route.pattern;
    let response = next.answer(request).await;
    if is_event_stream(&response) {
        return auth
            .streams
            .open(
                response,
                auth.identity.clone(),
                who,
                StreamKind::from_pattern(pattern),
            )
            .unwrap_or_else(|max| {
                let headers = request_id.map(|id| (REQUEST_ID, id)).into_iter().collect();
                problem_response(Problem::too_many_streams(max).with_request_id(&headers))
            });
    }
    response
}

/// Notifies waiting handlers when the principal loses access.
#[derive(Clone)]
pub struct SessionGuard {
    identity: Arc<Identity>,
    who: Principal,
}

impl SessionGuard {
    pub async fn access_lost(&self) {
        self.identity.access_lost(&self.who).await;
    }

    /// The principal and scope for the lease service. A user is one principal in all sessions.
    pub fn caller(&self) -> LeaseCaller {
        let who = &self.who;
        let right = if who.may_anywhere(Permission::Lease) {
            Permission::Lease
        } else {
            Permission::View
        };
        LeaseCaller {
            principal: who.lease_principal(),
            scope: who.scope_on(right, &BUILTIN),
        }
    }
}

static BUILTIN: LazyLock<BackendName> = LazyLock::new(BackendName::builtin);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refusal {
    Unauthenticated,
    Forbidden,
    /// The session authenticated too long ago for this.
    NotFresh,
    CrossSite,
    NoSuchMethod,
    NoSuchRoute,
}

impl Authenticator {
    /// A token takes precedence over a cookie.
    async fn authenticate(
        &self,
        headers: &HeaderMap,
        origin: Origin,
        is_use: bool,
    ) -> Result<Principal, Problem> {
        if let Some(value) = headers.get(header::AUTHORIZATION) {
            let token = match bearer(value) {
                Some(secret) => self.identity.token(secret).await?,
                None => None,
            };
            let Some(token) = token else {
                return Err(Problem::unauthenticated(
                    "This token is not known, has expired or was revoked",
                ));
            };
            return Ok(self.token_principal(&token, origin));
        }
        let Some(secret) = cookie::read(headers, self.is_secure) else {
            return Ok(Principal::anonymous(origin));
        };
        let signed_in = Box::pin(self.identity.session_with_user(&secret, is_use)).await?;
        let Some((session, user)) = signed_in else {
            return Ok(Principal::anonymous(origin));
        };
        Ok(Principal {
            subject: Subject::User {
                id: user.id.into(),
                name: user.name.into(),
            },
            grants: user.grants,
            is_fresh: self.identity.is_fresh(&session),
            session: Some(Arc::new(session)),
            origin,
            predecessors: Arc::default(),
            read_only: self.identity.directory().read_only,
            alerts_overdue: self.evaluation.is_overdue(),
        })
    }

    fn check(&self, who: &Principal, access: Access, request: &Request) -> Result<(), Refusal> {
        // Without a cookie there is nothing that another site could misuse. But a sign-in must not be forged either.
        let by_form = who.session.is_some() || who.is_anonymous();
        // An export is an entry of the audit log: another site must not cause one by a link.
        let is_recorded = !request.method().is_safe() || request.uri().path() == routes::AUDIT_EXPORT;
        if by_form && is_recorded && csrf::is_foreign(request.headers(), request.uri(), self.is_secure) {
            return Err(Refusal::CrossSite);
        }
        match access {
            Access::Public => Ok(()),
            _ if who.is_anonymous() => Err(Refusal::Unauthenticated),
            Access::SignedIn => Ok(()),
            Access::May(right) if who.may_anywhere(right) => Ok(()),
            Access::May(_) => Err(Refusal::Forbidden),
        }
    }

    /// Refused changes enter the audit log, counted where there are many.
    async fn record_refusal(&self, who: &Principal, method: &Method, path: &str, refusal: Refusal) {
        let outcome = match refusal {
            _ if method.is_safe() => return,
            Refusal::Unauthenticated => "unauthenticated",
            Refusal::Forbidden => "forbidden",
            Refusal::NotFresh => "needs_reauthentication",
            Refusal::CrossSite => "cross_site",
            Refusal::NoSuchMethod | Refusal::NoSuchRoute => return,
        };
        // Not only ASCII: hyper accepts UTF-8 in a path.
        let path = &path[..path.floor_char_boundary(PATH_BYTES_MAX)];
        let entry = Entry {
            after: Some(serde_json::json!({"method": method_of(method), "path": path})),
            ..Entry::new(Action::Deny, outcome, who.actor(None), who.origin.clone())
        };
        if who.is_anonymous() {
            self.audit.append_anonymous(entry, "").await;
        } else {
            self.audit.append_refused(entry).await;
        }
    }
}

async fn answer_refusal(
    state: &AppState,
    refusal: Refusal,
    access: Option<Access>,
    who: &Principal,
    request: Request,
) -> Response {
    // A body is not Sync, so it is not borrowed across an await.
    let (parts, body) = request.into_parts();
    let auth = &state.auth;
    auth.record_refusal(who, &parts.method, parts.uri.path(), refusal)
        .await;
    if rejected_form::is_form(&parts) {
        let read = if who.is_anonymous() {
            Form::read_anonymous(body).await
        } else {
            Form::read(body).await
        };
        let form = match read {
            Ok(form) => form,
            // The form is sent again after the authentication.
            Err(error) if refusal == Refusal::NotFresh => {
                return problem_response(Problem::from(error).with_request_id(&parts.headers));
            }
            Err(_) => Form::default(),
        };
        if refusal == Refusal::NotFresh {
            let action = parts.uri.path_and_query().map_or("/", |path| path.as_str());
            return reauthenticate::request_reauthentication(auth, who, action, form);
        }
        return rejected_form::reject(state, refusal, access, who, &parts, form).await;
    }
    reject(state, refusal, access, who, &parts).await
}

async fn reject(
    state: &AppState,
    refusal: Refusal,
    access: Option<Access>,
    who: &Principal,
    parts: &Parts,
) -> Response {
    let headers = &parts.headers;
    let wants_page = parts.method.is_safe() && route_permissions::is_page(parts.uri.path());
    match refusal {
        Refusal::Unauthenticated if wants_page => {
            let next = parts.uri.path_and_query().map_or("/", |path| path.as_str());
            Redirect::to(&cookie::sign_in_path(next)).into_response()
        }
        Refusal::Unauthenticated => {
            problem_response(Problem::unauthenticated("Sign in, or send a token").with_request_id(headers))
        }
        Refusal::Forbidden => {
            let right = right_of(access);
            if wants_page {
                let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
                let first = FirstRender {
                    refusal: Some(PageRefusal::Forbidden(right.to_owned())),
                    ..FirstRender::default()
                };
                return Box::pin(pages::render(state, who, path, StatusCode::FORBIDDEN, first)).await;
            }
            problem_response(
                Problem::forbidden(format!(
                    "This needs the permission `{right}`; an admin can grant it"
                ))
                .with_request_id(headers),
            )
        }
        Refusal::NotFresh => problem_response(Problem::needs_reauthentication().with_request_id(headers)),
        Refusal::CrossSite => problem_response(
            Problem::forbidden("This request comes from another site".to_owned()).with_request_id(headers),
        ),
        // Back to the address of a form. OPTIONS and TRACE are safe methods too, but do not open a page.
        Refusal::NoSuchMethod if wants_page && matches!(parts.method, Method::GET | Method::HEAD) => {
            Redirect::to(route_permissions::page_above(parts.uri.path())).into_response()
        }
        Refusal::NoSuchMethod => {
            problem_response(Problem::no_such_method(&parts.method).with_request_id(headers))
        }
        Refusal::NoSuchRoute => problem_response(Problem::no_such_route(&parts.uri).with_request_id(headers)),
    }
}

/// The missing permission.
fn right_of(access: Option<Access>) -> &'static str {
    match access {
        Some(Access::May(right)) => right.as_str(),
        _ => "more",
    }
}

fn problem_response(problem: Problem) -> Response {
    let mut response = problem.into_response();
    if response.status() == StatusCode::UNAUTHORIZED {
        response
            .headers_mut()
            .insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}

impl From<IdentityError> for Problem {
    fn from(error: IdentityError) -> Self {
        match error {
            IdentityError::Invalid { field, ref why } => Self::invalid(field, format!("{field} {why}")),
            IdentityError::Exists { .. } => Self::conflict("exists", error.to_string()),
            IdentityError::NotFound { .. } => Self::not_found(error.to_string()),
            IdentityError::WrongPassword | IdentityError::AccessEnded | IdentityError::BadLink => {
                Self::unauthenticated(&error.to_string())
            }
            IdentityError::TooManyGuesses { wait_s } => {
                Self::too_many("too_many_guesses", error.to_string(), wait_s)
            }
            IdentityError::Busy { wait_s } => Self::too_many("too_many_sign_ins", error.to_string(), wait_s),
            IdentityError::LastAdmin => Self::conflict("last_admin", error.to_string()),
            IdentityError::PasswordChanged => Self::conflict("changed", error.to_string()),
            IdentityError::NoChance | IdentityError::Store(_) => Self::store_unavailable(),
        }
    }
}
