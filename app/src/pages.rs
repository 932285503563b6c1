//! Declares each page: its module, its place in the navigation, its port, its route.
//!
//! A page's file has the types of its data, its port, its server function and its view. Of a large page, data, port and server
//! function are in `PAGE/data.rs`, and parts of the view in files of their own.

pub mod alerts;
pub mod audit;
pub mod backends;
pub mod contention;
pub mod docs;
pub mod fencing;
pub mod lock;
pub mod locks;
pub mod overview;
pub mod receivers;
pub mod rule_editor;
pub mod settings;
pub mod silence;
pub mod unlock;
pub mod waits;

use std::sync::Arc;

use domain::access::Permission;
use leptos::prelude::*;
use leptos_router::components::{FlatRoutes, Route};
use leptos_router::{SsrMode, path};

use self::alerts::AlertsPage;
use self::alerts::data::AlertsPort;
use self::audit::AuditPage;
use self::audit::data::AuditPort;
use self::audit::entry::AuditEntryPage;
use self::backends::BackendsPage;
use self::contention::ContentionPage;
use self::docs::{DocsPage, DocsPort};
use self::fencing::FencingPage;
use self::lock::LockPage;
use self::locks::LocksPage;
use self::overview::OverviewPage;
use self::receivers::ReceiversPage;
use self::receivers::data::ReceiversPort;
use self::receivers::edit::ReceiverPage;
use self::rule_editor::RuleEditorPage;
use self::rule_editor::data::RuleEditorPort;
use self::settings::account::AccountPage;
use self::settings::data::SettingsPort;
use self::settings::protected_prefixes::ProtectedPrefixesPage;
use self::settings::roles::RolesPage;
use self::settings::sessions::SessionsPage;
use self::settings::tokens::TokensPage;
use self::settings::user::UserPage;
use self::settings::users::UsersPage;
use self::silence::SilencePage;
use self::unlock::bulk::confirm::BulkConfirmPage;
use self::unlock::bulk::select::BulkSelectPage;
use self::unlock::data::UnlockPort;
use self::unlock::review::UnlockReviewPage;
use self::unlock::step::UnlockStepPage;
use self::waits::WaitsPage;
use crate::api::error::set_status;
use crate::components::empty_state::Empty;
use crate::components::title::PageTitle;
use crate::navigation::{NavCount, NavEntry, SettingsEntry, page, section};

/// In the order of the header.
pub const PAGES: [NavEntry; 9] = [
    NavEntry {
        is_tab: true,
        ..page("/", "Overview", 'o', Permission::View)
    },
    NavEntry {
        is_tab: true,
        also: &["/unlock", "/unlocks"],
        count: Some(NavCount::Locks),
        ..page("/locks", "Locks", 'l', Permission::View)
    },
    NavEntry {
        also: &["/waits"],
        ..page("/contention", "Contention", 'c', Permission::View)
    },
    page("/fencing", "Fencing", 'f', Permission::View),
    NavEntry {
        is_tab: true,
        ..page("/backends", "Backends", 'b', Permission::View)
    },
    NavEntry {
        is_tab: true,
        count: Some(NavCount::FiringGroups),
        ..page("/alerts", "Alerts", 'a', Permission::View)
    },
    page("/audit", "Audit", 'u', Permission::AuditRead),
    NavEntry {
        permission: None,
        also: &["/alerts/receivers", "/prove"],
        ..page("/settings", "Settings", 's', Permission::View)
    },
    NavEntry {
        permission: None,
        ..page("/docs", "Docs", 'd', Permission::View)
    },
];

/// The sections of the settings, in the order of their list.
pub const SETTINGS: [SettingsEntry; 7] = [
    SettingsEntry {
        permission: None,
        ..section("/settings", "You", false)
    },
    section("/settings/users", "Users", true),
    section("/settings/tokens", "Tokens", true),
    section("/settings/sessions", "Sessions", false),
    section("/settings/protected-prefixes", "Protected prefixes", true),
    section("/alerts/receivers", "Receivers", true),
    SettingsEntry {
        permission: None,
        ..section("/settings/roles", "Roles", false)
    },
];

