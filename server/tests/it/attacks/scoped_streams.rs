//! A tenant opens event streams to learn how busy others are, or to use up the server's time.

use crate::support::{TestCaller, TestServer, on};
use std::time::Duration;

use domain::access::{Grant, Role};
use reqwest::{Client, Response};
use runtime::clock::Clock;
use serde_json::{Value, json};

async fn open(server: &TestServer, token: &TestCaller, path: &str) -> Response {
    let request = Client::new().get(server.url(path)).bearer_auth(token.secret());
    request.send().await.unwrap()
}

/// The next hint of a stream.
async fn hint(stream: &mut Response, text: &mut String) -> Value {
    loop {
        if let Some((event, rest)) = text.clone().split_once("\n\n") {
            *text = rest.to_owned();
            let data = event.lines().find_map(|line| line.strip_prefix("data:"));
            if let Some(data) = data {
                return serde_json::from_str(data.trim()).unwrap();
            }
        }
        let part = tokio::time::timeout(Duration::from_secs(30), stream.chunk()).await;
        text.push_str(&String::from_utf8_lossy(&part.unwrap().unwrap().unwrap()));
    }
}

fn client_and_viewer(backend: Option<&str>) -> Vec<Grant> {
    [Role::Viewer, Role::Client]
        .map(|role| on(role, backend, Some("tenant_1")))
        .concat()
}

#[tokio::test]
async fn foreign_changes_do_not_show_in_a_scoped_stream() {
    // The other tenant acquires all the time: no number changes, and no event comes sooner for it. Then one's own lock shows.
    let server = TestServer::builder().redis().start().await;
    let tenant = server.token("tenant", client_and_viewer(Some("builtin"))).await;
    let other = server
        .token("other", on(Role::Client, None, Some("tenant_2")))
        .await;
    let mut stream = open(&server, &tenant, "/v1/events").await;
    let mut text = String::new();
    let (clock, mut foreign) = (Clock::start(), 0);
    let acquires = async {
        loop {
            server
                .as_user(&other)
                .acquire(&format!("tenant_2:{foreign}"))
                .await;
            foreign += 1;
            // The pace of the other tenant.
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    // A hint of its own follows every five seconds, and one more when the displayed age of a backend grows by five
    // seconds. With one for each foreign change, four would follow within two seconds.
    let hints = async {
        hint(&mut stream, &mut text).await;
        let began = clock.tick();
        for _ in 0..4 {
            let hint = hint(&mut stream, &mut text).await;
            let numbers = (&hint["changes"], &hint["heldTotal"]);
            assert_eq!(numbers, (&json!(0), &json!(0)), "{hint}");
        }
        clock.tick().since(began)
    };
    let took_ms = tokio::select! {
        took_ms = hints => took_ms,
        () = acquires => unreachable!("it does not end"),
    };
    assert!(foreign > 20, "{foreign}");
    assert!(took_ms > 4_000, "{took_ms} ms");
    server.as_user(&tenant).acquire("tenant_1:a").await;
    let mut own = hint(&mut stream, &mut text).await;
    while own["changes"] == 0 {
        own = hint(&mut stream, &mut text).await;
    }
    let numbers = (&own["changes"], &own["heldTotal"]);
    assert_eq!(numbers, (&json!(1), &json!(1)), "{own}");
}

#[tokio::test]
async fn alerts_and_activity_show_only_to_those_who_may_see_them() {
    // A rejection of the other tenant, which fires: an auditor of everything gets hints of it, the tenant none.
    let server = TestServer::builder().redis().start().await;
    let tenant = server.token("tenant", client_and_viewer(None)).await;
    let other = [Role::Viewer, Role::Client].map(|role| on(role, None, Some("tenant_2")));
    let other = server.token("other", other.concat()).await;
    let all = [Role::Viewer, Role::Auditor].map(|role| on(role, None, None));
    let auditor = server.token("auditor", all.concat()).await;
    let (mut seen, mut text) = (open(&server, &auditor, "/v1/events").await, String::new());
    let (mut scoped, mut scoped_text) = (open(&server, &tenant, "/v1/events").await, String::new());
    let before = hint(&mut seen, &mut text).await;
    let first = hint(&mut scoped, &mut scoped_text).await;
    let rejection = json!({"resource": "tenant_2:a", "fencingToken": 3, "highestToken": 5, "source": "test"});
    let reported = server
        .as_user(&other)
        .post("/v1/fencing/rejections", &rejection)
        .await;
    assert_eq!(reported.0, 202, "{}", reported.1);
    let mut after = hint(&mut seen, &mut text).await;
    while after["firingGroups"] == 0 {
        after = hint(&mut seen, &mut text).await;
    }
    assert_eq!(after["firingGroups"], 1, "{after}");
    assert_ne!(after["alertsRevision"], before["alertsRevision"], "{after}");
    assert!(
        after["activityRevision"].as_u64() > before["activityRevision"].as_u64(),
        "{after}"
    );
    for _ in 0..2 {
        let hint = hint(&mut scoped, &mut scoped_text).await;
        for member in ["alertsRevision", "activityRevision", "firingGroups"] {
            assert_eq!(hint[member], first[member], "{member}: {hint}");
        }
    }
    // A rule of the other tenant is as invisible; one about the tenant's own locks shows.
    let admin = server.token("admin", on(Role::Admin, None, None)).await;
    let rule = |id: &str, prefix: &str| {
        let rule =
            json!({"id": id, "name": id, "condition": "long_held", "prefix": prefix, "anyPrefix": true});
        admin.authenticate(Client::new().put(server.url("/v1/rules")).json(&rule))
    };
    assert_eq!(rule("theirs", "tenant_2:a").send().await.unwrap().status(), 200);
    for _ in 0..2 {
        let hint = hint(&mut scoped, &mut scoped_text).await;
        assert_eq!(hint["alertsRevision"], first["alertsRevision"], "{hint}");
    }
    assert_eq!(rule("own", "tenant_1:a").send().await.unwrap().status(), 200);
    let mut own = hint(&mut scoped, &mut scoped_text).await;
    while own["alertsRevision"] == first["alertsRevision"] {
        own = hint(&mut scoped, &mut scoped_text).await;
    }
}

#[tokio::test]
async fn a_token_has_fifty_streams_and_one_for_each_lease() {
    // The next one is refused with 429; the stream of a lease of the same token is not.
    let server = TestServer::builder().redis().start().await;
    let token = server.token("tenant", client_and_viewer(None)).await;
    let mut streams = Vec::new();
    for _ in 0..50 {
        let stream = open(&server, &token, "/v1/events").await;
        assert_eq!(stream.status(), 200);
        streams.push(stream);
    }
    let refused = open(&server, &token, "/v1/events").await;
    assert_eq!(refused.status(), 429);
    assert!(refused.headers().contains_key("retry-after"));
    let (_, lease) = server.as_user(&token).acquire("tenant_1:a").await;
    let path = format!("/v1/locks/{}/events", lease["leaseId"].as_str().unwrap());
    assert_eq!(open(&server, &token, &path).await.status(), 200);
    drop(streams);
}
