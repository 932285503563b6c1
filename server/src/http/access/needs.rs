//! What each route needs: the one table. A test walks every route of the router and finds it here.

use std::collections::HashMap;
use std::sync::LazyLock;

use axum::http::Method;
use domain::access::Right;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// Open to everybody: health, signing in, and what the sign-in page looks like.
    Nobody,
    /// Any person or token.
    Somebody,
    /// This right on something at least; the answer is cut to where it holds.
    May(Right),
}

/// Writes an entry of the audit log although it is a GET.
pub const AUDIT_EXPORT: &str = "/v1/audit/export";

/// Method, path as routed, need.
pub type Row = (&'static str, &'static str, Need);

pub const TABLE: &[Row] = &[
    ("GET", "/healthz", Need::Nobody),
    ("GET", "/readyz", Need::Nobody),
    // Whether all of it may be seen is asked there.
    ("GET", "/metrics", Need::May(Right::View)),
    ("GET", "/pkg/{*file}", Need::Nobody),
    ("GET", "/fonts/{*file}", Need::Nobody),
    ("GET", "/favicon.svg", Need::Nobody),
    ("GET", "/sign-in", Need::Nobody),
    ("POST", "/sign-in", Need::Nobody),
    ("GET", "/sign-in/oidc", Need::Nobody),
    ("GET", "/sign-in/oidc/callback", Need::Nobody),
    ("GET", "/setup", Need::Nobody),
    ("POST", "/setup", Need::Nobody),
    ("POST", "/sign-out", Need::Somebody),
    ("GET", "/prove", Need::Somebody),
    ("POST", "/prove", Need::Somebody),
    ("GET", "/v1/openapi.json", Need::Somebody),
    ("GET", "/v1/inventory", Need::May(Right::View)),
    (
        "GET",
        "/v1/inventory/{backend}/{resource}",
        Need::May(Right::View),
    ),
    ("GET", "/v1/prefixes", Need::May(Right::View)),
    ("GET", "/v1/backends", Need::May(Right::View)),
    ("GET", "/v1/contention", Need::May(Right::View)),
    ("GET", "/v1/events", Need::May(Right::View)),
    ("POST", "/v1/locks/acquire", Need::May(Right::Lease)),
    ("POST", "/v1/locks/{leaseId}/renew", Need::May(Right::Lease)),
    ("DELETE", "/v1/locks/{leaseId}", Need::May(Right::Lease)),
    ("GET", "/v1/locks/{leaseId}", Need::May(Right::View)),
    ("GET", "/v1/locks", Need::May(Right::View)),
    ("GET", "/v1/resources/{resource}", Need::May(Right::View)),
    ("GET", "/v1/locks/{leaseId}/events", Need::May(Right::View)),
    ("POST", "/v1/fencing/check", Need::May(Right::Lease)),
    ("POST", "/v1/fencing/rejections", Need::May(Right::Lease)),
    ("POST", "/v1/unlocks", Need::May(Right::Unlock)),
    ("POST", "/v1/unlocks/bulk", Need::May(Right::Unlock)),
    ("POST", "/v1/unlocks/bulk/confirm", Need::May(Right::Unlock)),
    ("GET", "/v1/unlocks/{unlockId}", Need::May(Right::View)),
    ("POST", "/v1/unlocks/{unlockId}/confirm", Need::May(Right::Unlock)),
    (
        "POST",
        "/v1/unlocks/{unlockId}/approve",
        Need::May(Right::Approve),
    ),
    ("POST", "/v1/unlocks/{unlockId}/cancel", Need::May(Right::Unlock)),
    ("POST", "/v1/unlocks/{unlockId}/review", Need::May(Right::Approve)),
    ("GET", "/v1/me", Need::Somebody),
    ("GET", "/v1/roles", Need::Somebody),
    ("GET", "/v1/sessions", Need::Somebody),
    // Others' sessions only with the right; it is asked for there.
    ("DELETE", "/v1/sessions/{id}", Need::Somebody),
    ("GET", "/v1/people", Need::May(Right::Administer)),
    ("POST", "/v1/people", Need::May(Right::Administer)),
    ("PUT", "/v1/people/{id}/grants", Need::May(Right::Administer)),
    ("PUT", "/v1/people/{id}/password", Need::May(Right::Administer)),
    ("POST", "/v1/people/{id}/link", Need::May(Right::Administer)),
    ("POST", "/v1/people/{id}/disable", Need::May(Right::Administer)),
    ("POST", "/v1/people/{id}/enable", Need::May(Right::Administer)),
    ("GET", "/v1/tokens", Need::May(Right::Administer)),
    ("POST", "/v1/tokens", Need::May(Right::Administer)),
    ("DELETE", "/v1/tokens/{id}", Need::May(Right::Administer)),
    ("PUT", "/v1/read-only", Need::May(Right::Administer)),
    ("GET", "/v1/tiers", Need::May(Right::Administer)),
    ("PUT", "/v1/tiers", Need::May(Right::Administer)),
    ("DELETE", "/v1/tiers/{id}", Need::May(Right::Administer)),
    ("GET", "/settings/tiers", Need::May(Right::Administer)),
    ("POST", "/settings/tiers", Need::May(Right::Administer)),
    (
        "POST",
        "/settings/tiers/{id}/remove",
        Need::May(Right::Administer),
    ),
    ("GET", "/v1/receivers", Need::May(Right::Administer)),
    ("POST", "/v1/receivers", Need::May(Right::Administer)),
    ("PUT", "/v1/receivers/{name}", Need::May(Right::Administer)),
    ("DELETE", "/v1/receivers/{name}", Need::May(Right::Administer)),
    ("POST", "/v1/receivers/{name}/test", Need::May(Right::Administer)),
    ("GET", "/v1/notifications", Need::May(Right::Administer)),
    (
        "POST",
        "/v1/notifications/{id}/retry",
        Need::May(Right::Administer),
    ),
    ("GET", "/alerts/receivers", Need::May(Right::Administer)),
    ("POST", "/alerts/receivers", Need::May(Right::Administer)),
    ("GET", "/alerts/receivers/{name}", Need::May(Right::Administer)),
    ("POST", "/alerts/receivers/{name}", Need::May(Right::Administer)),
    (
        "POST",
        "/alerts/receivers/{name}/remove",
        Need::May(Right::Administer),
    ),
    (
        "POST",
        "/alerts/receivers/{name}/test",
        Need::May(Right::Administer),
    ),
    (
        "POST",
        "/alerts/notifications/{id}/retry",
        Need::May(Right::Administer),
    ),
    ("GET", "/v1/alerts", Need::May(Right::View)),
    ("POST", "/v1/alerts/{id}/ack", Need::May(Right::Unlock)),
    ("GET", "/v1/rules", Need::May(Right::View)),
    ("PUT", "/v1/rules", Need::May(Right::Administer)),
    ("DELETE", "/v1/rules/{id}", Need::May(Right::Administer)),
    ("POST", "/v1/rules/preview", Need::May(Right::Administer)),
    ("GET", "/v1/silences", Need::May(Right::View)),
    ("POST", "/v1/silences", Need::May(Right::Unlock)),
    ("DELETE", "/v1/silences/{id}", Need::May(Right::Unlock)),
    ("GET", "/alerts", Need::May(Right::View)),
    ("POST", "/alerts/{id}/ack", Need::May(Right::Unlock)),
    ("GET", "/alerts/rules/new", Need::May(Right::View)),
    ("GET", "/alerts/rules/{id}", Need::May(Right::View)),
    ("POST", "/alerts/rules", Need::May(Right::Administer)),
    ("POST", "/alerts/rules/{id}/remove", Need::May(Right::Administer)),
    ("GET", "/alerts/silences/new", Need::May(Right::View)),
    ("POST", "/alerts/silences", Need::May(Right::Unlock)),
    ("POST", "/alerts/silences/{id}/end", Need::May(Right::Unlock)),
    ("GET", "/docs", Need::Somebody),
    ("GET", "/docs/alerts", Need::Somebody),
    ("GET", "/docs/api/{part}", Need::Somebody),
    ("GET", "/docs/{page}", Need::Somebody),
    ("GET", "/v1/audit", Need::May(Right::AuditRead)),
    ("GET", AUDIT_EXPORT, Need::May(Right::AuditRead)),
    ("GET", "/audit", Need::May(Right::AuditRead)),
    ("GET", "/audit/{id}", Need::May(Right::AuditRead)),
    ("POST", "/audit/unlocks/{id}/review", Need::May(Right::Approve)),
    ("GET", "/settings", Need::Somebody),
    ("POST", "/settings/password", Need::Somebody),
    ("GET", "/settings/roles", Need::Somebody),
    ("GET", "/settings/people", Need::May(Right::Administer)),
    ("POST", "/settings/people", Need::May(Right::Administer)),
    ("GET", "/settings/people/{id}", Need::May(Right::Administer)),
    (
        "POST",
        "/settings/people/{id}/grants",
        Need::May(Right::Administer),
    ),
    ("POST", "/settings/people/{id}/link", Need::May(Right::Administer)),
    (
        "POST",
        "/settings/people/{id}/disable",
        Need::May(Right::Administer),
    ),
    (
        "POST",
        "/settings/people/{id}/enable",
        Need::May(Right::Administer),
    ),
    ("GET", "/settings/tokens", Need::May(Right::Administer)),
    ("POST", "/settings/tokens", Need::May(Right::Administer)),
    (
        "POST",
        "/settings/tokens/{id}/revoke",
        Need::May(Right::Administer),
    ),
    ("GET", "/settings/sessions", Need::May(Right::Administer)),
    ("POST", "/settings/sessions/{id}/end", Need::Somebody),
    ("GET", "/", Need::May(Right::View)),
    ("GET", "/locks", Need::May(Right::View)),
    ("GET", "/locks/{backend}/{*resource}", Need::May(Right::View)),
    ("GET", "/backends", Need::May(Right::View)),
    ("GET", "/contention", Need::May(Right::View)),
    ("GET", "/fencing", Need::May(Right::View)),
    // Whoever may not unlock is told so there.
    ("GET", "/unlock/{backend}/{*resource}", Need::May(Right::View)),
    ("POST", "/unlock/{backend}/{*resource}", Need::May(Right::Unlock)),
    ("GET", "/unlocks", Need::May(Right::Unlock)),
    ("POST", "/unlocks", Need::May(Right::Unlock)),
    ("GET", "/unlocks/several", Need::May(Right::View)),
    ("POST", "/unlocks/several", Need::May(Right::Unlock)),
    ("GET", "/unlocks/{unlock_id}", Need::May(Right::View)),
    ("POST", "/unlocks/{unlock_id}/confirm", Need::May(Right::Unlock)),
    ("POST", "/unlocks/{unlock_id}/approve", Need::May(Right::Approve)),
    ("POST", "/unlocks/{unlock_id}/cancel", Need::May(Right::Unlock)),
    ("POST", "/unlocks/{unlock_id}/review", Need::May(Right::Approve)),
    ("POST", "/unlocks/{unlock_id}/prove", Need::May(Right::Unlock)),
    // The pages' own questions. All of them read.
    ("GET", "/api/{question}", Need::May(Right::View)),
];