/// The ports of pages whose data depends on the caller's permissions beyond locks. The server implements them once per request;
/// a console without an implementation (the design gallery) has locks only, through [`Console`](crate::console::Console).
pub trait PageData:
    AlertsPort + AuditPort + DocsPort + ReceiversPort + RuleEditorPort + SettingsPort + UnlockPort + Send + Sync
{
}

/// Type of the ports in Leptos' context.
pub type SharedPageData = Arc<dyn PageData>;

pub(crate) fn routes() -> AnyView {
    view! {
        // Flat: the old page leaves the document before its state is disposed of.
        <FlatRoutes fallback=|| view! { <NotFound/> }.into_any()>
            <Route path=path!("/") view=OverviewPage ssr=SsrMode::Async/>
            <Route path=path!("/locks") view=LocksPage ssr=SsrMode::Async/>
            <Route path=path!("/locks/:backend/*resource") view=LockPage ssr=SsrMode::Async/>
            <Route path=path!("/contention") view=ContentionPage ssr=SsrMode::Async/>
            <Route path=path!("/waits") view=WaitsPage ssr=SsrMode::Async/>
            <Route path=path!("/fencing") view=FencingPage ssr=SsrMode::Async/>
            <Route path=path!("/backends") view=BackendsPage ssr=SsrMode::Async/>
            <Route path=path!("/alerts") view=AlertsPage ssr=SsrMode::Async/>
            <Route path=path!("/alerts/silences/new") view=SilencePage ssr=SsrMode::Async/>
            <Route path=path!("/alerts/rules/new") view=RuleEditorPage ssr=SsrMode::Async/>
            <Route path=path!("/alerts/rules/:id") view=RuleEditorPage ssr=SsrMode::Async/>
            <Route path=path!("/unlock/:backend/*resource") view=UnlockReviewPage ssr=SsrMode::Async/>
            <Route path=path!("/unlocks") view=BulkSelectPage ssr=SsrMode::Async/>
            <Route path=path!("/unlocks/bulk") view=BulkConfirmPage ssr=SsrMode::Async/>
            <Route path=path!("/unlocks/:unlock_id") view=UnlockStepPage ssr=SsrMode::Async/>
            <Route path=path!("/alerts/receivers") view=ReceiversPage ssr=SsrMode::Async/>
            <Route path=path!("/alerts/receivers/:name") view=ReceiverPage ssr=SsrMode::Async/>
            <Route path=path!("/audit") view=AuditPage ssr=SsrMode::Async/>
            <Route path=path!("/audit/:id") view=AuditEntryPage ssr=SsrMode::Async/>
            <Route path=path!("/docs") view=DocsPage ssr=SsrMode::Async/>
            <Route path=path!("/docs/:page") view=DocsPage ssr=SsrMode::Async/>
            <Route path=path!("/docs/api/:part") view=DocsPage ssr=SsrMode::Async/>
            <Route path=path!("/settings") view=AccountPage ssr=SsrMode::Async/>
            <Route path=path!("/settings/users") view=UsersPage ssr=SsrMode::Async/>
            <Route path=path!("/settings/users/:id") view=UserPage ssr=SsrMode::Async/>
            <Route path=path!("/settings/tokens") view=TokensPage ssr=SsrMode::Async/>
            <Route path=path!("/settings/sessions") view=SessionsPage ssr=SsrMode::Async/>
            <Route path=path!("/settings/protected-prefixes") view=ProtectedPrefixesPage ssr=SsrMode::Async/>
            <Route path=path!("/settings/roles") view=RolesPage ssr=SsrMode::Async/>
        </FlatRoutes>
    }
    .into_any()
}

#[component]
fn NotFound() -> impl IntoView {
    set_status(404);
    view! {
        <PageTitle text="Page not found"/>
        <Empty title="There is no such page" whole=true>
            <p><a class="link" href="/">"Overview"</a>", or "<a class="link" href="/locks">"all locks"</a>"."</p>
        </Empty>
    }
}
