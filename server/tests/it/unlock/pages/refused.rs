//! Refusals: shown at the field or at the top, with the typed input; an audit entry, and the lock untouched.

use crate::support::{TestCaller, TestServer, on};
use crate::unlock::requests::REASON;
use ::testkit::{RedisOptions, Throwaway, eventually};
use domain::access::Role;
use reqwest::{Client, Method};

use super::{address, begun, id, post, see, send};

#[tokio::test]
async fn a_reason_without_content_is_reported_at_its_field() {
    // White space, dots, nine characters, too many: 422 at the field, the text stays, an audit entry each, no intent.
    let server = TestServer::start().await;
    let operator = server.operator().await;
    let ada = server.user("ada", on(Role::Operator, None, None)).await;
    let held = server.hold(&operator, "r").await;
    let long = "word ".repeat(101);
    let weak = [
        ("   \t \r\n", "A reason is required"),
        ("..........", "A reason is made of words"),
        ("stuck now", "at least 10 characters, and this has 9"),
        (long.as_str(), "at most 500 characters, and this has 504"),
    ];
    for (reason, why) in weak {
        let form = [("generation", held.generation.as_str()), ("reason", reason)];
        let page = post(&server, &ada, &address(&held), &form).await;
        page.is(422)
            .has(why)
            .has("aria-invalid=\"true\"")
            .has("id=\"reason-note\"");
        page.has(&format!(">\n{}</textarea>", reason.trim_end_matches('\r')));
        assert_eq!(page.hidden("generation"), held.generation);
    }
    let rows = server.unlock_entries().await;
    assert_eq!(rows.len(), weak.len());
    assert!(
        rows.iter()
            .all(|row| row.outcome == "reason_too_weak" && row.actor_name == "ada")
    );
    assert!(server.is_held(&operator, &held).await);
}

#[tokio::test]
async fn a_wrong_name_is_explained_and_the_third_ends_the_intent() {
    // A look-alike, then a trailing space, then another name: 422 each; the typed text stays until it is cancelled.
    let server = TestServer::start().await;
    let operator = server.operator().await;
    let ada = server.user("ada", on(Role::Operator, None, None)).await;
    let held = server.hold(&operator, "jobs/close").await;
    let step = begun(&server, &ada, &held).await;
    let path = format!("{step}/confirm");
    let first = post(&server, &ada, &path, &[("resource", "j\u{43e}bs/close")]).await;
    first
        .is(422)
        .has("two more wrong names cancel this intent")
        .has("(U+043E)")
        .has("value=\"j\u{43e}bs/close\"");
    let second = post(&server, &ada, &path, &[("resource", "jobs/close ")]).await;
    second
        .is(422)
        .has("one more wrong name")
        .has("U+0020 follows")
        .has("value=\"jobs/close \"");
    let third = post(&server, &ada, &path, &[("resource", "x")]).await;
    third
        .is(422)
        .has("this intent is cancelled")
        .has("Cancelled")
        .has("Three wrong names were typed");
    let phases = server.unlock_phases(id(&step)).await;
    let wanted = [
        "intent pending",
        "intent name_mismatch",
        "intent name_mismatch",
        "intent name_mismatch",
        "outcome cancelled",
    ];
    assert_eq!(phases, wanted);
    assert!(server.is_held(&operator, &held).await);
}

#[tokio::test]
async fn hostile_names_are_escaped_and_typed_as_shown() {
    // Redis keys with markup, a direction mark, a control character, spaces: none is rendered as markup; typed as
    // shown they are accepted.
    let redis = Throwaway::redis(RedisOptions::default()).await.unwrap();
    let url = redis.url();
    let toml = format!(
        "[[backend]]\nname = \"cache\"\nkind = \"redis\"\nurls = [\"{url}\"]\nunlock_url = \"{url}\"\npatterns = [\"*\"]\npoll_interval = \"1s\"\n"
    );
    let server = TestServer::builder().config(&toml).start().await;
    let operator = server.operator().await;
    let ada = server.user("ada", on(Role::Operator, None, None)).await;
    let client = redis::Client::open(url).unwrap();
    let mut driver = client.get_multiplexed_async_connection().await.unwrap();
    for (name, shown) in [
        ("<img src=x onerror=alert(1)>", "<img src=x onerror=alert(1)>"),
        ("a\u{202e}b/\u{200b}c\u{7}", "a\\u{202e}b/\\u{200b}c\\u{7}"),
        ("\"><script>1</script>", "\"><script>1</script>"),
        ("a  b ", "a  b "),
    ] {
        let () = redis::cmd("SET")
            .arg(name)
            .arg("one")
            .query_async(&mut driver)
            .await
            .unwrap();
        let held = server.inventory_lock(&operator, "cache", name).await;
        let step = begun(&server, &ada, &held).await;
        for path in [step.clone(), address(&held)] {
            let page = see(&server, &ada, &path).await;
            for bad in ["<img", "<script>1", "\u{202e}", "\u{200b}", "\u{7}"] {
                assert!(!page.text.contains(bad), "{bad:?} in {}", page.text);
            }
            page.is(200).has("<bdi dir=\"ltr\">");
        }
        let done = post(&server, &ada, &format!("{step}/confirm"), &[("resource", shown)]).await;
        assert_eq!(done.is(303).to, step);
        let left: bool = redis::cmd("EXISTS")
            .arg(name)
            .query_async(&mut driver)
            .await
            .unwrap();
        assert!(!left, "{name:?}");
    }
}

