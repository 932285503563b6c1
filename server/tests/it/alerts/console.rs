//! A whole server: an alert fires, is shown by the API and on the page, is acknowledged and silenced; rules are edited.

use crate::support::{TestServer, bearer, token};
use domain::access::{Grant, Role};
use leasehold::alerts::from_toml;
use leasehold::identity::{NewToken, Principal};
use serde_json::{Value, json};

use testkit::eventually;

async fn fires(console: &TestServer, rule: &str) -> Option<Value> {
    let alerts = console.json("/v1/alerts").await;
    let found = alerts["alerts"]
        .as_array()?
        .iter()
        .find(|alert| alert["rule"] == rule);
    found.cloned()
}

#[tokio::test(flavor = "multi_thread")]
async fn alerts_are_acknowledged_and_silenced_with_audit_entries() {
    // A refused write; then an operator's acts, with one silence that has no end.
    let console = TestServer::builder().operator().start().await;
    let report = json!({"resource": "jobs/<b>1", "fencingToken": 3, "highestToken": 5, "source": "test"});
    let sent = console
        .client
        .post(console.url("/v1/fencing/rejections"))
        .json(&report);
    assert!(sent.send().await.unwrap().status().is_success());
    eventually("the refused write fires", || async {
        fires(&console, "fencing_rejections").await.is_some()
    })
    .await;
    let alert = fires(&console, "fencing_rejections").await.unwrap();
    assert_eq!(alert["state"], "firing");
    assert_eq!(alert["labels"]["resource"], "jobs/<b>1");
    let page = console.get("/alerts").await.text().await.unwrap();
    assert!(page.contains("1\u{a0}group firing") && !page.contains("jobs/<b>1"));
    let ack = format!("/v1/alerts/{}/ack", alert["id"].as_str().unwrap());
    let acked = console
        .client
        .post(console.url(&ack))
        .json(&json!({"note": "on it"}));
    assert_eq!(acked.send().await.unwrap().status(), 204);
    let endless =
        json!({"matchers": [{"label": "prefix", "value": "jobs/"}], "lasts": "", "comment": "later"});
    let refused = console
        .client
        .post(console.url("/v1/silences"))
        .json(&endless)
        .send()
        .await
        .unwrap();
    assert_eq!(refused.status(), 400);
    assert_eq!(refused.json::<Value>().await.unwrap()["field"], "lasts");
    let silence =
        json!({"matchers": [{"label": "prefix", "value": "jobs/"}], "lasts": "2h", "comment": "a drill"});
    let made = console
        .client
        .post(console.url("/v1/silences"))
        .json(&silence)
        .send()
        .await
        .unwrap();
    assert_eq!(made.status(), 201);
    let seen = fires(&console, "fencing_rejections").await.unwrap();
    assert_eq!(seen["isSilenced"], true);
    assert!(!seen["acknowledgedBy"].is_null());
    let admin = token(&console.serving, Role::Admin).await;
    for action in ["ALERT_ACKED", "SILENCE_CREATE"] {
        assert_eq!(recorded(&console, admin.expose(), action).await, 1, "{action}");
    }
}

/// Audit entries with this action.
async fn recorded(console: &TestServer, admin: &str, action: &str) -> usize {
    let url = console.url(&format!("/v1/audit?action={action}"));
    let acquiring = reqwest::Client::new().get(url).headers(bearer(admin));
    let page: Value = acquiring.send().await.unwrap().json().await.unwrap();
    page["entries"].as_array().unwrap().len()
}

