//! Files of the browser part: kept for a year below their version, asked for again without one.

use domain::access::Role;
use reqwest::{Client, Response};

use crate::support::{TestServer, on};

async fn get(server: &TestServer, path: &str) -> Response {
    Client::new().get(server.url(path)).send().await.unwrap()
}

fn caching(response: &Response) -> &str {
    response.headers()["cache-control"].to_str().unwrap()
}

/// Path of the style sheet of the overview.
async fn style(server: &TestServer) -> String {
    let bea = server.user("bea", on(Role::Viewer, None, None)).await;
    let page = bea
        .authenticate(Client::new().get(server.url("/")))
        .send()
        .await
        .unwrap();
    let html = page.text().await.unwrap();
    let style = html.split("rel=\"stylesheet\" href=\"").nth(1).unwrap();
    style.split('"').next().unwrap().to_owned()
}

#[tokio::test]
async fn versioned_files_are_kept_without_asking_again() {
    // The site is built by `scripts/site`, a step of `make test`.
    let server = TestServer::builder().start().await;
    let style = style(&server).await;
    let [_, "pkg", version, "leasehold.css"] = style.split('/').collect::<Vec<_>>()[..] else {
        panic!("{style}")
    };
    for file in ["leasehold.css", "leasehold.js", "leasehold_bg.wasm"] {
        let response = get(&server, &format!("/pkg/{version}/{file}")).await;
        assert_eq!(
            response.status(),
            200,
            "{file}: build the browser part with scripts/site"
        );
        assert_eq!(caching(&response), "public, max-age=31536000, immutable");
        assert_eq!(response.headers()["x-content-type-options"], "nosniff");
    }
    // A page of another version of the server gets the present file, and a browser asks for it again.
    let other = "0".repeat(version.len());
    let response = get(&server, &format!("/pkg/{other}/leasehold.css")).await;
    assert_eq!(
        (response.status().as_u16(), caching(&response)),
        (200, "no-cache")
    );
    for path in [
        format!("/pkg/{version}/none.css"),
        format!("/pkg/{version}/../Cargo.toml"),
        format!("/pkg/{version}/a/leasehold.css"),
    ] {
        assert_eq!(get(&server, &path).await.status(), 404, "{path}");
    }
}

#[tokio::test]
async fn a_known_file_is_not_sent_again() {
    let server = TestServer::builder().start().await;
    let first = get(&server, "/favicon.svg").await;
    assert_eq!((first.status().as_u16(), caching(&first)), (200, "no-cache"));
    let again = Client::new()
        .get(server.url("/favicon.svg"))
        .header("if-none-match", &first.headers()["etag"])
        .send()
        .await
        .unwrap();
    assert_eq!((again.status().as_u16(), caching(&again)), (304, "no-cache"));
    assert_eq!(again.text().await.unwrap(), "");
}