/// Routes of admins that need no fresh authentication: they change neither users, tokens, tiers nor receivers.
const NOT_FRESH: [&str; 10] = [
    "/v1/read-only",
    "/v1/rules",
    "/v1/rules/{id}",
    "/v1/rules/preview",
    "/alerts/rules",
    "/alerts/rules/{id}/remove",
    "/v1/receivers/{name}/test",
    "/alerts/receivers/{name}/test",
    "/v1/notifications/{id}/retry",
    "/alerts/notifications/{id}/retry",
];

/// A change by an admin: a session must have authenticated within the last 15 minutes. A new route does, unless it is named.
fn needs_fresh((method, pattern, need): &Row) -> bool {
    *method != "GET" && *need == Need::May(Right::Administer) && !NOT_FRESH.contains(pattern)
}

/// What the table says of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    /// As the table writes it, for metrics: never what was asked for.
    pub pattern: &'static str,
    /// None: there is no such route, or nobody has said what it needs.
    pub need: Option<Need>,
    /// Sessions must be fresh.
    pub is_for_fresh: bool,
    /// With this method or some other.
    pub is_known: bool,
}

/// The rows of each path that the table names: going through all of it took a hundredth of a lease's way.
static ROWS: LazyLock<HashMap<&'static str, Vec<&'static Row>>> = LazyLock::new(|| {
    let paths = TABLE.iter().map(|(_, path, _)| *path);
    paths.map(|path| (path, rows_of(path).collect())).collect()
});

