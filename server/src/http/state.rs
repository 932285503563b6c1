//! What handlers share.

use std::convert::Infallible;
use std::sync::Arc;

use app::console::SharedConsole;
use axum::extract::{FromRef, FromRequestParts};
use axum::http::Extensions;
use axum::http::request::Parts;
use domain::access::Visible;
use tokio_util::sync::CancellationToken;

use crate::alerts::Evaluation;
use crate::clock::Clock;
use crate::console::ServerConsole;
use crate::history::History;
use crate::identity::Who;
use crate::inventory::Inventory;
use crate::shutdown::Readiness;

#[derive(Clone, FromRef)]
pub struct AppState {
    pub console: ConsoleFor,
    pub inventory: Arc<Inventory>,
    pub history: Arc<History>,
    pub clock: Clock,
    pub readiness: Arc<Readiness>,
    pub evaluation: Arc<Evaluation>,
    /// Ends open event streams, which graceful shutdown would wait for.
    pub stop: CancellationToken,
}

type Cut = dyn Fn(Option<&Who>) -> SharedConsole + Send + Sync;

/// The console, as far as whoever asks may see. Cheap to clone.
#[derive(Clone)]
pub struct ConsoleFor(Arc<Cut>);

impl ConsoleFor {
    /// The same for everybody: where nobody has to sign in.
    pub fn everybody(console: SharedConsole) -> Self {
        Self(Arc::new(move |_| console.clone()))
    }

    /// Cut to what the caller may see; who is not known sees nothing.
    pub fn caller(console: ServerConsole) -> Self {
        Self(Arc::new(move |who| Arc::new(console.seen_by(who))))
    }

    pub fn of(&self, extensions: &Extensions) -> SharedConsole {
        (self.0)(extensions.get::<Who>())
    }
}

/// The console for the caller of this request.
pub(super) struct Seen(pub(super) SharedConsole);

impl FromRequestParts<AppState> for Seen {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Infallible> {
        Ok(Self(state.console.of(&parts.extensions)))
    }
}

/// Which names the caller of this request may see. Everything, where nobody has to sign in.
pub(super) struct InSight(pub(super) Visible);

impl<S: Sync> FromRequestParts<S> for InSight {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let who = parts.extensions.get::<Who>();
        Ok(Self(
            who.map_or_else(Visible::default, |who| Visible::to(&who.grants)),
        ))
    }
}