#[tokio::test]
async fn a_foreign_intent_is_read_only() {
    // Another operator sees it, and can neither confirm nor cancel it; each attempt is audited.
    let server = TestServer::start().await;
    let operator = server.operator().await;
    let ada = server.user("ada", on(Role::Operator, None, None)).await;
    let eve = server.user("eve", on(Role::Operator, None, None)).await;
    let held = server.hold(&operator, "r").await;
    let step = begun(&server, &ada, &held).await;
    let page = see(&server, &eve, &step).await;
    page.is(200).has("can confirm this intent");
    assert!(!page.text.contains("name=\"resource\"") && !page.text.contains("/cancel"));
    for act in ["confirm", "cancel"] {
        let refused = post(&server, &eve, &format!("{step}/{act}"), &[("resource", "r")]).await;
        refused.is(403).has("This intent belongs to another user");
    }
    let phases = server.unlock_phases(id(&step)).await;
    assert_eq!(phases, ["intent pending", "intent forbidden", "intent forbidden"]);
    assert!(server.is_held(&operator, &held).await);
}

#[tokio::test]
async fn one_of_ten_concurrent_confirmations_releases() {
    // The same form sent ten times at once: one redirects, nine are refused, one release in the audit log.
    let server = TestServer::start().await;
    let operator = server.operator().await;
    let ada = server.user("ada", on(Role::Operator, None, None)).await;
    let held = server.hold(&operator, "r").await;
    let step = begun(&server, &ada, &held).await;
    let path = format!("{step}/confirm");
    let form = [("resource", "r")];
    let pages = futures::future::join_all((0..10).map(|_| post(&server, &ada, &path, &form))).await;
    let mut codes: Vec<u16> = pages.iter().map(|page| page.status).collect();
    codes.sort_unstable();
    assert_eq!(codes, [303, 409, 409, 409, 409, 409, 409, 409, 409, 409]);
    let phases = server.unlock_phases(id(&step)).await;
    assert_eq!(
        phases.iter().filter(|row| *row == "act begun").count(),
        1,
        "{phases:?}"
    );
}

#[tokio::test]
async fn posts_of_viewers_and_other_sites_are_refused() {
    // A viewer's forged posts; an operator's cookie on a cross-site post; a post without a session. Each but the last
    // is audited.
    let server = TestServer::start().await;
    let operator = server.operator().await;
    let ada = server.user("ada", on(Role::Operator, None, None)).await;
    let vera = server.user("vera", on(Role::Viewer, None, None)).await;
    let held = server.hold(&operator, "r").await;
    let step = begun(&server, &ada, &held).await;
    let acts = ["confirm", "approve", "cancel", "review", "prove"].map(|act| format!("{step}/{act}"));
    for path in acts.iter().chain([&address(&held)]) {
        post(&server, &vera, path, &[("resource", "r"), ("reason", REASON)])
            .await
            .is(403)
            .has("Nothing was changed")
            .has(REASON);
    }
    let TestCaller::Session(cookie) = &ada else {
        panic!()
    };
    for header in [
        ("sec-fetch-site", "cross-site"),
        ("origin", "https://evil.example"),
    ] {
        let request = Client::new()
            .post(server.url(&format!("{step}/confirm")))
            .header("cookie", format!("leasehold={cookie}"))
            .header(header.0, header.1)
            .header("content-type", "application/x-www-form-urlencoded")
            .header("accept", "text/html")
            .body("resource=planted");
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), 403, "{header:?}");
        let text = answer.text().await.unwrap();
        assert!(
            text.contains("request from another site") && !text.contains("planted"),
            "{text}"
        );
    }
    let nobody = TestCaller::Session("nobody".to_owned());
    send(
        &server,
        &nobody,
        (Method::POST, &format!("{step}/confirm")),
        &[("resource", "r")],
    )
    .await
    .is(401);
    let led = see(&server, &nobody, &step).await;
    assert!(led.is(303).to.starts_with("/sign-in?next="), "{}", led.to);
    assert!(server.is_held(&operator, &held).await);
    let query = domain::audit::AuditQuery {
        limit: 100,
        action: Some(domain::audit::Action::Deny),
        ..Default::default()
    };
    let denied = server.audit().await.page(&query).await.unwrap().rows;
    let count = |outcome: &str| denied.iter().filter(|row| row.outcome == outcome).count();
    assert_eq!((count("forbidden"), count("cross_site")), (6, 2), "{denied:?}");
}

