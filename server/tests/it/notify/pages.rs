//! `/alerts/receivers`, as a browser without a script uses it.

use crate::support::{Browser, TestServer, on};
use domain::access::Role;
use reqwest::Response;

use super::notifier::{LOCAL_RECEIVERS, SECRET, enqueue_notice, firing};
use crate::support::webhook_sink::{Reply, WebhookSink};
use testkit::eventually;

async fn signed_in(server: &TestServer) -> Browser {
    server.add_user("root", on(Role::Admin, None, None)).await;
    server.signed_in("root").await
}

async fn shown(answer: Response) -> (u16, String) {
    let status = answer.status().as_u16();
    (status, answer.text().await.unwrap())
}

#[tokio::test]
async fn a_receiver_is_added_tested_and_removed_on_the_page() {
    // From "no receivers" to a test with request and answer; no page contains the secret.
    let sink = WebhookSink::open().await;
    let server = TestServer::builder().config(LOCAL_RECEIVERS).start().await;
    let browser = signed_in(&server).await;
    let (_, empty) = shown(browser.get("/alerts/receivers").await).await;
    assert!(empty.contains("No receivers"), "{empty}");
    let url = format!("{}/in?k=c4nary", sink.url);
    let form = [
        ("name", "ops"),
        ("kind", "webhook"),
        ("urls", &url),
        ("secret", SECRET),
    ];
    let added = browser.post("/alerts/receivers", &form).await;
    assert_eq!(added.headers()["location"], "/alerts/receivers?added");
    let (_, one) = shown(browser.get("/alerts/receivers/ops").await).await;
    let (status, tried) = shown(browser.post("/alerts/receivers/ops/test", &[]).await).await;
    assert_eq!(status, 200);
    assert!(
        tried.contains("Test delivered to ops") && tried.contains("x-signature: sha256="),
        "{tried}"
    );
    assert!(
        tried.contains("This is a test. Nothing is wrong.") && tried.contains("heard"),
        "{tried}"
    );
    let (_, list) = shown(browser.get("/alerts/receivers").await).await;
    assert!(
        list.contains("Notifications go to ops") && list.contains("delivered"),
        "{list}"
    );
    for page in [one, tried, list] {
        assert!(!page.contains(SECRET) && !page.contains("c4nary"), "{page}");
    }
    let removed = browser.post("/alerts/receivers/ops/remove", &[]).await;
    assert_eq!(removed.headers()["location"], "/alerts/receivers?removed");
    let (status, gone) = shown(browser.get("/alerts/receivers/ops").await).await;
    assert!(
        status == 404 && gone.contains("There is no receiver ops."),
        "{gone}"
    );
}

#[tokio::test]
async fn an_error_is_at_its_field_and_input_except_secrets_stays() {
    // An inner address; a name that is taken.
    let server = TestServer::builder().config(LOCAL_RECEIVERS).start().await;
    let browser = signed_in(&server).await;
    let form = |name: &'static str, url: &'static str| {
        [
            ("name", name),
            ("kind", "webhook"),
            ("urls", url),
            ("secret", SECRET),
        ]
    };
    let refused = browser
        .post("/alerts/receivers", &form("ops", "https://10.1.2.3/c4nary"))
        .await;
    let (status, page) = shown(refused).await;
    assert_eq!(status, 422);
    assert!(page.contains("leads to 10.1.2.3, which is private"), "{page}");
    assert!(
        page.contains("[&quot;10.1.2.3/32&quot;]") || page.contains("[\"10.1.2.3/32\"]"),
        "{page}"
    );
    assert!(page.contains("value=\"ops\"") && !page.contains("c4nary") && !page.contains(SECRET));
    for status in [303, 409] {
        let answer = browser
            .post("/alerts/receivers", &form("ops", "https://1.1.1.1/"))
            .await;
        assert_eq!(answer.status().as_u16(), status);
    }
}

#[tokio::test]
async fn a_new_host_without_the_secret_is_refused_at_its_field() {
    // Another host without a secret, then with one.
    let server = TestServer::builder().config(LOCAL_RECEIVERS).start().await;
    let browser = signed_in(&server).await;
    let (known, other) = (WebhookSink::open().await, WebhookSink::open().await);
    let form = [
        ("name", "ops"),
        ("kind", "webhook"),
        ("urls", &known.url),
        ("secret", SECRET),
    ];
    let added = browser.post("/alerts/receivers", &form).await;
    assert_eq!(added.headers()["location"], "/alerts/receivers?added");
    let change = async |secret: &str| {
        let form = [("urls", other.url.as_str()), ("secret", secret)];
        browser.post("/alerts/receivers/ops", &form).await
    };
    let (status, page) = shown(change("").await).await;
    assert_eq!(status, 422);
    assert!(
        page.contains("It is required again: the stored one is not sent to a new scheme, host or port."),
        "{page}"
    );
    assert!(page.contains(&known.url) && !page.contains(&other.url), "{page}");
    let changed = change(SECRET).await;
    assert_eq!(changed.headers()["location"], "/alerts/receivers/ops?changed");
}

#[tokio::test]
async fn hostile_names_in_messages_and_responses_are_escaped() {
    // A resource name with markup and a direction override, and a response with a script.
    let sink = WebhookSink::open().await;
    sink.answers([Reply::With(400, "content-type", "text/html".to_owned())]);
    let server = TestServer::builder().config(LOCAL_RECEIVERS).start().await;
    let browser = signed_in(&server).await;
    let form = [
        ("name", "ops"),
        ("kind", "webhook"),
        ("urls", &sink.url),
        ("secret", SECRET),
    ];
    browser.post("/alerts/receivers", &form).await;
    let db = runtime::db::Db::open(&server.store.url).await.unwrap();
    enqueue_notice(&db, &firing("<img src=x onerror=alert(1)>\u{202e}")).await;
    let page = std::cell::RefCell::new(String::new());
    eventually("it is a dead letter", async || {
        let (_, text) = shown(browser.get("/alerts/receivers").await).await;
        *page.borrow_mut() = text;
        page.borrow().contains("Retry message")
    })
    .await;
    let page = page.into_inner();
    assert!(!page.contains("<img") && !page.contains('\u{202e}'), "{page}");
    assert!(page.contains("&lt;img") && page.contains("\\u{202e}"), "{page}");
    let id = page
        .split("/alerts/notifications/")
        .nth(1)
        .unwrap()
        .split('/')
        .next()
        .unwrap();
    let retried = browser
        .post(&format!("/alerts/notifications/{id}/retry"), &[])
        .await;
    assert_eq!(retried.headers()["location"], "/alerts/receivers?retried");
    sink.wait_for(2).await;
    // The page was open for a while: it says why a second retry does nothing.
    let again = browser
        .post(&format!("/alerts/notifications/{id}/retry"), &[])
        .await;
    let (_, page) = shown(again).await;
    assert!(
        page.contains("This message is not a dead letter: it is "),
        "{page}"
    );
}
