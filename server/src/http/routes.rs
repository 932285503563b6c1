//! The table of all routes: method, path, who may call it, handler.
//!
//! **Invariant:** the router is built from this table alone, and the authentication layer refuses what it does not name.
//! Changes by admins need a fresh session, unless the row ends with `any_session`.

use std::sync::{Arc, LazyLock};

use ::lease::LeaseService;
use axum::Router;
use axum::extract::FromRef;
use axum::routing::{MethodFilter, on};
use domain::access::Permission::{Administer, Approve, AuditRead, Lease, Unlock, View};
use utoipa::OpenApi as _;
use utoipa::openapi::OpenApi;
use utoipa_axum::router::OpenApiRouter;

use super::auth::route_permissions::Access::{May, Public, SignedIn};
use super::auth::route_permissions::RouteRow;
use super::state::AppState;
use super::{
    alerts, audit, contention, events, fencing, health, inventory, lease, metrics, openapi, pages,
    protected_prefixes, receivers, sessions, tokens, unlock, users, waits,
};

/// A GET that writes an audit entry, so other sites must not cause it.
pub(super) const AUDIT_EXPORT: &str = "/v1/audit/export";
/// Opened again by every tab, also by hidden ones: no use of the session.
pub(super) const EVENTS: &str = "/v1/events";

/// `api` rows are in the OpenAPI document, and their handlers repeat method and path for it; `lease` rows are such rows
/// that need the lease service alone. `page` rows are handlers alone. `leptos` rows are routed in `pages.rs`; after the path of
/// a page are those of its server functions, which need the same permission.
macro_rules! routes {
    ($($method:ident $path:literal $(, $function:literal)* => $access:expr, $kind:ident $(($($handler:tt)+))? $(, $session:ident)?;)+) => {
        pub const TABLE: &[RouteRow] = &[$(
            RouteRow {
                method: stringify!($method),
                path: $path,
                access: $access,
                any_session: routes!(@session $($session)?),
            },
            $(RouteRow {
                method: "GET",
                path: $function,
                access: $access,
                any_session: false,
            },)*
        )+];

        fn mount(router: OpenApiRouter<AppState>) -> OpenApiRouter<AppState> {
            $(let router = routes!(@$kind router, $method $path $(, $($handler)+)?);)+
            router
        }

        /// The `lease` rows.
        pub(super) fn mount_lease<S>(router: OpenApiRouter<S>) -> OpenApiRouter<S>
        where
            S: Clone + Send + Sync + 'static,
            Arc<LeaseService>: FromRef<S>,
        {
            $(let router = routes!(@only_lease $kind router $(, $($handler)+)?);)+
            router
        }
    };
    (@session) => { false };
    (@session any_session) => { true };
    (@api $router:ident, $method:ident $path:literal, $($handler:tt)+) => {
        $router.routes(utoipa_axum::routes!($($handler)+))
    };
    (@lease $router:ident, $method:ident $path:literal, $($handler:tt)+) => {
        $router.routes(utoipa_axum::routes!($($handler)+))
    };
    (@only_lease lease $router:ident, $($handler:tt)+) => {
        $router.routes(utoipa_axum::routes!($($handler)+))
    };
    (@only_lease $kind:ident $router:ident $(, $($handler:tt)+)?) => { $router };
    (@page $router:ident, $method:ident $path:literal, $($handler:tt)+) => {
        $router.route($path, on(MethodFilter::$method, $($handler)+))
    };
    (@leptos $router:ident, $method:ident $path:literal) => { $router };
}

