//! `/docs` in a browser: without foreign resources, readable without a script, for every user who is signed in.

use crate::support::{TestServer, on};
use domain::access::Role;

#[tokio::test]
async fn every_docs_page_is_served_without_foreign_resources() {
    // As a viewer: the index, every page that it links to; no other origin, every script with the nonce of its response.
    let server = TestServer::builder().redis().start().await;
    server.add_user("vera", on(Role::Viewer, None, None)).await;
    let browser = server.signed_in("vera").await;
    let index = browser.get("/docs").await.text().await.unwrap();
    let mut pages: Vec<&str> = index
        .split("href=\"/docs")
        .skip(1)
        .map(|rest| rest.split(['"', '#']).next().unwrap())
        .collect();
    pages.sort_unstable();
    pages.dedup();
    assert!(pages.len() > 25, "{pages:?}");
    for page in pages {
        let path = format!("/docs{page}");
        let answer = browser.get(&path).await;
        assert_eq!(answer.status(), 200, "{path}");
        let policy = answer.headers()["content-security-policy"]
            .to_str()
            .unwrap()
            .to_owned();
        assert!(policy.contains("default-src 'none'"), "{policy}");
        let text = answer.text().await.unwrap();
        for elsewhere in [
            "src=\"http",
            "<link rel=\"stylesheet\" href=\"http",
            "style=\"",
            "@import",
        ] {
            assert!(!text.contains(elsewhere), "{path}: {elsewhere}");
        }
        let nonce = policy
            .split("'nonce-")
            .nth(1)
            .and_then(|rest| rest.split('\'').next())
            .unwrap();
        let with_nonce = format!("nonce=\"{nonce}\"");
        let mut scripts = text
            .split("<script")
            .skip(1)
            .map(|rest| rest.split('>').next().unwrap());
        assert!(scripts.all(|tag| tag.contains(&with_nonce)), "{path}");
        assert!(text.contains("<h1>"), "{path}");
    }
    assert_eq!(browser.get("/docs/nothing").await.status(), 404);
    assert_eq!(browser.get("/docs/api/nothing").await.status(), 404);
    let runbooks = browser.get("/docs/alerts").await.text().await.unwrap();
    assert!(runbooks.contains("id=\"not_renewing\""));
}

#[tokio::test]
async fn every_openapi_operation_is_in_the_reference() {
    // Method and path of each, on the page of its part; the fields of a body with their types.
    let server = TestServer::builder().redis().start().await;
    let token = server.token("reader", on(Role::Viewer, None, None)).await;
    let get = async |path: &str| {
        let request = reqwest::Client::new().get(server.url(path));
        let answer = request.bearer_auth(token.secret()).send().await.unwrap();
        answer.text().await.unwrap()
    };
    let api: serde_json::Value = serde_json::from_str(&get("/v1/openapi.json").await).unwrap();
    let mut operations = 0;
    for (path, calls) in api["paths"].as_object().unwrap() {
        for (method, call) in calls.as_object().unwrap() {
            let part = call["tags"][0].as_str().unwrap();
            let page = get(&format!("/docs/api/{part}")).await;
            let words: Vec<_> = path
                .split(|c: char| !c.is_alphanumeric())
                .filter(|word| !word.is_empty())
                .collect();
            let id = format!("id=\"{method}-{}\"", words.join("-").to_lowercase());
            assert!(page.contains(&id), "{method} {path}: {id}");
            operations += 1;
        }
    }
    assert!(operations > 55, "{operations}");
    let leases = get("/docs/api/leases").await;
    for part in [
        "ttlSeconds",
        "1 to 3600 (configurable).",
        "required",
        "out_of_scope",
        "For the roles client, operator and admin.",
    ] {
        assert!(leases.contains(part), "{part}");
    }
}
