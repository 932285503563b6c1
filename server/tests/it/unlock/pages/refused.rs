//! Refusals: told at the field or at the top, with what was typed; a row in the record, and the lock untouched.

use domain::access::Role;
use leasehold::throwaway::{RedisOptions, Throwaway};
use reqwest::{Client, Method};

use super::super::stage::{Caller, Home, REASON, Stage, on};
use super::{address, begun, id, post, see, send};

#[tokio::test]
async fn a_reason_that_tells_nothing_is_told_at_its_field_and_kept() {
    // White space, dots, nine characters, too many: 422 at the field, the text stays, a row each, no intent.
    let stage = Stage::start().await;
    let operator = stage.operator().await;
    let ada = stage.person("ada", on(Role::Operator, None, None)).await;
    let held = stage.hold(&operator, "r").await;
    let long = "word ".repeat(101);
    let weak = [
        ("   \t \r\n", "A reason is needed"),
        ("..........", "A reason is made of words"),
        ("stuck now", "at least 10 characters, and this has 9"),
        (long.as_str(), "at most 500 characters, and this has 504"),
    ];
    for (reason, why) in weak {
        let form = [("generation", held.generation.as_str()), ("reason", reason)];
        let page = post(&stage, &ada, &address(&held), &form).await;
        page.is(422)
            .has(why)
            .has("aria-invalid=\"true\"")
            .has("id=\"reason-note\"");
        page.has(&format!(">\n{}</textarea>", reason.trim_end_matches('\r')));
        assert_eq!(page.hidden("generation"), held.generation);
    }
    let rows = stage.record().await;
    assert_eq!(rows.len(), weak.len());
    assert!(
        rows.iter()
            .all(|row| row.outcome == "reason_too_weak" && row.actor_name == "ada")
    );
    assert!(stage.is_held(&operator, &held).await);
}

#[tokio::test]
async fn a_wrong_name_is_told_by_its_character_and_the_third_ends_the_intent() {
    // A look-alike, then a space at the end, then nothing like it: 422 each; what was typed stays until it is cancelled.
    let stage = Stage::start().await;
    let operator = stage.operator().await;
    let ada = stage.person("ada", on(Role::Operator, None, None)).await;
    let held = stage.hold(&operator, "jobs/close").await;
    let step = begun(&stage, &ada, &held).await;
    let path = format!("{step}/confirm");
    let first = post(&stage, &ada, &path, &[("resource", "j\u{43e}bs/close")]).await;
    first
        .is(422)
        .has("two more wrong names cancel this intent")
        .has("(U+043E)")
        .has("value=\"j\u{43e}bs/close\"");
    let second = post(&stage, &ada, &path, &[("resource", "jobs/close ")]).await;
    second
        .is(422)
        .has("one more wrong name")
        .has("U+0020 follows")
        .has("value=\"jobs/close \"");
    let third = post(&stage, &ada, &path, &[("resource", "x")]).await;
    third
        .is(422)
        .has("this intent is cancelled")
        .has("Cancelled")
        .has("Three wrong names were typed");
    let told = stage.told(id(&step)).await;
    let wanted = [
        "intent pending",
        "intent name_mismatch",
        "intent name_mismatch",
        "intent name_mismatch",
        "outcome cancelled",
    ];
    assert_eq!(told, wanted);
    assert!(stage.is_held(&operator, &held).await);
}