routes! {
    // Health and metrics.
    GET "/healthz" => Public, api(health::alive);
    GET "/readyz" => Public, api(health::ready);
    // The handler refuses principals that may not see every lock.
    GET "/metrics" => May(View), api(metrics::scrape);
    GET "/v1/openapi.json" => SignedIn, page(openapi::document);

    // Lease API.
    POST "/v1/locks/acquire" => May(Lease), lease(lease::acquire::acquire);
    POST "/v1/locks/batch" => May(Lease), lease(lease::batch::batch);
    POST "/v1/locks/{leaseId}/renew" => May(Lease), lease(lease::renew::renew);
    DELETE "/v1/locks/{leaseId}" => May(Lease), lease(lease::release::release);
    GET "/v1/locks/{leaseId}" => May(View), lease(lease::read::lease);
    GET "/v1/locks" => May(View), lease(lease::read::list);
    GET "/v1/resources/{resource}" => May(View), lease(lease::read::resource);
    GET "/v1/locks/{leaseId}/events" => May(View), lease(lease::events::events);
    POST "/v1/fencing/check" => May(Lease), lease(fencing::check);
    POST "/v1/fencing/rejections" => May(Lease), lease(fencing::report);

    // Inventory API.
    GET "/v1/inventory" => May(View), api(inventory::list);
    GET "/v1/inventory/{backend}/{resource}" => May(View), api(inventory::detail);
    GET "/v1/prefixes" => May(View), api(inventory::prefixes);
    GET "/v1/backends" => May(View), api(inventory::backends);
    GET "/v1/contention" => May(View), api(contention::list);
    GET "/v1/waits" => May(View), api(waits::list);
    GET "/v1/events" => May(View), api(events::stream);

    // Unlocks API.
    POST "/v1/unlocks" => May(Unlock), api(unlock::begin);
    POST "/v1/unlocks/bulk" => May(Unlock), api(unlock::bulk::begin);
    POST "/v1/unlocks/bulk/confirm" => May(Unlock), api(unlock::bulk::confirm);
    GET "/v1/unlocks/{unlockId}" => May(View), api(unlock::read);
    POST "/v1/unlocks/{unlockId}/confirm" => May(Unlock), api(unlock::confirm);
    POST "/v1/unlocks/{unlockId}/approve" => May(Approve), api(unlock::approve);
    POST "/v1/unlocks/{unlockId}/cancel" => May(Unlock), api(unlock::cancel);
    POST "/v1/unlocks/{unlockId}/review" => May(Approve), api(unlock::review);
    GET "/v1/protected-prefixes" => May(Administer), api(protected_prefixes::list);
    PUT "/v1/protected-prefixes" => May(Administer), api(protected_prefixes::set);
    DELETE "/v1/protected-prefixes/{id}" => May(Administer), api(protected_prefixes::remove);

    // Alerts API.
    GET "/v1/receivers" => May(Administer), api(receivers::list);
    POST "/v1/receivers" => May(Administer), api(receivers::add);
    PUT "/v1/receivers/{name}" => May(Administer), api(receivers::change);
    DELETE "/v1/receivers/{name}" => May(Administer), api(receivers::remove);
    POST "/v1/receivers/{name}/test" => May(Administer), api(receivers::try_out), any_session;
    GET "/v1/notifications" => May(Administer), api(receivers::notifications);
    POST "/v1/notifications/{id}/retry" => May(Administer), api(receivers::retry), any_session;
    GET "/v1/alerts" => May(View), api(alerts::list);
    POST "/v1/alerts/{id}/ack" => May(Unlock), api(alerts::ack);
    GET "/v1/rules" => May(View), api(alerts::rules::rules);
    PUT "/v1/rules" => May(Administer), api(alerts::rules::save), any_session;
    DELETE "/v1/rules/{id}" => May(Administer), api(alerts::rules::remove), any_session;
    POST "/v1/rules/preview" => May(Administer), api(alerts::rules::preview), any_session;
    GET "/v1/silences" => May(View), api(alerts::silences);
    POST "/v1/silences" => May(Unlock), api(alerts::silence);
    DELETE "/v1/silences/{id}" => May(Unlock), api(alerts::end);

    // Audit API.
    GET "/v1/audit" => May(AuditRead), api(audit::api::list);
    GET "/v1/audit/export" => May(AuditRead), api(audit::export::export);

    // Users API.
    GET "/v1/me" => SignedIn, api(sessions::me);
    GET "/v1/roles" => SignedIn, api(sessions::roles);
    GET "/v1/sessions" => SignedIn, api(sessions::list);
    // The handler refuses another user's session without `administer`.
    DELETE "/v1/sessions/{id}" => SignedIn, api(sessions::end);
    GET "/v1/users" => May(Administer), api(users::list);
    POST "/v1/users" => May(Administer), api(users::add);
    PUT "/v1/users/{id}/grants" => May(Administer), api(users::set_grants);
    PUT "/v1/users/{id}/password" => May(Administer), api(users::set_password);
    POST "/v1/users/{id}/link" => May(Administer), api(users::make_link);
    POST "/v1/users/{id}/disable" => May(Administer), api(users::disable);
    POST "/v1/users/{id}/enable" => May(Administer), api(users::enable);
    GET "/v1/tokens" => May(Administer), api(tokens::list);
    POST "/v1/tokens" => May(Administer), api(tokens::create);
    DELETE "/v1/tokens/{id}" => May(Administer), api(tokens::revoke);
    PUT "/v1/read-only" => May(Administer), api(sessions::set_read_only);

    // Sign-in.
    GET "/sign-in" => Public, page(pages::sign_in::show);
    POST "/sign-in" => Public, page(pages::sign_in::sign_in);
    GET "/sign-in/oidc" => Public, page(pages::sign_in::oidc::begin);
    GET "/sign-in/oidc/callback" => Public, page(pages::sign_in::oidc::finish);
    GET "/setup" => Public, page(pages::sign_in::show_setup);
    POST "/setup" => Public, page(pages::sign_in::set_up);
    POST "/sign-out" => SignedIn, page(pages::sign_in::sign_out);
    GET "/prove" => SignedIn, page(pages::reauthenticate::show);
    POST "/prove" => SignedIn, page(pages::reauthenticate::submit);

    // Pages: locks and unlocks.
    // Explains the missing permission to users who may not unlock.
    GET "/unlock/{backend}/{*resource}", "/api/unlock-review" => May(View), leptos;
    POST "/unlock/{backend}/{*resource}" => May(Unlock), page(pages::unlock::review::begin);
    GET "/unlocks", "/api/unlock-candidates" => May(Unlock), leptos;
    POST "/unlocks" => May(Unlock), page(pages::unlock::bulk::begin);
    GET "/unlocks/bulk", "/api/bulk-unlocks" => May(View), leptos;
    POST "/unlocks/bulk" => May(Unlock), page(pages::unlock::bulk::confirm);
    GET "/unlocks/{unlock_id}", "/api/unlock" => May(View), leptos;
    POST "/unlocks/{unlock_id}/confirm" => May(Unlock), page(pages::unlock::step::confirm);
    POST "/unlocks/{unlock_id}/approve" => May(Approve), page(pages::unlock::step::approve);
    POST "/unlocks/{unlock_id}/cancel" => May(Unlock), page(pages::unlock::step::cancel);
    POST "/unlocks/{unlock_id}/review" => May(Approve), page(pages::unlock::step::review);
    POST "/unlocks/{unlock_id}/prove" => May(Unlock), page(pages::unlock::step::prove);

    // Pages: alerts.
    GET "/alerts/receivers", "/api/receivers" => May(Administer), leptos;
    POST "/alerts/receivers" => May(Administer), page(pages::receivers::add);
    GET "/alerts/receivers/{name}", "/api/receiver" => May(Administer), leptos;
    POST "/alerts/receivers/{name}" => May(Administer), page(pages::receivers::change);
    POST "/alerts/receivers/{name}/remove" => May(Administer), page(pages::receivers::remove);
    POST "/alerts/receivers/{name}/test" => May(Administer), page(pages::receivers::try_out), any_session;
    POST "/alerts/notifications/{id}/retry" => May(Administer), page(pages::receivers::retry), any_session;
    GET "/alerts", "/api/alerts" => May(View), leptos;
    POST "/alerts/ack" => May(Unlock), page(pages::alerts::ack);
    POST "/alerts/unack" => May(Unlock), page(pages::alerts::unack);
    GET "/alerts/rules/new" => May(View), leptos;
    GET "/alerts/rules/{id}", "/api/rule" => May(View), leptos;
    GET "/api/rule-preview" => May(Administer), leptos;
    POST "/alerts/rules" => May(Administer), page(pages::alerts::rule::post_rule), any_session;
    POST "/alerts/rules/{id}/remove" => May(Administer), page(pages::alerts::remove), any_session;
    GET "/alerts/silences/new", "/api/silence-preview" => May(View), leptos;
    POST "/alerts/silences" => May(Unlock), page(pages::alerts::silences::post_silence);
    POST "/alerts/silences/{id}/end" => May(Unlock), page(pages::alerts::end);
    POST "/alerts/silences/{id}/extend" => May(Unlock), page(pages::alerts::extend);

    // Pages: audit log.
    GET "/audit", "/api/audit" => May(AuditRead), leptos;
    GET "/audit/{id}", "/api/audit-entry" => May(AuditRead), leptos;
    POST "/audit/unlocks/{id}/review" => May(Approve), page(pages::audit::review::review);

    // Pages: settings.
    GET "/settings/protected-prefixes", "/api/protected-prefixes" => May(Administer), leptos;
    POST "/settings/protected-prefixes" => May(Administer), page(pages::settings::protected_prefixes::set);
    POST "/settings/protected-prefixes/read-only" => May(Administer), page(pages::settings::protected_prefixes::set_read_only);
    POST "/settings/protected-prefixes/{id}/remove" => May(Administer), page(pages::settings::protected_prefixes::remove);
    GET "/settings", "/api/account" => SignedIn, leptos;
    POST "/settings/password" => SignedIn, page(pages::settings::account::change_password);
    GET "/settings/roles" => SignedIn, leptos;
    GET "/settings/users", "/api/users" => May(Administer), leptos;
    POST "/settings/users" => May(Administer), page(pages::settings::users::add);
    GET "/settings/users/{id}", "/api/user" => May(Administer), leptos;
    POST "/settings/users/{id}/grants" => May(Administer), page(pages::settings::user::set_grants);
    POST "/settings/users/{id}/link" => May(Administer), page(pages::settings::user::make_link);
    POST "/settings/users/{id}/disable" => May(Administer), page(pages::settings::user::disable);
    POST "/settings/users/{id}/enable" => May(Administer), page(pages::settings::user::enable);
    GET "/settings/tokens", "/api/tokens" => May(Administer), leptos;
    POST "/settings/tokens" => May(Administer), page(pages::settings::tokens::create);
    POST "/settings/tokens/{id}/revoke" => May(Administer), page(pages::settings::tokens::revoke);
    GET "/settings/sessions", "/api/sessions" => May(Administer), leptos;
    POST "/settings/sessions/{id}/end" => SignedIn, page(pages::settings::sessions::end);

    // Pages: documentation.
    GET "/docs", "/api/docs" => SignedIn, leptos;
    GET "/docs/api/{part}" => SignedIn, leptos;
    GET "/docs/{page}" => SignedIn, leptos;

    // Answers in the demo only.
    POST "/tour/dismiss" => SignedIn, page(pages::tour::dismiss);

    // Pages: what is held, where, and who waits.
    GET "/", "/api/overview" => May(View), leptos;
    GET "/locks", "/api/inventory", "/api/prefixes" => May(View), leptos;
    GET "/locks/{backend}/{*resource}", "/api/lock" => May(View), leptos;
    GET "/backends", "/api/backends" => May(View), leptos;
    GET "/contention", "/api/contention" => May(View), leptos;
    GET "/waits", "/api/waits" => May(View), leptos;
    GET "/fencing", "/api/fencing" => May(View), leptos;

    // The static site.
    GET "/pkg/{*file}" => Public, leptos;
    GET "/fonts/{*file}" => Public, leptos;
    GET "/favicon.svg" => Public, leptos;
}

/// Routes of all `api` and `page` rows.
pub(super) fn router() -> Router<AppState> {
    mount(OpenApiRouter::new()).split_for_parts().0
}

/// The OpenAPI document of all `api` rows.
pub(super) static DESCRIPTION: LazyLock<OpenApi> = LazyLock::new(|| {
    mount(OpenApiRouter::with_openapi(openapi::Description::openapi()))
        .split_for_parts()
        .1
});

#[cfg(test)]
mod tests;
