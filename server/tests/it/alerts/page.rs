//! `/alerts`, as a browser without a script uses it.

use crate::support::{Browser, TestServer, on};
use domain::access::Role;
use reqwest::{Method, Response};
use serde_json::json;

use testkit::eventually;

async fn shown(answer: Response) -> (u16, String) {
    let status = answer.status().as_u16();
    (status, answer.text().await.unwrap())
}

/// The text between two others, from the first occurrence on.
fn between<'a>(page: &'a str, before: &str, after: &str) -> &'a str {
    let rest = page
        .split_once(before)
        .unwrap_or_else(|| panic!("{before}: {page}"))
        .1;
    rest.split_once(after).unwrap().0
}

/// An operator and admin, on a server with one rejected write that fires.
async fn firing() -> (TestServer, Browser) {
    let server = TestServer::builder().redis().start().await;
    let grants = [Role::Admin, Role::Operator].map(|role| on(role, None, None));
    server.add_user("ada", grants.concat()).await;
    let client = server.token("client", on(Role::Client, None, None)).await;
    let rejection = json!({"resource": "jobs/1", "fencingToken": 3, "highestToken": 5, "source": "test"});
    let reported = server
        .as_user(&client)
        .post("/v1/fencing/rejections", &rejection)
        .await;
    assert_eq!(reported.0, 202, "{}", reported.1);
    let browser = server.signed_in("ada").await;
    eventually("the rejected write fires", async || {
        let (_, page) = shown(browser.get("/alerts").await).await;
        page.contains("1\u{a0}group firing")
    })
    .await;
    (server, browser)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_is_expanded_acknowledged_and_undone_on_the_page() {
    // The number of groups is in the title of other pages; an acknowledged group does not fire until that is undone.
    let (_server, browser) = firing().await;
    let (_, page) = shown(browser.get("/alerts").await).await;
    let group = between(&page, "name=\"group\" value=\"", "\"").to_owned();
    let (_, locks) = shown(browser.get("/locks").await).await;
    assert!(locks.contains("<title>(1) Locks"), "{locks}");
    let (_, open) = shown(browser.get(&format!("/alerts?open={group}")).await).await;
    assert!(
        open.contains("Alerts of the group, the worst first") && open.contains("Runbook"),
        "{open}"
    );
    let acked = browser.post("/alerts/ack", &[("group", group.as_str())]).await;
    assert_eq!(acked.headers()["location"], "/alerts?acked");
    let (_, page) = shown(browser.get("/alerts?acked").await).await;
    assert!(
        page.contains("Acknowledged.") && page.contains("by ada"),
        "{page}"
    );
    assert!(page.contains("No alerts firing"), "{page}");
    let undone = browser.post("/alerts/unack", &[("group", group.as_str())]).await;
    assert_eq!(undone.headers()["location"], "/alerts?unacked");
    let (_, page) = shown(browser.get("/alerts").await).await;
    assert!(page.contains("1\u{a0}group firing"), "{page}");
    let (status, page) = shown(browser.post("/alerts/ack", &[("group", "none")]).await).await;
    assert_eq!(status, 404);
    assert!(
        page.contains("This open alert does not exist any more."),
        "{page}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn filters_of_the_alerts_page_are_in_its_url() {
    // A filter that matches, one that does not, and an invalid one.
    let (_server, browser) = firing().await;
    let (_, page) = shown(browser.get("/alerts?rule=fencing_rejections&q=JOBS").await).await;
    assert!(page.contains("name=\"group\""), "{page}");
    let (_, page) = shown(browser.get("/alerts?severity=info").await).await;
    assert!(page.contains("No group matches the filter."), "{page}");
    let (status, page) = shown(browser.get("/alerts?state=loud").await).await;
    assert_eq!(status, 400);
    assert!(page.contains("must be one of firing, acknowledged"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silence_starts_from_a_group_and_is_extended_and_ended() {
    // The matchers come from the group; an invalid length keeps what was typed.
    let (_server, browser) = firing().await;
    let (_, page) = shown(browser.get("/alerts").await).await;
    let path = between(&page, "href=\"/alerts/silences/new?rule", "\"").replace("&amp;", "&");
    let (_, form) = shown(browser.get(&format!("/alerts/silences/new?rule{path}")).await).await;
    assert!(form.contains("value=\"fencing_rejections\""), "{form}");
    assert!(
        form.contains("1 alert matches now") && form.contains("1 of 1 groups<"),
        "{form}"
    );
    let fields = |length: &'static str, own: &'static str| {
        [
            ("label1", "rule"),
            ("value1", "fencing_rejections"),
            ("length", length),
            ("lasts", own),
            ("comment", "the ledger is being moved"),
            ("act", "save"),
        ]
    };
    let (status, refused) = shown(browser.post("/alerts/silences", &fields("own", "900d")).await).await;
    assert_eq!(status, 422);
    assert!(
        refused.contains("It is out of range: use 1m to 90d."),
        "{refused}"
    );
    assert!(refused.contains("the ledger is being moved"), "{refused}");
    let made = browser.post("/alerts/silences", &fields("2h", "")).await;
    assert_eq!(made.headers()["location"], "/alerts?silenced");
    let (_, page) = shown(browser.get("/alerts?state=silenced").await).await;
    assert!(
        page.contains("the ledger is being moved") && page.contains("No alerts firing"),
        "{page}"
    );
    let id = between(&page, "action=\"/alerts/silences/", "/extend");
    let extend = format!("/alerts/silences/{id}/extend");
    let extended = browser.post(&extend, &[("lasts", "1d")]).await;
    assert_eq!(extended.headers()["location"], "/alerts?extended");
    let ended = browser.post(&format!("/alerts/silences/{id}/end"), &[]).await;
    assert_eq!(ended.headers()["location"], "/alerts?ended");
    let (_, page) = shown(browser.get("/alerts").await).await;
    assert!(page.contains("1\u{a0}group firing"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_notified_group_stays_one_line_after_a_regrouping() {
    // Two rejected writes are one notification; its rule groups by resource since.
    let (server, browser) = firing().await;
    let grants = [Role::Admin, Role::Client].map(|role| on(role, None, None));
    let admin = server.token("admin", grants.concat()).await;
    let rejection = json!({"resource": "jobs/2", "fencingToken": 3, "highestToken": 5, "source": "test"});
    let reported = server.as_user(&admin);
    reported
        .done(Method::POST, "/v1/fencing/rejections", &rejection)
        .await;
    eventually("both fire", async || {
        let (_, alerts) = server.as_user(&admin).get("/v1/alerts").await;
        let alerts = alerts["alerts"].as_array().unwrap().clone();
        let firing = alerts
            .iter()
            .filter(|alert| alert["rule"] == "fencing_rejections" && alert["state"] == "firing");
        firing.count() == 2
    })
    .await;
    let rule =
        json!({"id": "fencing_rejections", "condition": "fencing_rejections", "groupBy": ["resource"]});
    server.as_user(&admin).done(Method::PUT, "/v1/rules", &rule).await;
    let (_, page) = shown(browser.get("/alerts").await).await;
    assert!(page.contains("1\u{a0}group firing"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_form_of_a_removed_rule_is_saved_as_a_new_one() {
    // Another admin removes the rule while its form is filled in.
    let server = TestServer::start().await;
    server.add_user("ada", on(Role::Admin, None, None)).await;
    let browser = server.signed_in("ada").await;
    let removed = browser.post("/alerts/rules/fencing_rejections/remove", &[]).await;
    assert_eq!(removed.headers()["location"], "/alerts?removed");
    let fields = |id: &'static str, version: &'static str| {
        [
            ("id", id),
            ("version", version),
            ("condition", "fencing_rejections"),
            ("name", "Typed meanwhile"),
            ("severity", "critical"),
            ("for", "0s"),
            ("keep_firing_for", "5m"),
            ("with.count", "1"),
            ("with.window", "5m"),
            ("act", "save"),
        ]
    };
    let refused = browser
        .post("/alerts/rules", &fields("fencing_rejections", "1"))
        .await;
    let (status, page) = shown(refused).await;
    assert_eq!(status, 404);
    for part in [
        "The rule was removed.",
        "Save as a new rule",
        "value=\"Typed meanwhile\"",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    for hidden in ["id", "version"] {
        let value = between(&page, &format!("name=\"{hidden}\" value=\""), "\"");
        assert_eq!(value, "", "{hidden}: {page}");
    }
    let saved = browser.post("/alerts/rules", &fields("", "")).await;
    let location = saved.headers()["location"].to_str().unwrap();
    assert!(location.starts_with("/alerts/rules/rule_"), "{location}");
}
