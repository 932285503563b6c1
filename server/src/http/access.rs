//! Who asks, and whether they may: one middleware before every route, one table of what each route needs.
//!
//! **Invariants:** a route that the table does not name is refused; a request that changes something through a cookie
//! comes from our own pages; who somebody is comes from the cookie or the token, never from a body.

pub mod cookie;
mod cross_site;
mod door;
mod guard;
mod hosts;
pub mod needs;
mod origin;
mod refused_form;
mod streams;

use std::sync::{Arc, LazyLock};

use axum::extract::{MatchedPath, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Redirect, Response};
use domain::access::Right;
use domain::audit::Action;
use domain::names::BackendName;

use self::guard::Next;
use self::needs::{Need, Route};
use self::streams::StreamKind;
use super::REQUEST_ID;
use super::form_page;
use super::pages::set_headers;
use super::problem::Problem;
use super::prove;
use super::settings::form::Form;
use crate::alerts::Evaluation;
use crate::audit::{Audit, Entry, Origin};
use crate::clock::Stopwatch;
use crate::identity::{Identity, IdentityError, Oidc, Person, Session, Subject, Who};
use crate::lease::Caller;
use crate::telemetry::meters;

pub use door::OverTls;
pub use guard::Guard;
pub use hosts::Hosts;
pub use origin::Proxies;
pub use streams::{Streams, is_event_stream};

/// Of a path in an audit entry.
const PATH_BYTES_MAX: usize = 512;

/// What the middleware asks.
#[derive(Clone)]
pub struct Gate {
    pub identity: Arc<Identity>,
    pub audit: Audit,
    pub proxies: Proxies,
    pub hosts: Hosts,
    pub streams: Streams,
    /// Cookies are for HTTPS only.
    pub is_secure: bool,
    /// The identity provider, where there is one.
    pub oidc: Option<Arc<Oidc>>,
    /// Where people reach the console, without a slash at its end.
    pub home: Arc<str>,
    /// Whether alert rules are evaluated.
    pub evaluation: Arc<Evaluation>,
}

/// Lets a request pass with [`Who`] and [`Standing`] in its extensions, or answers in its place.
async fn guarded<S: Next>(gate: Arc<Gate>, request: Request, next: S) -> Response {
    let watch = Stopwatch::start();
    let method = method_of(request.method());
    let matched = request.extensions().get::<MatchedPath>();
    let route = needs::find(request.method(), matched.map(MatchedPath::as_str));
    let response = admit(gate, route, request, next).await;
    meters().request(method, route.pattern, response.status().as_u16(), watch.seconds());
    response
}

/// Methods that somebody made up are no attributes.
fn method_of(method: &Method) -> &'static str {
    let known = ["GET", "POST", "PUT", "DELETE", "HEAD", "PATCH", "OPTIONS"];
    known
        .into_iter()
        .find(|one| *one == method.as_str())
        .unwrap_or("_OTHER")
}

