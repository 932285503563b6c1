//! The pages over the real console, with no backend configured.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Request, StatusCode, header};
use axum::response::Response;
use tower::ServiceExt;

use super::router;
use crate::console::ServerConsole;
use crate::http::state::ConsoleFor;
use inventory::Inventory;
use runtime::clock::Clock;
use runtime::tasks::PANICS;

fn pages() -> Router {
    let inventory = Inventory::new(Vec::new());
    router(ConsoleFor::same_for_all(Arc::new(ServerConsole::new(
        inventory,
        Arc::default(),
        Clock::start(),
    ))))
}

async fn get(path: &str, headers: &[(header::HeaderName, &str)]) -> (StatusCode, HeaderMap, String) {
    let request = headers.iter().fold(Request::get(path), |request, (name, value)| {
        request.header(name, *value)
    });
    let response = pages()
        .oneshot(request.body(Body::empty()).unwrap())
        .await
        .unwrap();
    let (parts, body) = response.into_parts();
    let body = to_bytes(body, 10_000_000).await.unwrap();
    (
        parts.status,
        parts.headers,
        String::from_utf8_lossy(&body).into_owned(),
    )
}

fn nonce(headers: &HeaderMap) -> String {
    let policy = headers[header::CONTENT_SECURITY_POLICY].to_str().unwrap();
    let (_, rest) = policy.split_once("'nonce-").unwrap();
    rest.split_once('\'').unwrap().0.to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn only_scripts_with_the_nonce_of_the_response_run() {
    // Every inline script of every page has the nonce that its own policy names, and no two answers share it.
    let mut nonces = Vec::new();
    for path in ["/", "/locks", "/locks/cache/a", "/backends", "/no-such-page"] {
        let (_, headers, html) = get(path, &[]).await;
        let nonce = nonce(&headers);
        for script in html.match_indices("<script").map(|(at, _)| &html[at..]) {
            let tag = script.split_once('>').unwrap().0;
            assert!(tag.contains(&format!("nonce=\"{nonce}\"")), "{path}: {tag}");
        }
        assert!(
            !html.contains(" style=\""),
            "{path}: inline styles are refused by the policy"
        );
        nonces.push(nonce);
    }
    nonces.sort();
    nonces.dedup();
    assert_eq!(nonces.len(), 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn responses_have_the_status_of_their_content() {
    // Pages and server functions alike: fine, a bad query, no such lock, no such page.
    for (path, status) in [
        ("/locks?state=stale", StatusCode::OK),
        ("/locks?state=broken", StatusCode::BAD_REQUEST),
        ("/nowhere", StatusCode::NOT_FOUND),
        ("/api/inventory?query=limit%3D0", StatusCode::BAD_REQUEST),
        (
            "/api/lock?backend=cache&source=&resource=a&search=",
            StatusCode::NOT_FOUND,
        ),
        ("/api/overview?search=", StatusCode::OK),
        ("/pkg/no-such-file.js", StatusCode::NOT_FOUND),
    ] {
        let (found, headers, body) = get(path, &[]).await;
        assert_eq!(found, status, "{path}: {body}");
        assert_eq!(headers[header::X_CONTENT_TYPE_OPTIONS], "nosniff", "{path}");
        assert!(
            headers[header::CONTENT_SECURITY_POLICY]
                .to_str()
                .unwrap()
                .contains("frame-ancestors 'none'")
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn responses_with_data_are_not_cached() {
    // Pages and data alike; static files have their own rule.
    for path in ["/", "/locks", "/api/overview?search="] {
        let (_, headers, _) = get(path, &[]).await;
        assert_eq!(headers[header::CACHE_CONTROL], "no-store", "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_names_its_files_below_their_version() {
    let (_, _, html) = get("/", &[]).await;
    let style = html.split("rel=\"stylesheet\" href=\"").nth(1).unwrap();
    let style = style.split('"').next().unwrap();
    let version = style.split('/').nth(2).unwrap();
    assert_eq!(
        (version, style),
        (super::site::version(), &*format!("/pkg/{version}/leasehold.css"))
    );
    // The loader adds `.js` and `_bg.wasm`.
    assert!(
        html.contains(&format!("(\"/pkg/{version}/leasehold\")")),
        "{html}"
    );
}

#[tokio::test]
async fn a_page_is_rendered_to_its_end_after_a_disconnect() {
    let (go, gone) = tokio::sync::oneshot::channel();
    let (ended, end) = tokio::sync::oneshot::channel();
    let mut page = Box::pin(super::to_its_end(async move {
        let was_asked = gone.await;
        ended.send(was_asked).unwrap();
        Response::default()
    }));
    assert!(futures::poll!(&mut page).is_pending());
    drop(page);
    go.send(()).unwrap();
    assert_eq!(end.await, Ok(Ok(())));
}

#[tokio::test]
#[should_panic(expected = "a bug of a page")]
async fn a_panic_of_a_page_reaches_the_layer_that_reports_it() {
    super::to_its_end(async { panic!("a bug of a page") }).await;
}

#[tokio::test]
async fn a_panic_of_a_page_after_a_disconnect_is_counted() {
    let (go, gone) = tokio::sync::oneshot::channel::<()>();
    let mut page = Box::pin(super::to_its_end(async move {
        gone.await.unwrap();
        panic!("a bug of a page")
    }));
    assert!(futures::poll!(&mut page).is_pending());
    drop(page);
    let before = PANICS.load(Ordering::Relaxed);
    go.send(()).unwrap();
    // The task is on this thread.
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    assert!(PANICS.load(Ordering::Relaxed) > before);
}
