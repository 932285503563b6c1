//! Looks up who may call a route. The table is in `http/routes.rs`.

use std::collections::HashMap;
use std::sync::LazyLock;

use axum::http::Method;
use domain::access::Permission;

use crate::http::routes::TABLE;

/// Principals that may call a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Everyone: health, sign-in, and the files of the sign-in page.
    Public,
    /// Every user and token.
    SignedIn,
    /// Principals with this permission on something; the handler limits its answer to their scope.
    May(Permission),
}

/// A line of the table.
#[derive(Debug, Clone, Copy)]
pub struct RouteRow {
    pub method: &'static str,
    /// As routed, with parameters.
    pub path: &'static str,
    pub access: Access,
    /// A change by an admin that needs no fresh authentication.
    pub any_session: bool,
}

impl RouteRow {
    /// A change by an admin: the session must have authenticated within the last 15 minutes.
    fn needs_fresh(&self) -> bool {
        self.method != "GET" && self.access == Access::May(Permission::Administer) && !self.any_session
    }
}

/// The route of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    /// As in the table, for metrics: never a path from a request.
    pub pattern: &'static str,
    /// `None`: there is no such route, and the request is refused.
    pub access: Option<Access>,
    /// Sessions must be fresh.
    pub is_for_fresh: bool,
    /// The path exists, with this or another method.
    pub is_known: bool,
}

/// The rows of each path. Every request looks up its route, and a search through the whole table would be measurable.
static ROWS: LazyLock<HashMap<&'static str, Vec<&'static RouteRow>>> = LazyLock::new(|| {
    let paths = TABLE.iter().map(|row| row.path);
    paths.map(|path| (path, rows_of(path).collect())).collect()
});

fn rows_of(path: &str) -> impl Iterator<Item = &'static RouteRow> {
    TABLE.iter().filter(move |row| is_same(row.path, path))
}

/// The route of a request; `matched` is the path as routed.
pub fn find(method: &Method, matched: Option<&str>) -> Route {
    let Some(path) = matched else {
        return Route {
            pattern: "no route",
            // Signed-in users get the page for unknown addresses.
            access: method.is_safe().then_some(Access::SignedIn),
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
        Some(rows) => from_rows(rows.iter().copied(), method),
        // Parameters have other names.
        None => from_rows(rows_of(path), method),
    }
}

/// Unknown methods share one attribute value.
pub fn method_of(method: &Method) -> &'static str {
    let known = ["GET", "POST", "PUT", "DELETE", "HEAD", "PATCH", "OPTIONS"];
    known
        .into_iter()
        .find(|known_method| *known_method == method.as_str())
        .unwrap_or("_OTHER")
}

fn from_rows(rows: impl Iterator<Item = &'static RouteRow>, method: &str) -> Route {
    let mut route = Route {
        pattern: "no route",
        access: None,
        is_for_fresh: false,
        is_known: false,
    };
    for row in rows {
        if !route.is_known {
            route.pattern = row.path;
            route.is_known = true;
        }
        if row.method == method {
            route.access = Some(row.access);
            route.is_for_fresh = row.needs_fresh();
            break;
        }
    }
    route
}

/// Who may send a request: see [`find`].
pub fn access(method: &Method, matched: Option<&str>) -> Option<Access> {
    find(method, matched).access
}

/// The same path, with other names of parameters.
fn is_same(pattern: &str, path: &str) -> bool {
    // The part before the first parameter rules most rows out.
    let fixed = pattern.find('{').unwrap_or(pattern.len());
    if !path.as_bytes().starts_with(&pattern.as_bytes()[..fixed]) {
        return false;
    }
    let mut expected = pattern.split('/');
    let mut actual = path.split('/');
    loop {
        match (expected.next(), actual.next()) {
            (None, None) => return true,
            (Some(expected), Some(actual)) if expected == actual || expected.starts_with('{') => {}
            _ => return false,
        }
    }
}

/// The page of the form with this address: the nearest GET route above it.
pub fn page_above(path: &str) -> &str {
    let mut candidate = path;
    while let Some((shorter, _)) = candidate.rsplit_once('/') {
        candidate = shorter;
        let is_page = |row: &RouteRow| row.method == "GET" && is_same(row.path, candidate);
        if TABLE.iter().any(is_page) {
            return candidate;
        }
    }
    "/"
}

/// The page of a form: its own path where that is a page too, else the nearest page above it. `matched` is the path as
/// routed.
pub fn page_of<'a>(matched: Option<&str>, path: &'a str) -> &'a str {
    let is_page = matched.is_some_and(|matched| rows_of(matched).any(|row| row.method == "GET"));
    if is_page { path } else { page_above(path) }
}

