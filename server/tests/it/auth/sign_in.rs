//! Setup link, password, one-time link, sign-out; wrong guesses; attributes of the cookie.

use crate::support::{PASSWORD, Store, TestServer, code, on};
use std::time::Duration;

use domain::access::{Grant, Role};
use leasehold::identity::{Principal, Session};
use reqwest::header;

use testkit::eventually;

#[tokio::test]
async fn the_setup_link_creates_one_admin_once() {
    // Before it no user can sign in; a weak password leaves the link valid; used, it is spent,
    // and no new one is created.
    let server = TestServer::builder().redis().start().await;
    let browser = server.browser();
    let page = browser.get("/sign-in").await.text().await.unwrap();
    assert!(page.contains("No admin exists yet"), "{page}");
    let link = server.identity().setup_link().await.unwrap().unwrap();
    // The secret of the printed link is a fragment, which no browser sends; a whole link may be pasted.
    let setup_form = browser.get("/setup").await;
    assert_eq!(setup_form.status(), 200);
    let page = setup_form.text().await.unwrap();
    assert!(
        page.contains("location.hash") && page.contains("Setup link"),
        "{page}"
    );
    let path = format!("/setup?link={}", link.expose());
    assert_eq!(browser.get(&path).await.status(), 200);
    let whole = format!("http://127.0.0.1:3000/setup#{}", link.expose());
    let form = |password: &'static str| [("link", whole.as_str()), ("name", "ada"), ("password", password)];
    let weak = browser.post("/setup", &form("short")).await;
    assert_eq!(weak.status(), 422);
    assert!(weak.text().await.unwrap().contains("at least 12 characters"));
    let begun = browser.post("/setup", &form(PASSWORD)).await;
    assert_eq!(
        (
            begun.status().as_u16(),
            begun.headers()[header::LOCATION].to_str().unwrap()
        ),
        (303, "/")
    );
    assert_eq!(browser.get("/backends").await.status(), 200);

    let thief = server.browser();
    for path in ["/setup", &path] {
        assert_eq!(thief.get(path).await.status(), 410);
    }
    assert_eq!(thief.post("/setup", &form(PASSWORD)).await.status(), 410);
    assert!(server.identity().setup_link().await.unwrap().is_none());
}

#[tokio::test]
async fn sign_in_opens_the_pages_and_sign_out_closes_them() {
    // An anonymous browser is redirected to the form, and from there to the page that it requested; scripts cannot read the cookie.
    let server = TestServer::builder().redis().start().await;
    server
        .add_user("ada", vec![Grant::everywhere(Role::Viewer)])
        .await;
    let browser = server.browser();
    let led = browser.get("/locks?state=no_ttl").await;
    assert_eq!(led.status(), 303);
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
    assert_eq!(browser.get("/locks").await.status(), 200);
    assert_eq!(browser.post("/sign-out", &[]).await.status(), 303);
    assert_eq!(browser.get("/locks").await.status(), 303);
    let stolen = reqwest::Client::new().get(server.url("/v1/backends"));
    let stolen = stolen.header(header::COOKIE, cookie.split(';').next().unwrap());
    assert_eq!(stolen.send().await.unwrap().status(), 401);
    let actions: Vec<String> = server
        .audit_entries()
        .await
        .into_iter()
        .map(|row| row.action)
        .collect();
    assert_eq!(actions, ["LOGOUT", "LOGIN", "USER_CREATE"]);
}