#[tokio::test]
async fn hostile_names_are_shown_harmless_and_typed_as_they_are_shown() {
    // Redis keys with markup, a direction mark, a control, spaces: nothing of it becomes markup; typed as shown it works.
    let redis = Throwaway::redis(RedisOptions::default()).await.unwrap();
    let url = redis.url();
    let toml = format!(
        "[[backend]]\nname = \"cache\"\nkind = \"redis\"\nurls = [\"{url}\"]\nunlock_url = \"{url}\"\npatterns = [\"*\"]\npoll = \"200ms\"\n"
    );
    let stage = Stage::on(Home::sqlite(), &toml).await;
    let operator = stage.operator().await;
    let ada = stage.person("ada", on(Role::Operator, None, None)).await;
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
        let held = stage.seen(&operator, "cache", name).await;
        let step = begun(&stage, &ada, &held).await;
        for path in [step.clone(), address(&held)] {
            let page = see(&stage, &ada, &path).await;
            for bad in ["<img", "<script>1", "\u{202e}", "\u{200b}", "\u{7}"] {
                assert!(!page.text.contains(bad), "{bad:?} in {}", page.text);
            }
            page.is(200).has("<bdi dir=\"ltr\">");
        }
        let done = post(&stage, &ada, &format!("{step}/confirm"), &[("resource", shown)]).await;
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
async fn somebody_elses_intent_is_looked_at_and_no_more() {
    // Another operator sees it, and neither confirms nor cancels it; each try is a row.
    let stage = Stage::start().await;
    let operator = stage.operator().await;
    let ada = stage.person("ada", on(Role::Operator, None, None)).await;
    let eve = stage.person("eve", on(Role::Operator, None, None)).await;
    let held = stage.hold(&operator, "r").await;
    let step = begun(&stage, &ada, &held).await;
    let page = see(&stage, &eve, &step).await;
    page.is(200).has("can confirm this intent");
    assert!(!page.text.contains("name=\"resource\"") && !page.text.contains("/cancel"));
    for act in ["confirm", "cancel"] {
        let refused = post(&stage, &eve, &format!("{step}/{act}"), &[("resource", "r")]).await;
        refused.is(403).has("This intent is bound to somebody else");
    }
    let told = stage.told(id(&step)).await;
    assert_eq!(told, ["intent pending", "intent forbidden", "intent forbidden"]);
    assert!(stage.is_held(&operator, &held).await);
}

#[tokio::test]
async fn of_ten_confirmations_at_once_one_acts() {
    // The same form sent ten times in the same moment: one is led on, nine are told, one act in the record.
    let stage = Stage::start().await;
    let operator = stage.operator().await;
    let ada = stage.person("ada", on(Role::Operator, None, None)).await;
    let held = stage.hold(&operator, "r").await;
    let step = begun(&stage, &ada, &held).await;
    let path = format!("{step}/confirm");
    let form = [("resource", "r")];
    let pages = futures::future::join_all((0..10).map(|_| post(&stage, &ada, &path, &form))).await;
    let mut codes: Vec<u16> = pages.iter().map(|page| page.status).collect();
    codes.sort_unstable();
    assert_eq!(codes, [303, 409, 409, 409, 409, 409, 409, 409, 409, 409]);
    let told = stage.told(id(&step)).await;
    assert_eq!(
        told.iter().filter(|row| *row == "act begun").count(),
        1,
        "{told:?}"
    );
}

#[tokio::test]
async fn viewers_and_other_sites_post_in_vain() {
    // A viewer's forged posts; an operator's cookie on a post from elsewhere; nobody at all. Each but the last is a row.
    let stage = Stage::start().await;
    let operator = stage.operator().await;
    let ada = stage.person("ada", on(Role::Operator, None, None)).await;
    let vera = stage.person("vera", on(Role::Viewer, None, None)).await;
    let held = stage.hold(&operator, "r").await;
    let step = begun(&stage, &ada, &held).await;
    let acts = ["confirm", "approve", "cancel", "review", "prove"].map(|act| format!("{step}/{act}"));
    for path in acts.iter().chain([&address(&held)]) {
        post(&stage, &vera, path, &[("resource", "r"), ("reason", REASON)])
            .await
            .is(403)
            .has("Nothing was done")
            .has(REASON);
    }
    let Caller::Browser(cookie) = &ada else { panic!() };
    for header in [
        ("sec-fetch-site", "cross-site"),
        ("origin", "https://evil.example"),
    ] {
        let request = Client::new()
            .post(stage.url(&format!("{step}/confirm")))
            .header("cookie", format!("leasehold={cookie}"))
            .header(header.0, header.1)
            .header("content-type", "application/x-www-form-urlencoded")
            .header("accept", "text/html")
            .body("resource=planted");
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), 403, "{header:?}");
        let text = answer.text().await.unwrap();
        assert!(
            text.contains("another site sent this") && !text.contains("planted"),
            "{text}"
        );
    }
    let nobody = Caller::Browser("nobody".to_owned());
    send(
        &stage,
        &nobody,
        (Method::POST, &format!("{step}/confirm")),
        &[("resource", "r")],
    )
    .await
    .is(401);
    let led = see(&stage, &nobody, &step).await;
    assert!(led.is(303).to.starts_with("/sign-in?next="), "{}", led.to);
    assert!(stage.is_held(&operator, &held).await);
    let query = domain::audit::AuditQuery {
        limit: 100,
        action: Some(domain::audit::Action::Deny),
        ..Default::default()
    };
    let denied = stage.audit().await.page(&query).await.unwrap().rows;
    let count = |outcome: &str| denied.iter().filter(|row| row.outcome == outcome).count();
    assert_eq!((count("forbidden"), count("cross_site")), (6, 2), "{denied:?}");
}

#[tokio::test]
async fn what_was_typed_outlives_the_session_and_is_sent_again() {
    // The session ends under a half-written reason; the page shows it, and its form is taken once they are signed in.
    let stage = Stage::start().await;
    let operator = stage.operator().await;
    let ada = stage.person("ada", on(Role::Operator, None, None)).await;
    let held = stage.hold(&operator, "r").await;
    let ended = Caller::Browser("ended".to_owned());
    let form = [("generation", held.generation.as_str()), ("reason", REASON)];
    let page = post(&stage, &ended, &address(&held), &form).await;
    page.is(401).has("you are signed out").has("target=\"_blank\"");
    page.has(&format!("action=\"{}\"", address(&held)));
    let (generation, reason) = (page.hidden("generation"), page.hidden("reason"));
    assert!(stage.is_held(&operator, &held).await);
    let again = [("generation", generation.as_str()), ("reason", reason.as_str())];
    let step = post(&stage, &ada, &address(&held), &again).await;
    assert!(step.is(303).to.starts_with("/unlocks/"), "{}", step.to);
}

#[tokio::test]
async fn what_is_not_there_or_not_to_be_seen_is_told_alike() {
    // A free name, a tenant's neighbour, an unlock of another tenant, an address that is none.
    let stage = Stage::start().await;
    let operator = stage.operator().await;
    let tenant = stage
        .person("tenant", on(Role::Operator, None, Some("tenant_1")))
        .await;
    let foreign = stage.hold(&operator, "tenant_12:a").await;
    let step = begun(&stage, &operator, &foreign).await;
    let unseen = see(&stage, &tenant, &address(&foreign)).await;
    unseen.is(404).has("This resource is not held on builtin.");
    see(&stage, &tenant, "/unlock/builtin/tenant_12:never")
        .await
        .is(404)
        .has("This resource is not held on builtin.");
    see(&stage, &tenant, &step)
        .await
        .is(404)
        .has("There is no such unlock");
    see(&stage, &tenant, "/unlock/no-such/tenant_1:a").await.is(404);
    see(&stage, &tenant, "/unlock/Not%20A%20Name/tenant_1:a")
        .await
        .is(404);
    see(&stage, &tenant, "/unlocks/%00").await.is(404);
}