/// Whether the pages' router reads a path as it is routed here. It resolves `.` and `..` and takes `\` for `/`, like a
/// browser, and the first part after `//` for a host: other paths would be checked as one page and rendered as another.
pub fn is_normalized(path: &str) -> bool {
    let is_dots = |segment: &str| {
        let segment = segment.replace("%2e", ".").replace("%2E", ".");
        segment == "." || segment == ".."
    };
    !path.starts_with("//") && !path.contains('\\') && !path.split('/').any(is_dots)
}

/// A page of the console: without a session it redirects to the sign-in page.
pub fn is_page(path: &str) -> bool {
    !path.starts_with("/v1/") && !path.starts_with("/api/") && path != "/metrics"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_that_is_not_in_the_table_is_refused() {
        // Another method of a known path, an unknown path, a longer one; and known routes, whatever their parameters are called.
        let access = |method, path| access(&method, Some(path));
        assert_eq!(access(Method::POST, "/v1/inventory"), None);
        assert_eq!(access(Method::GET, "/v1/secrets"), None);
        assert_eq!(access(Method::GET, "/v1/locks/{id}/events/more"), None);
        assert_eq!(
            access(Method::GET, "/v1/locks/{id}"),
            Some(Access::May(Permission::View))
        );
        assert_eq!(access(Method::HEAD, "/healthz"), Some(Access::Public));
    }

    #[test]
    fn dot_segments_and_backslashes_are_not_normalized() {
        for path in [
            "/",
            "/locks/zk/a..b/.c/...",
            "/locks/zk//x",
            "/locks/zk/%5C..",
            "/locks/zk/..%2Fx",
        ] {
            assert!(is_normalized(path), "{path}");
        }
        for path in [
            "/..",
            "/x/./y",
            "/x/%2e",
            "/x/.%2E/y",
            "/x/%2e%2E/y",
            "/x\\..",
            "/x/..\\y",
            "//x/y",
        ] {
            assert!(!is_normalized(path), "{path}");
        }
    }

    #[test]
    fn every_form_target_has_a_page_above_it() {
        // Forms of a page, of a row in a list, of an object with its own page, of the header; then every form of the table.
        assert_eq!(page_above("/alerts/silences"), "/alerts");
        assert_eq!(
            page_above("/settings/protected-prefixes/t_1/remove"),
            "/settings/protected-prefixes"
        );
        assert_eq!(page_above("/unlocks/u_1/confirm"), "/unlocks/u_1");
        assert_eq!(page_above("/sign-out"), "/");
        for RouteRow { method, path, .. } in TABLE {
            if *method == "POST" && is_page(path) {
                let page = access(&Method::GET, Some(page_above(path)));
                assert!(page.is_some_and(|access| access != Access::Public), "{path}");
            }
        }
    }

    #[test]
    fn admin_changes_need_a_fresh_session_unless_exempt() {
        // Each exception is marked in the table, and reads have none.
        let is_fresh = |method, path| find(&method, Some(path)).is_for_fresh;
        assert!(is_fresh(Method::POST, "/settings/users/{id}/grants"));
        assert!(
            is_fresh(Method::DELETE, "/v1/protected-prefixes/{id}")
                && is_fresh(Method::PUT, "/v1/receivers/{name}")
                && is_fresh(Method::PUT, "/v1/read-only")
        );
        assert!(!is_fresh(Method::GET, "/settings/users") && !is_fresh(Method::PUT, "/v1/rules"));
        for row in TABLE.iter().filter(|row| row.any_session) {
            let is_change = row.method != "GET" && row.access == Access::May(Permission::Administer);
            assert!(is_change, "{}", row.path);
        }
    }

    #[test]
    fn every_mutating_route_needs_a_mutating_permission() {
        // Every row of the table but GETs.
        for RouteRow {
            method, path, access, ..
        } in TABLE
        {
            // The user's own account, sessions and tour: no permission is needed.
            let own_account_routes = [
                "/settings/password",
                "/settings/sessions/{id}/end",
                "/v1/sessions/{id}",
                "/prove",
                "/tour/dismiss",
            ];
            let is_sign_in =
                ["/sign-in", "/sign-out", "/setup"].contains(path) || own_account_routes.contains(path);
            match access {
                Access::May(right) => assert!(*method == "GET" || right.mutates(), "{method} {path}"),
                Access::Public | Access::SignedIn => {
                    assert!(*method == "GET" || is_sign_in, "{method} {path}")
                }
            }
        }
    }
}