#[tokio::test]
async fn wrong_password_and_unknown_name_get_the_same_response() {
    // The same page but for the name; after five guesses the address must wait.
    let server = TestServer::builder().redis().start().await;
    server
        .add_user("ada", vec![Grant::everywhere(Role::Viewer)])
        .await;
    let browser = server.browser();
    let guess = async |name: &str| {
        let answer = browser
            .post("/sign-in", &[("name", name), ("password", "not the password")])
            .await;
        (
            answer.status(),
            answer.text().await.unwrap().replace(name, "NAME"),
        )
    };
    let (wrong, unknown) = (guess("ada").await, guess("eve").await);
    assert_eq!(wrong.0, 401);
    assert_eq!(wrong, unknown);
    for _ in 0..5 {
        guess("ada").await;
    }
    let made_to_wait = browser
        .post("/sign-in", &[("name", "ada"), ("password", PASSWORD)])
        .await;
    assert_eq!(made_to_wait.status(), 429);
    assert!(made_to_wait.headers().contains_key(header::RETRY_AFTER));
    assert_eq!(server.rejections_recorded("wrong_password").await, 1);
    server.serving.clock.advance(Duration::from_secs(60));
    eventually("the minute's wrong passwords are recorded", async || {
        server.rejections_recorded("wrong_password").await == 5
    })
    .await;
    let row = &server.audit_entries().await[0];
    assert!(
        row.after.as_ref().unwrap().contains("[\"eve\",\"ada\"]"),
        "{row:?}"
    );
}

#[tokio::test]
async fn a_link_signs_in_once_and_opening_it_does_not_use_it() {
    // As the demo's visitor does; a second visitor with the same link is refused and recorded.
    let server = TestServer::builder().redis().start().await;
    let ada = server
        .add_user("ada", vec![Grant::everywhere(Role::Viewer)])
        .await;
    let link = server
        .identity()
        .user_link(&Principal::system("test"), &ada)
        .await
        .unwrap();
    let browser = server.browser();
    for _ in 0..2 {
        let page = browser.get(&format!("/sign-in?link={}", link.expose())).await;
        assert_eq!(page.status(), 200);
    }
    let form = [("link", link.expose()), ("next", "//evil.example/")];
    let welcome = browser.post("/sign-in", &form).await;
    assert_eq!(
        (welcome.status().as_u16(), &welcome.headers()[header::LOCATION]),
        (303, &header::HeaderValue::from_static("/"))
    );
    assert_eq!(browser.get("/").await.status(), 200);
    assert_eq!(server.browser().post("/sign-in", &form).await.status(), 410);
    assert_eq!(server.audit_entries().await[0].outcome, "bad_link");
}

#[tokio::test]
async fn a_used_link_names_the_ways_to_another() {
    // Opened again, and posted again; a browser with a session is led into the console. The demo names its own command.
    let command = "/opt/leasehold user link --name visitor --config /tmp/demo/leasehold.toml";
    let plain = TestServer::builder().start().await;
    let demo = TestServer::builder().demo(command).start().await;
    let general = "leasehold user link --name NAME";
    for (server, expected) in [(&plain, general), (&demo, command)] {
        let ada = server
            .add_user("ada", vec![Grant::everywhere(Role::Viewer)])
            .await;
        let system = Principal::system("test");
        let link = server.identity().user_link(&system, &ada).await.unwrap();
        let browser = server.browser();
        let form = [("link", link.expose())];
        assert_eq!(browser.post("/sign-in", &form).await.status(), 303);
        let path = format!("/sign-in?link={}", link.expose());
        for (browser, way_on) in [
            (&browser, "Open the console"),
            (&server.browser(), "Sign in with a password"),
        ] {
            for answer in [browser.get(&path).await, browser.post("/sign-in", &form).await] {
                assert_eq!(answer.status(), 410);
                let page = answer.text().await.unwrap();
                assert!(page.contains(expected) && page.contains(way_on), "{page}");
                assert!(!page.contains(link.expose()), "{page}");
            }
        }
    }
}

#[tokio::test]
async fn opening_invalid_links_is_limited_by_source() {
    // As posting them is; opening a valid link does not count.
    let server = TestServer::builder().start().await;
    let ada = server
        .add_user("ada", vec![Grant::everywhere(Role::Viewer)])
        .await;
    let system = Principal::system("test");
    let link = server.identity().user_link(&system, &ada).await.unwrap();
    let browser = server.browser();
    let open = async |link: &str| {
        let answer = browser.get(&format!("/sign-in?link={link}")).await;
        answer.status().as_u16()
    };
    for _ in 0..12 {
        assert_eq!(open(link.expose()).await, 200);
    }
    for _ in 0..10 {
        assert_eq!(open("lhl_x").await, 410);
    }
    assert_eq!(open("lhl_x").await, 429);
}

