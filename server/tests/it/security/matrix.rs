//! Every route × every role × every tenant, and every route that changes something against other sites. Routes are read
//! from the source of the router, so that a new one without a line in the table of needs fails here.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use domain::access::{Right, Role};
use leasehold::http::access::needs::{Need, TABLE, need};
use reqwest::{Client, Method, StatusCode};

use crate::people::stage::{PASSWORD, Stage, on};

const METHODS: [&str; 6] = ["get", "post", "put", "delete", "patch", "any"];

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

/// What stands between this opening bracket and its closing one.
fn inside(text: &str) -> &str {
    let mut depth = 0;
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' if depth == 1 => return &text[1..at],
            ')' => depth -= 1,
            _ => {}
        }
    }
    panic!("a bracket stays open: {text}")
}

/// `.route("path", get(…).post(…))` and `#[utoipa::path(get, path = "path")]`, of all files under `http`.
fn routed() -> BTreeSet<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut routes = BTreeSet::new();
    for file in sources(&folder.join("http"))
        .into_iter()
        .chain([folder.join("http.rs")])
    {
        if file.ends_with("tests.rs") {
            continue;
        }
        let text = std::fs::read_to_string(&file).unwrap();
        for (at, _) in text.match_indices(".route(") {
            let call = inside(&text[at + ".route".len()..]);
            let Some(path) = call.split('"').nth(1) else {
                panic!("{}: a route whose path is no text: {call}", file.display())
            };
            let handlers = call.split_once(path).unwrap().1;
            let found = METHODS.into_iter().filter(|method| {
                let name = format!("{method}(");
                handlers
                    .match_indices(&name)
                    .any(|(at, _)| !handlers[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_'))
            });
            let found: Vec<_> = found.collect();
            let is_described = handlers.trim() == "\", described";
            assert!(!found.is_empty() || is_described, "{}: {call}", file.display());
            for method in found {
                routes.insert((method.to_uppercase(), path.to_owned()));
            }
        }
        for (at, _) in text.match_indices("#[utoipa::path(") {
            let call = inside(&text[at + "#[utoipa::path".len()..]);
            let method = call.trim().split([',', ' ']).next().unwrap();
            let path = call.split("path = \"").nth(1).unwrap().split('"').next().unwrap();
            routes.insert((method.to_uppercase(), path.to_owned()));
        }
    }
    routes
}

#[tokio::test]
async fn every_route_of_the_source_and_every_page_has_a_line_in_the_table() {
    // What the source routes, what the pages route by themselves; wildcards of the API only say that there is nothing.
    let routes = routed();
    assert!(routes.len() > 55, "{} routes: {routes:#?}", routes.len());
    for (method, path) in &routes {
        if method == "ANY" {
            assert!(path.starts_with("/v1"), "{path}");
            assert_eq!(need(&Method::GET, Some(path)), None, "{path}");
            continue;
        }
        let method = method.parse().unwrap();
        assert!(need(&method, Some(path)).is_some(), "{method} {path} has no line");
    }
    let pages = leptos_axum::generate_route_list(app::app::App);
    assert!(pages.len() >= 4, "{} pages", pages.len());
    for page in pages {
        assert!(
            need(&Method::GET, Some(page.path())).is_some(),
            "{} has no line",
            page.path()
        );
    }
}

#[tokio::test]
async fn every_line_of_the_table_is_a_route() {
    // As an admin of everything: no line leads to nothing, or to another method's place.
    let stage = Stage::start().await;
    let admin = stage.token("admin", on(Role::Admin, None, None)).await;
    for (method, path, _) in TABLE {
        if path.ends_with("/events") || path.starts_with("/api/") {
            continue;
        }
        let url = stage.url(&filled(path, "x"));
        let request = Client::new()
            .request(method.parse().unwrap(), url)
            .bearer_auth(admin.expose());
        let answer = request.send().await.unwrap();
        assert_ne!(answer.status(), StatusCode::METHOD_NOT_ALLOWED, "{method} {path}");
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
async fn each_role_passes_exactly_where_the_table_says_whatever_it_is_cut_to() {
    // Role × route × everything, one tenant, one backend: what is about the whole is not for who has a part.
    let stage = Stage::start().await;
    let http = Client::new();
    for (cut, backend, prefix) in [
        ("all", None, None),
        ("tenant", None, Some("tenant_1:")),
        ("backend", Some("cache"), None),
    ] {
        for role in Role::ALL {
            let name = format!("{}-{cut}", role.wire());
            let token = stage.token(&name, on(role, backend, prefix)).await;
            for (method, path, need) in TABLE {
                // Streams do not end by themselves.
                if path.ends_with("/events") {
                    continue;
                }
                let request = http.request(method.parse().unwrap(), stage.url(&filled(path, "x")));
                let answer = request.bearer_auth(token.expose()).send().await.unwrap();
                let status = answer.status();
                let may = match need {
                    Need::Nobody | Need::Somebody => true,
                    Need::May(right) => {
                        let is_whole = *right == Right::Administer;
                        role.rights().contains(right) && (cut == "all" || !is_whole)
                    }
                };
                let text = answer.text().await.unwrap();
                // To a program and as a page.
                let words = ["This needs the right", "This page is not for your role"];
                let is_refused =
                    status == StatusCode::FORBIDDEN && words.iter().any(|words| text.contains(words));
                assert_eq!(!is_refused, may, "{name} {method} {path}: {status}");
                assert_ne!(status, StatusCode::UNAUTHORIZED, "{name} {method} {path}");
            }
        }
    }
}

#[tokio::test]
async fn other_sites_cannot_change_anything_with_somebodys_cookie_on_any_route() {
    // Every line that is no GET, with an admin's session: cross-site, same-site, a foreign origin, no readable one.
    let stage = Stage::start().await;
    stage.person("root", on(Role::Admin, None, None)).await;
    let browser = stage.signed_in("root").await;
    let mut tried = 0;
    for (method, path, _) in TABLE.iter().filter(|(method, ..)| *method != "GET") {
        for from in [
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-site", "same-site"),
            ("origin", "https://evil.example"),
            ("origin", "null"),
        ] {
            let answer = browser
                .send(method.parse().unwrap(), &filled(path, "x"), &[from])
                .await;
            assert_eq!(answer.status(), StatusCode::FORBIDDEN, "{method} {path} {from:?}");
            let text = answer.text().await.unwrap();
            assert!(
                text.contains("comes from another site"),
                "{method} {path}: {text}"
            );
            tried += 1;
        }
    }
    assert!(tried > 100, "{tried}");
    assert_eq!(browser.get("/").await.status(), StatusCode::OK, "still signed in");
    let rows = stage.record().await;
    let refused = rows.iter().filter(|row| row.outcome == "cross_site").count();
    assert_eq!(refused, tried);
    assert_ne!(PASSWORD, "");
}

#[tokio::test]
async fn nothing_is_changed_by_looking() {
    // Every GET of the table, as an admin, and the record, people and tokens are as before.
    let stage = Stage::start().await;
    stage.person("root", on(Role::Admin, None, None)).await;
    let browser = stage.signed_in("root").await;
    let before = (stage.record().await.len(), stage.identity().directory().version);
    for (_, path, _) in TABLE.iter().filter(|(method, ..)| *method == "GET") {
        if !path.ends_with("/events") {
            let _answer = browser.get(&filled(path, "x")).await;
        }
    }
    // An answer of a provider that nobody began is a refused sign-in, and that is a row; so is whoever takes the record.
    let after = stage.record().await;
    let changes = after
        .iter()
        .filter(|row| !["LOGIN", "AUDIT_EXPORT"].contains(&row.action.as_str()))
        .count();
    assert_eq!(changes + 1, before.0, "{after:?}");
    assert_eq!(stage.identity().directory().version, before.1);
}