#[tokio::test(flavor = "multi_thread")]
async fn only_admins_edit_rules_and_every_rule_page_opens() {
    // An operator who edits no rule; an admin who does, with an unknown prefix and an unknown
    // receiver.
    let console = TestServer::builder().operator().start().await;
    let rule = json!({"condition": "contention", "prefix": "nothing/", "id": "mine"});
    let forbidden = console
        .client
        .put(console.url("/v1/rules"))
        .json(&rule)
        .send()
        .await
        .unwrap();
    assert_eq!(forbidden.status(), 403);
    let admin = token(&console.serving, Role::Admin).await;
    let put = |body: Value| {
        let request = reqwest::Client::new().put(console.url("/v1/rules"));
        request.headers(bearer(admin.expose())).json(&body).send()
    };
    let unknown = put(rule.clone()).await.unwrap();
    assert_eq!(unknown.json::<Value>().await.unwrap()["field"], "prefix");
    let mut nobody = rule.clone();
    nobody["receivers"] = json!(["nobody"]);
    nobody["anyPrefix"] = json!(true);
    let nobody = put(nobody).await.unwrap();
    assert_eq!(nobody.json::<Value>().await.unwrap()["field"], "receivers");
    let mut known = rule;
    known["anyPrefix"] = json!(true);
    assert_eq!(put(known).await.unwrap().status(), 200);
    assert_eq!(recorded(&console, admin.expose(), "RULE_CREATE").await, 1);
    let toml = console.get("/v1/rules?format=toml").await.text().await.unwrap();
    let drafts = from_toml(&toml).unwrap();
    assert!(
        drafts
            .iter()
            .any(|draft| draft.id == "mine" && draft.prefix == "nothing/")
    );
    let led = "/alerts/rules/new?condition=long_held&backends=builtin&prefix=jobs/&with.longer_than=90s";
    let led = console.get(led).await.text().await.unwrap();
    for part in ["value=\"90s\"", "value=\"jobs/\"", "value=\"builtin\" selected"] {
        assert!(led.contains(part), "{part}: {led}");
    }
    for page in [
        "/alerts/rules/long_held",
        "/alerts/rules/new?condition=contention&threshold=60%25",
        "/alerts/silences/new",
        "/docs/alerts",
    ] {
        assert_eq!(console.get(page).await.status(), 200, "{page}");
    }
}

