//! Setup link, password, one-time link, leaving; wrong guesses; what the cookie is like.

use std::time::Duration;

use domain::access::{Grant, Role};
use leasehold::identity::Who;
use reqwest::{StatusCode, header};

use super::stage::{PASSWORD, Stage};
use crate::support::eventually::eventually;

#[tokio::test]
async fn the_setup_link_makes_one_admin_once_and_there_is_no_other_way_in() {
    // Before it nobody can sign in; a weak password leaves the link good; used, it is spent, and no new one is made.
    let stage = Stage::start().await;
    let browser = stage.browser();
    let page = browser.get("/sign-in").await.text().await.unwrap();
    assert!(page.contains("Nobody can sign in yet"), "{page}");
    let link = stage.identity().setup_link().await.unwrap().unwrap();
    // The secret of the printed link is a fragment, which no browser sends; a whole link may be pasted.
    let asked = browser.get("/setup").await;
    assert_eq!(asked.status(), StatusCode::OK);
    let page = asked.text().await.unwrap();
    assert!(
        page.contains("location.hash") && page.contains("Setup link"),
        "{page}"
    );
    let path = format!("/setup?link={}", link.expose());
    assert_eq!(browser.get(&path).await.status(), StatusCode::OK);
    let whole = format!("http://127.0.0.1:3000/setup#{}", link.expose());
    let form = |password: &'static str| [("link", whole.as_str()), ("name", "ada"), ("password", password)];
    let weak = browser.post("/setup", &form("short")).await;
    assert_eq!(weak.status(), StatusCode::UNPROCESSABLE_ENTITY);
    assert!(weak.text().await.unwrap().contains("at least 12 characters"));
    let begun = browser.post("/setup", &form(PASSWORD)).await;
    assert_eq!(
        (
            begun.status(),
            begun.headers()[header::LOCATION].to_str().unwrap()
        ),
        (StatusCode::SEE_OTHER, "/")
    );
    assert_eq!(browser.get("/backends").await.status(), StatusCode::OK);

    let thief = stage.browser();
    for path in ["/setup", &path] {
        assert_eq!(thief.get(path).await.status(), StatusCode::GONE);
    }
    assert_eq!(
        thief.post("/setup", &form(PASSWORD)).await.status(),
        StatusCode::GONE
    );
    assert!(stage.identity().setup_link().await.unwrap().is_none());
}

#[tokio::test]
async fn a_password_opens_the_pages_and_leaving_closes_them() {
    // Anonymous is led to the form and back to where it was going; the cookie is out of reach of scripts.
    let stage = Stage::start().await;
    stage.person("ada", vec![Grant::everywhere(Role::Viewer)]).await;
    let browser = stage.browser();
    let led = browser.get("/locks?state=no_ttl").await;
    assert_eq!(led.status(), StatusCode::SEE_OTHER);
    assert_eq!(
        led.headers()[header::LOCATION],
        "/sign-in?next=%2Flocks%3Fstate%3Dno_ttl"
    );
    let form = [
        ("name", "ada"),
        ("password", PASSWORD),
        ("next", "/locks?state=no_ttl"),
    ];
    let welcome = browser.post("/sign-in", &form).await;
    assert_eq!(welcome.headers()[header::LOCATION], "/locks?state=no_ttl");
    let cookie = welcome.headers()[header::SET_COOKIE].to_str().unwrap().to_owned();
    assert!(
        cookie.starts_with("leasehold=lhs_")
            && cookie.contains("HttpOnly")
            && cookie.contains("SameSite=Lax")
    );
    assert_eq!(browser.get("/locks").await.status(), StatusCode::OK);
    assert_eq!(
        browser.post("/sign-out", &[]).await.status(),
        StatusCode::SEE_OTHER
    );
    assert_eq!(browser.get("/locks").await.status(), StatusCode::SEE_OTHER);
    let stolen = reqwest::Client::new().get(stage.url("/v1/backends"));
    let stolen = stolen.header(header::COOKIE, cookie.split(';').next().unwrap());
    assert_eq!(stolen.send().await.unwrap().status(), StatusCode::UNAUTHORIZED);
    let actions: Vec<String> = stage.record().await.into_iter().map(|row| row.action).collect();
    assert_eq!(actions, ["LOGOUT", "LOGIN", "PERSON_CREATE"]);
}

