//! Every route × every role × every tenant, and every route that changes something against other sites. A route outside the
//! table fails here.

use crate::support::{PASSWORD, TestServer, on};
use std::path::{Path, PathBuf};

use domain::access::{Permission, Role};
use leasehold::http::auth::route_permissions::{Access, RouteRow, access};
use leasehold::http::routes::TABLE;
use reqwest::{Client, Method};

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(sources(&path));
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            files.push(path);
        }
    }
    files
}

/// Files under `http` that add routes by themselves: the table, what no row names (answered with a problem), the files and
/// pages of the browser half, and the lease API alone, which has no principals.
const ROUTERS: [&str; 4] = ["src/http.rs", "http/routes.rs", "http/pages.rs", "http/lease.rs"];

#[tokio::test]
async fn routes_exist_only_in_the_table_and_every_page_has_a_row() {
    // What the source routes, what the pages route by themselves; wildcards of the API only say that there is nothing.
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let files = sources(&folder.join("http"))
        .into_iter()
        .chain([folder.join("http.rs")]);
    let mut read = 0;
    for file in files.filter(|file| !ROUTERS.iter().any(|router| file.ends_with(router))) {
        let text = std::fs::read_to_string(&file).unwrap();
        let adds = [".route(", ".routes(", ".nest(", ".route_service("];
        assert!(!adds.iter().any(|call| text.contains(call)), "{}", file.display());
        read += 1;
    }
    assert!(read > 50, "{read} files");
    for path in ["/v1", "/v1/", "/v1/{*rest}"] {
        assert_eq!(access(&Method::GET, Some(path)), None, "{path}");
    }
    let pages = leptos_axum::generate_route_list(app::app::App);
    assert!(pages.len() >= 4, "{} pages", pages.len());
    for page in pages {
        assert!(
            access(&Method::GET, Some(page.path())).is_some(),
            "{} has no row",
            page.path()
        );
    }
    // A function without a row would be refused.
    for (path, method) in leptos::server_fn::axum::server_fn_paths() {
        assert!(access(&method, Some(path)).is_some(), "{path} has no row");
    }
}

#[tokio::test]
async fn every_entry_of_the_table_is_a_route() {
    // As an admin of everything: no line leads to nothing, or to another method's place.
    let server = TestServer::builder().redis().start().await;
    let admin = server.token("admin", on(Role::Admin, None, None)).await;
    let http = Client::new();
    for RouteRow { method, path, .. } in TABLE {
        if path.ends_with("/events") || path.starts_with("/api/") {
            continue;
        }
        let url = server.url(&filled(path, "x"));
        let request = http.request(method.parse().unwrap(), url);
        let answer = request.bearer_auth(admin.secret()).send().await.unwrap();
        assert_ne!(answer.status(), 405, "{method} {path}");
        let text = answer.text().await.unwrap();
        assert!(!text.contains("no_such_route"), "{method} {path}: {text}");
    }
}

/// The path with this word for each of its parameters.
fn filled(path: &str, word: &str) -> String {
    let parts = path.split('/').map(|part| match part.starts_with('{') {
        true => word,
        false => part,
    });
    parts.collect::<Vec<_>>().join("/")
}

#[tokio::test]
async fn each_role_passes_exactly_as_in_the_table() {
    // Role × route × everything, one tenant, one backend: a limited grant gives no permission on the whole console.
    let server = TestServer::builder().redis().start().await;
    let http = Client::new();
    for (cut, backend, prefix) in [
        ("all", None, None),
        ("tenant", None, Some("tenant_1:")),
        ("backend", Some("cache"), None),
    ] {
        for role in Role::ALL {
            let name = format!("{}-{cut}", role.as_str());
            let token = server.token(&name, on(role, backend, prefix)).await;
            for RouteRow {
                method, path, access, ..
            } in TABLE
            {
                // Streams do not end by themselves.
                if path.ends_with("/events") {
                    continue;
                }
                let request = http.request(method.parse().unwrap(), server.url(&filled(path, "x")));
                let answer = request.bearer_auth(token.secret()).send().await.unwrap();
                let status = answer.status();
                let may = match access {
                    Access::Public | Access::SignedIn => true,
                    Access::May(right) => {
                        let is_whole = *right == Permission::Administer;
                        role.rights().contains(right) && (cut == "all" || !is_whole)
                    }
                };
                let text = answer.text().await.unwrap();
                // To a program and as a page.
                let words = [
                    "This needs the permission",
                    "Your role does not have the permission for this page",
                ];
                let is_refused = status == 403 && words.iter().any(|words| text.contains(words));
                assert_eq!(!is_refused, may, "{name} {method} {path}: {status}");
                assert_ne!(status, 401, "{name} {method} {path}");
            }
        }
    }
}

#[tokio::test]
async fn cross_site_requests_with_a_cookie_change_nothing() {
    // Every line that is no GET, with an admin's session: cross-site, same-site, a foreign origin, no readable one.
    let server = TestServer::builder().redis().start().await;
    server.add_user("root", on(Role::Admin, None, None)).await;
    let browser = server.signed_in("root").await;
    let mut tried: u64 = 0;
    for RouteRow { method, path, .. } in TABLE.iter().filter(|row| row.method != "GET") {
        for from in [
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-site", "same-site"),
            ("origin", "https://evil.example"),
            ("origin", "null"),
        ] {
            let answer = browser
                .send(method.parse().unwrap(), &filled(path, "x"), &[from])
                .await;
            assert_eq!(answer.status(), 403, "{method} {path} {from:?}");
            let text = answer.text().await.unwrap();
            assert!(
                text.contains("comes from another site"),
                "{method} {path}: {text}"
            );
            tried += 1;
        }
    }
    assert!(tried > 100, "{tried}");
    assert_eq!(browser.get("/").await.status(), 200, "still signed in");
    // Beyond a limit for one user they are counted; the counts are written when the server ends.
    let server = server.restart().await;
    assert_eq!(server.rejections_recorded("cross_site").await, tried);
    assert_ne!(PASSWORD, "");
}

#[tokio::test]
async fn get_requests_change_nothing() {
    // Every GET of the table, as an admin, and the audit log, users and tokens are as before.
    let server = TestServer::builder().redis().start().await;
    server.add_user("root", on(Role::Admin, None, None)).await;
    let browser = server.signed_in("root").await;
    let before = (
        server.audit_entries().await.len(),
        server.identity().directory().version,
    );
    for path in TABLE.iter().filter(|row| row.method == "GET").map(|row| row.path) {
        if !path.ends_with("/events") {
            let _answer = browser.get(&filled(path, "x")).await;
        }
    }
    // A forged provider redirect is a refused sign-in, which is audited; so is an export of the audit log.
    let after = server.audit_entries().await;
    let changes = after
        .iter()
        .filter(|row| !["LOGIN", "AUDIT_EXPORT"].contains(&row.action.as_str()))
        .count();
    assert_eq!(changes + 1, before.0, "{after:?}");
    assert_eq!(server.identity().directory().version, before.1);
}