#[tokio::test]
async fn opening_invalid_setup_links_is_limited_by_source() {
    // Once there is an admin, none is valid, and none is looked up.
    let server = TestServer::builder().start().await;
    let link = server.identity().setup_link().await.unwrap().unwrap();
    let browser = server.browser();
    let open = async |link: &str| {
        let answer = browser.get(&format!("/setup?link={link}")).await;
        answer.status().as_u16()
    };
    for _ in 0..12 {
        assert_eq!(open(link.expose()).await, 200);
    }
    for _ in 0..10 {
        assert_eq!(open("lhl_x").await, 410);
    }
    assert_eq!(open("lhl_x").await, 429);
    server.add_user("ada", vec![Grant::everywhere(Role::Admin)]).await;
    assert_eq!(open(link.expose()).await, 410);
}

#[tokio::test]
async fn disabling_ends_sessions_at_once_but_not_for_the_last_admin() {
    // A live session ends with its user; the last user who can grant permissions cannot be
    // disabled.
    let server = TestServer::builder().redis().start().await;
    let admin = server
        .add_user("root", vec![Grant::everywhere(Role::Admin)])
        .await;
    let ada = server
        .add_user("ada", vec![Grant::everywhere(Role::Viewer)])
        .await;
    let browser = server.signed_in("ada").await;
    assert_eq!(browser.get("/").await.status(), 200);
    let who = leasehold::identity::Principal::system("test");
    server.identity().disable_user(&who, &ada).await.unwrap();
    assert_eq!(browser.get("/").await.status(), 303);
    let again = browser
        .post("/sign-in", &[("name", "ada"), ("password", PASSWORD)])
        .await;
    assert_eq!(again.status(), 401);
    let kept = server.identity().disable_user(&who, &admin).await.unwrap_err();
    assert!(kept.to_string().contains("last enabled admin"), "{kept}");
}

#[tokio::test]
async fn an_authentication_in_the_future_is_not_fresh() {
    // The clock was set back an hour since. Servers may differ by seconds.
    let server = TestServer::builder().redis().start().await;
    let now = server.serving.clock.now().wall.timestamp_millis();
    let is_fresh = |seconds: i64| {
        server.identity().is_fresh(&Session {
            id: "s_test".to_owned(),
            user_id: "p_test".to_owned(),
            authenticated_at: now + seconds * 1_000,
            link_created_by_id: None,
            root_user_id: None,
        })
    };
    let fresh = [-900, -600, 0, 30, 3_600].map(is_fresh);
    assert_eq!(fresh, [false, true, true, true, false]);
}

#[tokio::test]
async fn a_name_with_a_nul_is_an_unknown_name() {
    // Of a user, a token and a session; Postgres rejects such a text in a query.
    for home in [Store::sqlite(), Store::postgres().await] {
        let server = TestServer::builder().start_on(home).await;
        let admin = server.token("admin", on(Role::Admin, None, None)).await;
        server.add_user("ada", on(Role::Viewer, None, None)).await;
        let form = [("name", "ada\0"), ("password", PASSWORD)];
        let refused = server.browser().post("/sign-in", &form).await;
        assert_eq!(refused.status(), 401);
        let entry = &server.audit_entries().await[0];
        let recorded = (entry.outcome.as_str(), entry.actor_name.as_str());
        assert_eq!(recorded, ("wrong_password", "ada\\u{0}"));
        for path in ["/v1/tokens/a%00b", "/v1/sessions/s%00"] {
            let refused = server.as_user(&admin).delete(path).await;
            assert_eq!(code(&refused), (404, "not_found"), "{path}");
        }
    }
}