/// Every request that is let in moves what this waits for: what turns one away is in a box.
async fn admit<S: Next>(gate: Arc<Gate>, route: Route, mut request: Request, next: S) -> Response {
    if let Some(answer) = door::refusal(&request, &gate.proxies, &gate.home) {
        return set_headers(answer).await;
    }
    if let Some(answer) = gate.hosts.refusal(&request, &gate.home) {
        return Box::pin(set_headers(answer)).await;
    }
    let origin = origin::of(&request, &gate.proxies);
    let who = match gate.who(request.headers(), origin).await {
        Ok(who) => who,
        Err(refusal) => {
            let refusal = refused(refusal.with_request_id(request.headers()));
            return Box::pin(set_headers(refusal)).await;
        }
    };
    let need = route.need;
    let checked = match need {
        Some(need) => gate.check(&who, need, &request).and_then(|()| {
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
        return Box::pin(gate.turn_away(refusal, need, &who, request)).await;
    }
    request.extensions_mut().insert(Standing {
        identity: gate.identity.clone(),
        who: who.clone(),
    });
    request.extensions_mut().insert(who.clone());
    let request_id = request.headers().get(REQUEST_ID).cloned();
    let pattern = route.pattern;
    let response = next.answer(request).await;
    if is_event_stream(&response) {
        return gate
            .streams
            .open(response, gate.identity.clone(), who, StreamKind::of(pattern))
            .unwrap_or_else(|max| {
                let headers = request_id.map(|id| (REQUEST_ID, id)).into_iter().collect();
                refused(Problem::too_many_streams(max).with_request_id(&headers))
            });
    }
    response
}

/// Whether the caller may still stay, for handlers that make them wait.
#[derive(Clone)]
pub struct Standing {
    identity: Arc<Identity>,
    who: Who,
}

impl Standing {
    pub async fn gone(&self) {
        self.identity.gone(&self.who).await;
    }

    /// The lease service's view of who asks: names outside of the scope do not exist for it. A user is one principal in all
    /// of their sessions.
    pub fn caller(&self) -> Caller {
        let who = &self.who;
        let right = if who.may_anywhere(Right::Lease) {
            Right::Lease
        } else {
            Right::View
        };
        Caller {
            principal: who.lease_principal(),
            scope: who.scope_on(right, &BUILTIN),
        }
    }
}

static BUILTIN: LazyLock<BackendName> = LazyLock::new(BackendName::builtin);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refusal {
    NobodyKnown,
    Forbidden,
    /// The session authenticated too long ago for this.
    NotFresh,
    CrossSite,
    NoSuchMethod,
    NoSuchRoute,
}

impl Gate {
    /// A token wins over a cookie: programs say what they mean.
    async fn who(&self, headers: &HeaderMap, origin: Origin) -> Result<Who, Problem> {
        if let Some(value) = headers.get(header::AUTHORIZATION) {
            let token = value
                .to_str()
                .ok()
                .and_then(|value| value.strip_prefix("Bearer "));
            let token = match token {
                Some(secret) => self.identity.token(secret.trim()).await?,
                None => None,
            };
            let Some(token) = token else {
                return Err(Problem::unauthenticated(
                    "This token is not known, has expired or was revoked",
                ));
            };
            return Ok(Who {
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
            });
        }
        let Some(secret) = cookie::read(headers, self.is_secure) else {
            return Ok(Who::anonymous(origin));
        };
        let Some((session, person)) = Box::pin(self.person_of_cookie(&secret)).await? else {
            return Ok(Who::anonymous(origin));
        };
        Ok(Who {
            subject: Subject::Person {
                id: person.id.into(),
                name: person.name.into(),
            },
            grants: person.grants,
            is_fresh: self.identity.is_fresh(&session),
            session: Some(Arc::new(session)),
            origin,
            predecessors: Arc::default(),
            read_only: self.identity.directory().read_only,
            alerts_overdue: self.evaluation.is_overdue(),
        })
    }

    async fn person_of_cookie(&self, secret: &str) -> Result<Option<(Session, Person)>, IdentityError> {
        let Some(session) = self.identity.session(secret).await? else {
            return Ok(None);
        };
        let person = self.identity.current_person_of(&session).await?;
        Ok(person.map(|person| (session, person)))
    }

    fn check(&self, who: &Who, need: Need, request: &Request) -> Result<(), Refusal> {
        // Without a cookie there is nothing that another site could misuse; signing in is not to be forged either.
        let by_form = who.session.is_some() || who.is_anonymous();
        // An export is an entry of the audit log: another site must not cause one by a link.
        let is_recorded = !request.method().is_safe() || request.uri().path() == needs::AUDIT_EXPORT;
        if by_form && is_recorded && cross_site::is_foreign(request.headers(), request.uri(), self.is_secure)
        {
            return Err(Refusal::CrossSite);
        }
        match need {
            Need::Nobody => Ok(()),
            _ if who.is_anonymous() => Err(Refusal::NobodyKnown),
            Need::Somebody => Ok(()),
            Need::May(right) if who.may_anywhere(right) => Ok(()),
            Need::May(_) => Err(Refusal::Forbidden),
        }
    }

    async fn turn_away(&self, refusal: Refusal, need: Option<Need>, who: &Who, request: Request) -> Response {
        // Apart, because a body cannot be shared over a wait.
        let (asked, body) = request.into_parts();
        self.note(who, &asked.method, asked.uri.path(), refusal).await;
        if refused_form::is_form(&asked) {
            let form = Form::read(body).await;
            if refusal == Refusal::NotFresh {
                let action = asked.uri.path_and_query().map_or("/", |path| path.as_str());
                return set_headers(prove::refused(self, who, action, form)).await;
            }
            return set_headers(refused_form::answer(refusal, need, who, &asked, form)).await;
        }
        set_headers(answer(refusal, need, who, &asked)).await
    }

    /// Refusals of what would have changed something are in the record; those of nobody known are counted by source.
    async fn note(&self, who: &Who, method: &Method, path: &str, refusal: Refusal) {
        let outcome = match refusal {
            _ if method.is_safe() => return,
            Refusal::NobodyKnown => "unauthenticated",
            Refusal::Forbidden => "forbidden",
            Refusal::NotFresh => "needs_reauthentication",
            Refusal::CrossSite => "cross_site",
            Refusal::NoSuchMethod | Refusal::NoSuchRoute => return,
        };
        // A path is ASCII.
        let path = path.get(..PATH_BYTES_MAX).unwrap_or(path);
        let entry = Entry {
            after: Some(serde_json::json!({"method": method_of(method), "path": path})),
            ..Entry::new(Action::Deny, outcome, who.actor(None), who.origin.clone())
        };
        if who.is_anonymous() {
            self.audit.append_anonymous(entry, "").await;
            return;
        }
        if let Err(error) = self.audit.append(entry).await {
            tracing::error!("a refusal could not be recorded: {error}");
        }
    }
}

fn answer(refusal: Refusal, need: Option<Need>, who: &Who, asked: &Parts) -> Response {
    let headers = &asked.headers;
    let wants_page = asked.method.is_safe() && needs::is_page(asked.uri.path());
    match refusal {
        Refusal::NobodyKnown if wants_page => {
            let next = asked.uri.path_and_query().map_or("/", |path| path.as_str());
            Redirect::to(&cookie::sign_in_path(next)).into_response()
        }
        Refusal::NobodyKnown => {
            refused(Problem::unauthenticated("Sign in, or send a token").with_request_id(headers))
        }
        Refusal::Forbidden => {
            let right = right_of(need);
            if wants_page {
                return form_page::forbidden(who, right);
            }
            refused(Problem::forbidden(format!("This needs the right {right}")).with_request_id(headers))
        }
        Refusal::NotFresh => refused(Problem::needs_reauthentication().with_request_id(headers)),
        Refusal::CrossSite => refused(
            Problem::forbidden("This request comes from another site".to_owned()).with_request_id(headers),
        ),
        // Somebody went back to where a form was sent. OPTIONS and TRACE are safe too, but look at nothing.
        Refusal::NoSuchMethod if wants_page && matches!(asked.method, Method::GET | Method::HEAD) => {
            Redirect::to(needs::page_above(asked.uri.path())).into_response()
        }
        Refusal::NoSuchMethod => refused(Problem::no_such_method(&asked.method).with_request_id(headers)),
        Refusal::NoSuchRoute => refused(Problem::no_such_route(&asked.uri).with_request_id(headers)),
    }
}

/// The word of the right that is missing.
fn right_of(need: Option<Need>) -> &'static str {
    match need {
        Some(Need::May(right)) => right.wire(),
        _ => "more",
    }
}

fn refused(problem: Problem) -> Response {
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
            IdentityError::WrongPassword | IdentityError::BadLink => {
                Self::unauthenticated(&error.to_string())
            }
            IdentityError::TooManyGuesses { wait_s } => {
                Self::too_many("too_many_guesses", error.to_string(), wait_s)
            }
            IdentityError::Busy { wait_s } => Self::too_many("too_many_sign_ins", error.to_string(), wait_s),
            IdentityError::LastAdmin => Self::conflict("last_admin", error.to_string()),
            IdentityError::NoChance | IdentityError::Store(_) => Self::store_unavailable(),
        }
    }
}