#[tokio::test]
async fn input_survives_the_session_and_is_resent() {
    // The session ends under a half-written reason; the page shows it, and its form is taken once they are signed in.
    let server = TestServer::start().await;
    let operator = server.operator().await;
    let ada = server.user("ada", on(Role::Operator, None, None)).await;
    let held = server.hold(&operator, "r").await;
    let ended = TestCaller::Session("ended".to_owned());
    let form = [("generation", held.generation.as_str()), ("reason", REASON)];
    let page = post(&server, &ended, &address(&held), &form).await;
    page.is(401).has("you are signed out").has("target=\"_blank\"");
    page.has(&format!("action=\"{}\"", address(&held)));
    let (generation, reason) = (page.hidden("generation"), page.hidden("reason"));
    assert!(server.is_held(&operator, &held).await);
    let again = [("generation", generation.as_str()), ("reason", reason.as_str())];
    let step = post(&server, &ada, &address(&held), &again).await;
    assert!(step.is(303).to.starts_with("/unlocks/"), "{}", step.to);
}

#[tokio::test]
async fn missing_and_invisible_unlocks_look_alike() {
    // A free lock, a lock of another tenant, an unlock of another tenant, an invalid address.
    let server = TestServer::start().await;
    let operator = server.operator().await;
    let tenant = server
        .user("tenant", on(Role::Operator, None, Some("tenant_1")))
        .await;
    let foreign = server.hold(&operator, "tenant_12:a").await;
    let step = begun(&server, &operator, &foreign).await;
    let unseen = see(&server, &tenant, &address(&foreign)).await;
    unseen.is(404).has("This resource is not held on builtin.");
    see(&server, &tenant, "/unlock/builtin/tenant_12:never")
        .await
        .is(404)
        .has("This resource is not held on builtin.");
    see(&server, &tenant, &step)
        .await
        .is(404)
        .has("No unlock has this id");
    see(&server, &tenant, "/unlock/no-such/tenant_1:a").await.is(404);
    see(&server, &tenant, "/unlock/Not%20A%20Name/tenant_1:a")
        .await
        .is(404);
    see(&server, &tenant, "/unlocks/%00").await.is(404);
}

#[tokio::test]
async fn an_unlock_on_a_backend_never_read_is_unknown() {
    // Nothing listens at the address. "Not held" would end the search for a lock that is stuck there.
    let server = TestServer::builder()
        .config("[[backend]]\nname = \"cache\"\nkind = \"redis\"\nurls = [\"redis://127.0.0.1:1\"]\npatterns = [\"*\"]\n")
        .start()
        .await;
    let ada = server.user("ada", on(Role::Operator, None, None)).await;
    let tenant = server
        .user("tenant", on(Role::Operator, None, Some("tenant_1")))
        .await;
    let path = "/unlock/cache/tenant_1:close";
    eventually("the backend is down", async || {
        let page = see(&server, &ada, path).await;
        page.text
            .contains("it is unknown whether this resource is held on cache, which is down: ")
    })
    .await;
    for caller in [&ada, &tenant] {
        let page = see(&server, caller, path).await;
        page.is(503).has("Free or held: unknown");
        assert!(!page.text.contains("Nothing to unlock"), "{}", page.text);
        assert!(!page.text.contains("may have been released"), "{}", page.text);
    }
    let page = see(&server, &tenant, path).await;
    page.has("which of its locks are held is unknown");
    assert!(!page.text.contains("which is down"), "{}", page.text);
    // Outside of the scope the status of the backend stays hidden.
    see(&server, &tenant, "/unlock/cache/tenant_2:close")
        .await
        .is(404);
}