fn rows_of(path: &str) -> impl Iterator<Item = &'static Row> {
    TABLE.iter().filter(move |(_, pattern, _)| is_same(pattern, path))
}

/// What the table says; `matched` is the path as it was routed.
pub fn find(method: &Method, matched: Option<&str>) -> Route {
    let Some(path) = matched else {
        return Route {
            pattern: "no route",
            // Pages that are not there are told so to people who are signed in.
            need: method.is_safe().then_some(Need::Somebody),
            is_for_fresh: false,
            is_known: false,
        };
    };
    let method = if *method == Method::HEAD {
        "GET"
    } else {
        method.as_str()
    };
    match ROWS.get(path) {
        Some(rows) => of_rows(rows.iter().copied(), method),
        // Its parameters have other names.
        None => of_rows(rows_of(path), method),
    }
}

fn of_rows(rows: impl Iterator<Item = &'static Row>, method: &str) -> Route {
    let mut route = Route {
        pattern: "no route",
        need: None,
        is_for_fresh: false,
        is_known: false,
    };
    for row in rows {
        let (own, pattern, need) = row;
        if !route.is_known {
            route.pattern = pattern;
            route.is_known = true;
        }
        if *own == method {
            route.need = Some(*need);
            route.is_for_fresh = needs_fresh(row);
            break;
        }
    }
    route
}