#[tokio::test]
async fn a_wrong_password_and_an_unknown_name_get_the_same_answer_and_are_recorded() {
    // The same page but for the name; after five guesses the address must wait.
    let stage = Stage::start().await;
    stage.person("ada", vec![Grant::everywhere(Role::Viewer)]).await;
    let browser = stage.browser();
    let guess = async |name: &str| {
        let answer = browser
            .post("/sign-in", &[("name", name), ("password", "not the password")])
            .await;
        (
            answer.status(),
            answer.text().await.unwrap().replace(name, "NAME"),
        )
    };
    let (wrong, unknown) = (guess("ada").await, guess("nobody").await);
    assert_eq!(wrong.0, StatusCode::UNAUTHORIZED);
    assert_eq!(wrong, unknown);
    for _ in 0..5 {
        guess("ada").await;
    }
    let made_to_wait = browser
        .post("/sign-in", &[("name", "ada"), ("password", PASSWORD)])
        .await;
    assert_eq!(made_to_wait.status(), StatusCode::TOO_MANY_REQUESTS);
    assert!(made_to_wait.headers().contains_key(header::RETRY_AFTER));
    assert_eq!(stage.counted("wrong_password").await, 1);
    stage.serving.clock.advance(Duration::from_secs(60));
    eventually("the minute's wrong passwords are recorded", async || {
        stage.counted("wrong_password").await == 5
    })
    .await;
    let row = &stage.record().await[0];
    assert!(
        row.after.as_ref().unwrap().contains("[\"nobody\",\"ada\"]"),
        "{row:?}"
    );
}

#[tokio::test]
async fn a_link_signs_in_once_and_looking_at_it_does_not_use_it_up() {
    // As the demo's visitor does; a second visitor with the same link is refused and recorded.
    let stage = Stage::start().await;
    let ada = stage.person("ada", vec![Grant::everywhere(Role::Viewer)]).await;
    let link = stage
        .identity()
        .person_link(&Who::system("test"), &ada)
        .await
        .unwrap();
    let browser = stage.browser();
    for _ in 0..2 {
        let page = browser.get(&format!("/sign-in?link={}", link.expose())).await;
        assert_eq!(page.status(), StatusCode::OK);
    }
    let form = [("link", link.expose()), ("next", "//evil.example/")];
    let welcome = browser.post("/sign-in", &form).await;
    assert_eq!(
        (welcome.status(), &welcome.headers()[header::LOCATION]),
        (StatusCode::SEE_OTHER, &header::HeaderValue::from_static("/"))
    );
    assert_eq!(browser.get("/").await.status(), StatusCode::OK);
    assert_eq!(
        stage.browser().post("/sign-in", &form).await.status(),
        StatusCode::GONE
    );
    assert_eq!(stage.record().await[0].outcome, "bad_link");
}

#[tokio::test]
async fn somebody_who_was_disabled_is_out_at_once_and_the_last_admin_stays() {
    // A living session ends with its person; whoever could give rights back cannot be taken away.
    let stage = Stage::start().await;
    let admin = stage.person("root", vec![Grant::everywhere(Role::Admin)]).await;
    let ada = stage.person("ada", vec![Grant::everywhere(Role::Viewer)]).await;
    let browser = stage.signed_in("ada").await;
    assert_eq!(browser.get("/").await.status(), StatusCode::OK);
    let who = leasehold::identity::Who::system("test");
    stage.identity().disable_person(&who, &ada).await.unwrap();
    assert_eq!(browser.get("/").await.status(), StatusCode::SEE_OTHER);
    let again = browser
        .post("/sign-in", &[("name", "ada"), ("password", PASSWORD)])
        .await;
    assert_eq!(again.status(), StatusCode::UNAUTHORIZED);
    let kept = stage.identity().disable_person(&who, &admin).await.unwrap_err();
    assert!(kept.to_string().contains("last admin"), "{kept}");
}
