//! The one state of the application, and the parts of it that handlers ask for by type.

use std::ops::Deref;
use std::sync::Arc;

use app::console::SharedConsole;
use axum::extract::FromRef;
use axum::http::Extensions;
use domain::access::Permission;
use domain::names::BackendName;
use tokio_util::sync::CancellationToken;

use super::auth::Authenticator;
use crate::alerts::Alerts;
use crate::audit::ChainVerifier;
use crate::console::{Searches, ServerConsole};
use crate::history::History;
use crate::identity::{Directory, Principal, Secret};
use crate::notify::Notifier;
use crate::unlock::Unlocks;
use backends::BackendRegistry;
use inventory::Inventory;
use lease::LeaseService;
use runtime::clock::Clock;
use runtime::shutdown::Readiness;

/// Everything that handlers call. One pointer: axum clones it for each request.
#[derive(Clone)]
pub struct AppState(Arc<Services>);

pub struct Services {
    pub auth: Arc<Authenticator>,
    pub console: ConsoleFor,
    /// Searches for locks to unlock: those of other pages do not use up their permits.
    pub unlock_searches: Searches,
    pub inventory: Arc<Inventory>,
    /// The configured backends and the built-in one.
    pub backends: Arc<BackendRegistry>,
    pub history: Arc<History>,
    pub leases: Arc<LeaseService>,
    pub unlocks: Arc<Unlocks>,
    pub notifier: Arc<Notifier>,
    pub alerts: Arc<Alerts>,
    pub chain_verifier: Arc<ChainVerifier>,
    pub clock: Clock,
    pub readiness: Arc<Readiness>,
    /// Ends open event streams, which graceful shutdown would wait for.
    pub stop: CancellationToken,
}

impl AppState {
    pub fn new(services: Services) -> Self {
        Self(Arc::new(services))
    }
}

impl Deref for AppState {
    type Target = Services;

    fn deref(&self) -> &Services {
        &self.0
    }
}

macro_rules! from_ref {
    ($($field:ident: $part:ty,)*) => {
        $(impl FromRef<AppState> for $part {
            fn from_ref(state: &AppState) -> Self {
                state.$field.clone()
            }
        })*
    };
}

from_ref! {
    auth: Arc<Authenticator>,
    console: ConsoleFor,
    leases: Arc<LeaseService>,
    unlocks: Arc<Unlocks>,
    notifier: Arc<Notifier>,
    alerts: Arc<Alerts>,
}

impl Services {
    /// Milliseconds since 1970.
    pub(super) fn now(&self) -> i64 {
        self.clock.now().wall.timestamp_millis()
    }

    pub(super) fn directory(&self) -> Arc<Directory> {
        self.auth.identity.directory()
    }

    /// Names of the backends on which the principal has this permission somewhere.
    pub(super) fn backend_choices(&self, who: &Principal, permission: Permission) -> Vec<String> {
        let is_visible = |name: &String| {
            let name = BackendName::parse(name);
            name.is_ok_and(|name| !who.scope_on(permission, &name).is_nothing())
        };
        let names = self.backends.names();
        names.into_iter().filter(is_visible).collect()
    }

    /// The address that signs a user in once.
    pub(super) fn sign_in_link(&self, secret: &Secret) -> String {
        format!("{}/sign-in?link={}", self.auth.home, secret.expose())
    }
}

type Scoped = dyn Fn(Option<&Principal>) -> SharedConsole + Send + Sync;

/// Makes the console that a principal may see. Cheap to clone.
#[derive(Clone)]
pub struct ConsoleFor(Arc<Scoped>);

impl ConsoleFor {
    /// The same console for every principal: for pages without authentication.
    pub fn same_for_all(console: SharedConsole) -> Self {
        Self(Arc::new(move |_| console.clone()))
    }

    /// Limited to the grants of the principal; without one it shows nothing.
    pub fn caller(console: ServerConsole) -> Self {
        Self(Arc::new(move |who| Arc::new(console.seen_by(who))))
    }

    pub(super) fn principal(&self, who: &Principal) -> SharedConsole {
        (self.0)(Some(who))
    }

    pub fn from_extensions(&self, extensions: &Extensions) -> SharedConsole {
        (self.0)(extensions.get::<Principal>())
    }
}
