//! Ports and layout data of the pages, for the caller of a request.

use std::future::{self, Future};
use std::sync::Arc;

use app::console::SharedConsole;
use app::live::topics::Revisions;
use app::pages::SharedPageData;
use app::session::Session;
use axum::http::Extensions;
use domain::access::{Permission, Visible};

use super::caller_data::CallerData;
use crate::audit::Origin;
use crate::http::state::{AppState, ConsoleFor, Services};
use crate::identity::Principal;

pub trait PageSource: Clone + Send + Sync + 'static {
    fn console(&self, extensions: &Extensions) -> SharedConsole;

    /// Data besides locks; none where there is no authentication.
    fn page_data(&self, _extensions: &Extensions) -> Option<SharedPageData> {
        None
    }

    fn session(&self, extensions: &Extensions) -> impl Future<Output = Session> + Send;
}

/// Pages without authentication.
impl PageSource for ConsoleFor {
    fn console(&self, extensions: &Extensions) -> SharedConsole {
        self.from_extensions(extensions)
    }

    fn session(&self, _: &Extensions) -> impl Future<Output = Session> + Send {
        future::ready(Session::open())
    }
}

impl PageSource for AppState {
    fn console(&self, extensions: &Extensions) -> SharedConsole {
        self.console.from_extensions(extensions)
    }

    fn page_data(&self, extensions: &Extensions) -> Option<SharedPageData> {
        let who = extensions.get::<Principal>()?.clone();
        let state = self.clone();
        Some(Arc::new(CallerData { state, who }))
    }

    fn session(&self, extensions: &Extensions) -> impl Future<Output = Session> + Send {
        let who = extensions.get::<Principal>().cloned();
        let who = who.unwrap_or_else(|| Principal::anonymous(Origin::default()));
        async move { self.session_of(&who).await }
    }
}

impl Services {
    pub(super) async fn session_of(&self, who: &Principal) -> Session {
        if who.is_anonymous() {
            return Session::default();
        }
        let visible = Visible::to(&who.grants);
        let revisions = self.page_revisions(&visible, Self::activity_for(who)).await;
        let permissions = Permission::ALL
            .into_iter()
            .filter(|permission| who.may_anywhere(*permission));
        let is_stale = who.session.is_some() && !who.is_fresh;
        Session {
            user: Some(who.name().to_owned()),
            permissions: permissions.collect(),
            is_read_only: who.read_only,
            is_alerts_overdue: who.alerts_overdue,
            needs_authentication: is_stale && who.may_anywhere(Permission::Administer),
            firing_groups: revisions.alerts.firing_groups,
            tour: self.auth.demo.as_ref().and_then(|demo| demo.tour_for(who.id())),
            revisions: Revisions {
                // The page's data has it.
                inventory: 0,
                alerts: revisions.alerts.revision,
                activity: revisions.activity,
            },
        }
    }
}
