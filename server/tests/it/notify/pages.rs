//! `/alerts/receivers`, as a browser without a script uses it.

use domain::access::Role;
use reqwest::{Response, StatusCode};

use super::stage::{SECRET, firing, tell};
use crate::people::stage::{Browser, Stage, on};
use crate::support::ear::{Ear, Reply};
use crate::support::eventually::eventually;

async fn signed_in(stage: &Stage) -> Browser {
    stage.person("root", on(Role::Admin, None, None)).await;
    stage.signed_in("root").await
}

async fn shown(answer: Response) -> (u16, String) {
    let status = answer.status().as_u16();
    (status, answer.text().await.unwrap())
}

#[tokio::test]
async fn a_receiver_is_added_tried_and_removed_on_the_page() {
    // From "nobody is told" to a test with request and answer; the secret stands nowhere.
    let ear = Ear::open().await;
    let stage = Stage::start().await;
    let browser = signed_in(&stage).await;
    let (_, empty) = shown(browser.get("/alerts/receivers").await).await;
    assert!(empty.contains("Nobody is told: there is no receiver"), "{empty}");
    let url = format!("{}/in?k=c4nary", ear.url);
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
        tried.contains("ops took the test") && tried.contains("x-signature: sha256="),
        "{tried}"
    );
    assert!(
        tried.contains("This is a test. Nothing is wrong.") && tried.contains("heard"),
        "{tried}"
    );
    let (_, list) = shown(browser.get("/alerts/receivers").await).await;
    assert!(list.contains("ops is told") && list.contains("taken"), "{list}");
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
async fn a_refusal_stands_at_its_field_and_what_was_typed_stays_but_for_secrets() {
    // An inner address; a name that is taken.
    let stage = Stage::start().await;
    let browser = signed_in(&stage).await;
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
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY.as_u16());
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
async fn hostile_names_in_messages_and_answers_do_no_harm_on_the_page() {
    // A resource that is markup and turns the line, an answer that is a script.
    let ear = Ear::open().await;
    ear.answers([Reply::With(400, "content-type", "text/html".to_owned())]);
    let stage = Stage::start().await;
    let browser = signed_in(&stage).await;
    let form = [
        ("name", "ops"),
        ("kind", "webhook"),
        ("urls", &ear.url),
        ("secret", SECRET),
    ];
    browser.post("/alerts/receivers", &form).await;
    let db = leasehold::db::Db::open(&stage.store).await.unwrap();
    tell(&db, &firing("<img src=x onerror=alert(1)>\u{202e}")).await;
    let page = std::cell::RefCell::new(String::new());
    eventually("it is a dead letter", async || {
        let (_, text) = shown(browser.get("/alerts/receivers").await).await;
        *page.borrow_mut() = text;
        page.borrow().contains("given up")
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
    ear.hears(2).await;
}