/// What a request needs: see [`find`].
pub fn need(method: &Method, matched: Option<&str>) -> Option<Need> {
    find(method, matched).need
}

/// The same path, whatever its parameters are called.
fn is_same(pattern: &str, path: &str) -> bool {
    // Most of the table is told apart by what stands before the first parameter.
    let fixed = pattern.find('{').unwrap_or(pattern.len());
    if !path.as_bytes().starts_with(&pattern.as_bytes()[..fixed]) {
        return false;
    }
    let mut ours = pattern.split('/');
    let mut theirs = path.split('/');
    loop {
        match (ours.next(), theirs.next()) {
            (None, None) => return true,
            (Some(ours), Some(theirs)) if ours == theirs || ours.starts_with('{') => {}
            _ => return false,
        }
    }
}

/// The page on which the form of this address stands: the nearest above it that can be looked at.
pub fn page_above(path: &str) -> &str {
    let mut above = path;
    while let Some((shorter, _)) = above.rsplit_once('/') {
        above = shorter;
        let is_page = |(method, pattern, _): &Row| *method == "GET" && is_same(pattern, above);
        if TABLE.iter().any(is_page) {
            return above;
        }
    }
    "/"
}

/// People look at it, so who is not signed in is led to the sign-in page.
pub fn is_page(path: &str) -> bool {
    !path.starts_with("/v1/") && !path.starts_with("/api/") && path != "/metrics"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_that_is_not_in_the_table_is_refused() {
        // Another method of a known path, an unknown path, a longer one; and what is known is found by any name.
        let need = |method, path| need(&method, Some(path));
        assert_eq!(need(Method::POST, "/v1/inventory"), None);
        assert_eq!(need(Method::GET, "/v1/secrets"), None);
        assert_eq!(need(Method::GET, "/v1/locks/{id}/events/more"), None);
        assert_eq!(need(Method::GET, "/v1/locks/{id}"), Some(Need::May(Right::View)));
        assert_eq!(need(Method::HEAD, "/healthz"), Some(Need::Nobody));
    }

    #[test]
    fn a_form_that_is_no_page_has_one_above_it() {
        // Of a page, of a row in a list, of a thing with a page of its own, of every page; then all that the table names.
        assert_eq!(page_above("/alerts/silences"), "/alerts");
        assert_eq!(page_above("/settings/tiers/t_1/remove"), "/settings/tiers");
        assert_eq!(page_above("/unlocks/u_1/confirm"), "/unlocks/u_1");
        assert_eq!(page_above("/sign-out"), "/");
        for (method, path, _) in TABLE {
            if *method == "POST" && is_page(path) {
                let page = need(&Method::GET, Some(page_above(path)));
                assert!(page.is_some_and(|need| need != Need::Nobody), "{path}");
            }
        }
    }

    #[test]
    fn changes_by_admins_are_for_fresh_sessions_unless_named() {
        // Each exception is a line of the table, and reading is none of it.
        let is_fresh = |method, path| find(&method, Some(path)).is_for_fresh;
        assert!(is_fresh(Method::POST, "/settings/people/{id}/grants"));
        assert!(is_fresh(Method::DELETE, "/v1/tiers/{id}") && is_fresh(Method::PUT, "/v1/receivers/{name}"));
        assert!(!is_fresh(Method::GET, "/settings/people") && !is_fresh(Method::PUT, "/v1/read-only"));
        for named in NOT_FRESH {
            assert!(TABLE.iter().any(|(_, path, _)| *path == named), "{named}");
        }
    }

    #[test]
    fn whatever_changes_something_needs_a_right_that_mutates_or_is_about_signing_in() {
        // Reading the table itself: no mutating GET, no mutation by looking alone.
        for (method, path, need) in TABLE {
            // One's own affairs: they need nothing but oneself.
            let own = [
                "/settings/password",
                "/settings/sessions/{id}/end",
                "/v1/sessions/{id}",
                "/prove",
            ];
            let is_sign_in = ["/sign-in", "/sign-out", "/setup"].contains(path) || own.contains(path);
            match need {
                Need::May(right) => assert!(*method == "GET" || right.mutates(), "{method} {path}"),
                Need::Nobody | Need::Somebody => assert!(*method == "GET" || is_sign_in, "{method} {path}"),
            }
        }
    }
}
