//! Facts about the user for the layout: from the server's first HTML, kept up to date by the event
//! stream.

use domain::access::Permission;
use leptos::prelude::*;
use leptos::server::codee::{Decoder, Encoder};
use serde::{Deserialize, Serialize};

use crate::api::codec::{self, Payload, PayloadError};
use crate::forms::reply::FormReply;
use crate::live::topics::Revisions;

/// Facts about the caller of a page.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// `None`: no user has signed in.
    pub user: Option<String>,
    /// Permissions that the caller has on something.
    pub permissions: Vec<Permission>,
    pub is_read_only: bool,
    /// No server evaluates the alert rules.
    pub is_alerts_overdue: bool,
    /// Changes by admins need a new authentication.
    pub needs_authentication: bool,
    /// Alert groups that fire.
    pub firing_groups: u32,
    /// Set in the demo, until the user closes the tour.
    pub tour: Option<TourLinks>,
    /// Revisions that the first HTML shows at least.
    pub revisions: Revisions,
}

/// Pages of the demo that its tour leads to, by URL path and query.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TourLinks {
    /// A search over all backends.
    pub find: String,
    /// A lock with a queue.
    pub understand: String,
    /// The review of a forced unlock of a lock that is held for the whole demo.
    pub break_safely: String,
    /// A rule that fires in the demo.
    pub alert: String,
}

impl Session {
    /// For consoles without authentication, such as the design gallery.
    pub fn open() -> Self {
        Self {
            permissions: vec![Permission::View, Permission::AuditRead],
            ..Self::default()
        }
    }

    pub fn may(&self, permission: Permission) -> bool {
        self.permissions.contains(&permission)
    }

    /// Whether the caller may see any page besides the sign-in.
    pub fn is_signed_in(&self) -> bool {
        self.user.is_some() || !self.permissions.is_empty()
    }
}

/// Reason why a page shows a refusal in place of its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Refusal {
    /// The label of the missing permission.
    Forbidden(String),
    /// A form was sent after the session had ended; its input is in the reply.
    SignedOut { sign_in: String },
    /// A page of another site sent the form.
    FromElsewhere,
}

/// Facts that the server serializes into the first HTML in addition to the page's data.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FirstRender {
    pub session: Session,
    pub refusal: Option<Refusal>,
    /// Reply to the form that this page answers.
    pub reply: Option<FormReply>,
}

impl FirstRender {
    /// For consoles without authentication.
    pub fn open() -> Self {
        Self {
            session: Session::open(),
            ..Self::default()
        }
    }
}

impl Encoder<FirstRender> for Payload {
    type Error = PayloadError;
    type Encoded = String;

    fn encode(first: &FirstRender) -> Result<String, PayloadError> {
        codec::to_text(first)
    }
}

impl Decoder<FirstRender> for Payload {
    type Error = PayloadError;
    type Encoded = str;

    fn decode(text: &str) -> Result<FirstRender, PayloadError> {
        codec::from_text(text)
    }
}

/// The session in the app.
#[derive(Debug, Clone, Copy)]
pub struct CurrentSession(RwSignal<Session>);

/// The session of the page. Requires the app, which provides it.
pub fn use_session() -> CurrentSession {
    use_context::<CurrentSession>().unwrap_or_else(|| CurrentSession::new(Session::open()))
}

impl CurrentSession {
    pub fn new(session: Session) -> Self {
        Self(RwSignal::new(session))
    }

    /// Tracked.
    pub fn with<T>(self, read: impl FnOnce(&Session) -> T) -> T {
        self.0.with(read)
    }

    pub fn with_untracked<T>(self, read: impl FnOnce(&Session) -> T) -> T {
        self.0.with_untracked(read)
    }

    /// Tracked.
    pub fn may(self, permission: Permission) -> bool {
        self.0.with(|session| session.may(permission))
    }

    pub fn firing_groups(self) -> u32 {
        self.0.with(|session| session.firing_groups)
    }

    pub(crate) fn close_tour(self) {
        self.0.try_update(|session| session.tour = None);
    }

    /// Applies what an event of the stream says.
    pub(crate) fn update(self, firing_groups: u32, is_alerts_overdue: bool, is_read_only: bool) {
        let is_changed = self.0.try_with_untracked(|session| {
            (
                session.firing_groups,
                session.is_alerts_overdue,
                session.is_read_only,
            ) != (firing_groups, is_alerts_overdue, is_read_only)
        });
        if is_changed == Some(true) {
            self.0.try_update(|session| {
                session.firing_groups = firing_groups;
                session.is_alerts_overdue = is_alerts_overdue;
                session.is_read_only = is_read_only;
            });
        }
    }
}