async fn acquire(console: &TestServer, resource: &str, owner: &str, ttl_seconds: u32) -> Value {
    let body = json!({"resource": resource, "ownerId": owner, "ttlSeconds": ttl_seconds});
    let acquiring = console.client.post(console.url("/v1/locks/acquire")).json(&body);
    acquiring.send().await.unwrap().json().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn releases_of_lost_leases_and_refused_acquires_fire() {
    // Three leases that ran out and are then released; a lock that ten others ask for in vain.
    let console = TestServer::builder().operator().start().await;
    let admin = token(&console.serving, Role::Admin).await;
    let rule =
        json!({"id": "mine", "condition": "contention", "anyPrefix": true, "prefix": "busy/", "for": "0s"});
    let put = reqwest::Client::new().put(console.url("/v1/rules"));
    let put = put
        .headers(bearer(admin.expose()))
        .json(&rule)
        .send()
        .await
        .unwrap();
    assert_eq!(put.status(), 200);
    assert_eq!(acquire(&console, "busy/1", "holder", 600).await["acquired"], true);
    for _ in 0..10 {
        assert_eq!(acquire(&console, "busy/1", "other", 600).await["acquired"], false);
    }
    for number in 0..3 {
        let lease = acquire(&console, &format!("short/{number}"), "w", 1).await;
        let path = format!("/v1/locks/{}", lease["leaseId"].as_str().unwrap());
        eventually("the lease ran out", || async {
            console.json(&path).await["state"] != "held"
        })
        .await;
        let release = console.client.delete(console.url(&path)).send().await.unwrap();
        assert_eq!(release.json::<Value>().await.unwrap()["released"], false);
    }
    for rule in ["release_failures", "mine"] {
        eventually(rule, || async { fires(&console, rule).await.is_some() }).await;
    }
    let firing = fires(&console, "mine").await.unwrap();
    assert!(
        firing["why"].as_str().unwrap().contains("waited or were refused"),
        "{firing}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn tenant_viewer_sees_alerts_of_its_own_prefix_only() {
    // A lease that ran out; a rule on its tenant and one on all tenants; viewers of this tenant and of the next.
    let console = TestServer::builder().operator().start().await;
    let admin = token(&console.serving, Role::Admin).await;
    for (id, prefix) in [("ours", "tenant_1:"), ("everyones", "")] {
        let rule = json!({"id": id, "condition": "lease_losses", "anyPrefix": true, "prefix": prefix, "with": {"count": "1"}});
        let put = reqwest::Client::new().put(console.url("/v1/rules"));
        let put = put
            .headers(bearer(admin.expose()))
            .json(&rule)
            .send()
            .await
            .unwrap();
        assert_eq!(put.status(), 200);
    }
    let lease = acquire(&console, "tenant_1:job", "w", 1).await;
    assert_eq!(lease["acquired"], true);
    for rule in ["ours", "everyones"] {
        eventually(rule, || async { fires(&console, rule).await.is_some() }).await;
    }
    let seen_by = async |prefix: &str| -> Vec<Value> {
        let new = NewToken {
            name: format!("viewer-{}", prefix.trim_end_matches(':')),
            grants: vec![Grant {
                role: Role::Viewer,
                backend: None,
                prefix: Some(prefix.to_owned()),
            }],
            expires_in: None,
        };
        let who = Principal::system("test");
        let token = console.serving.identity().create_token(&who, new).await.unwrap();
        let acquiring = reqwest::Client::new()
            .get(console.url("/v1/alerts"))
            .headers(bearer(token.expose()));
        let page: Value = acquiring.send().await.unwrap().json().await.unwrap();
        let of_prefix = page["alerts"].as_array().unwrap().iter();
        let of_prefix = of_prefix
            .filter(|alert| alert["labels"]["resource"].is_null() && alert["labels"]["prefix"].is_string());
        of_prefix.map(|alert| alert["rule"].clone()).collect()
    };
    assert_eq!(seen_by("tenant_1:").await, [json!("ours")]);
    assert_eq!(seen_by("tenant_2:").await, Vec::<Value>::new());
}

#[test]
fn the_documented_toml_parses_and_each_condition_has_a_runbook() {
    // The example of docs/alerts.md through the reader, and a heading for every condition.
    let docs = include_str!("../../../../docs/alerts.md");
    let example = docs
        .split("```toml\n")
        .nth(1)
        .unwrap()
        .split("```")
        .next()
        .unwrap();
    let drafts = from_toml(example).unwrap();
    let known = domain::alerts::KnownNames {
        backends: &[],
        prefix: None,
        receivers: None,
    };
    assert!(domain::alerts::parse(&drafts[0], &known).is_ok());
    for kind in domain::alerts::ConditionKind::ALL {
        assert!(
            docs.contains(&format!("### `{}` ", kind.as_str())),
            "{}",
            kind.as_str()
        );
        for param in kind.info().params {
            assert!(docs.contains(&format!("`{}`", param.name)));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn alerts_are_listed_in_pages() {
    // Three refused writes, one alert per page: in the order of the whole list.
    let console = TestServer::builder().operator().start().await;
    for resource in ["jobs/1", "jobs/2", "jobs/3"] {
        let report = json!({"resource": resource, "fencingToken": 3, "highestToken": 5, "source": "test"});
        let sent = console
            .client
            .post(console.url("/v1/fencing/rejections"))
            .json(&report);
        assert!(sent.send().await.unwrap().status().is_success());
    }
    let ids = |page: &Value| -> Vec<Value> {
        let alerts = page["alerts"].as_array().unwrap().iter();
        alerts.map(|alert| alert["id"].clone()).collect()
    };
    eventually("all of them fire", || async {
        ids(&console.json("/v1/alerts").await).len() == 3
    })
    .await;
    let all = console.json("/v1/alerts").await;
    assert_eq!(all["nextCursor"], Value::Null);
    let (mut path, mut found) = ("/v1/alerts?limit=1".to_owned(), Vec::new());
    loop {
        let page = console.json(&path).await;
        assert_eq!(ids(&page).len(), 1, "{page}");
        found.extend(ids(&page));
        let Some(cursor) = page["nextCursor"].as_str() else {
            break;
        };
        path = format!("/v1/alerts?limit=1&cursor={cursor}");
    }
    assert_eq!(found, ids(&all));
    for (query, field) in [
        ("limit=0", "limit"),
        ("limit=1001", "limit"),
        ("cursor=1.none.2.3", "cursor"),
    ] {
        let refused = console.get(&format!("/v1/alerts?{query}")).await;
        assert_eq!(refused.status(), 400, "{query}");
        assert_eq!(refused.json::<Value>().await.unwrap()["field"], field);
    }
}
