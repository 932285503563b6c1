//! A change during a backend's outage: the window in which it happened, and a hold whose length is an interval.

use crate::support::TestServer;
use std::time::Duration;

use ::testkit::{EtcdOptions, Throwaway};
use chrono::{DateTime, Utc};
use domain::access::Role;
use etcd_client::PutOptions;
use serde_json::{Value, json};

use crate::support::proxy::{Link, Proxy};
use testkit::eventually;

const LOCK: &str = "/v1/inventory/coord/%2Flocks%2Fhidden?source=key";

#[expect(clippy::disallowed_methods, reason = "the moment at which this test acts")]
fn wall() -> DateTime<Utc> {
    Utc::now()
}

async fn status(console: &TestServer) -> String {
    let page = console.json("/v1/inventory?backend=coord").await;
    page["backends"][0]["status"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

/// The newest event of the lock of this kind.
async fn seen(console: &TestServer, kind: &str) -> Option<Value> {
    let answer = console.json(LOCK).await;
    let seen = answer["seen"].as_array()?;
    seen.iter().find(|event| event["kind"] == kind).cloned()
}

fn moment(value: &Value) -> DateTime<Utc> {
    value.as_str().unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_end_in_an_outage_has_a_window_and_the_hold_an_interval() {
    let options = EtcdOptions {
        fast: true,
        ..EtcdOptions::default()
    };
    let etcd = Throwaway::etcd(options).await.unwrap();
    let proxy = Proxy::start(etcd.port()).await;
    let toml = format!(
        "[[backend]]\nname = \"coord\"\nkind = \"etcd\"\nendpoints = [\"http://127.0.0.1:{}\"]\n\
         prefixes = [\"/locks/\"]\npoll_interval = \"1s\"\ntimeout = \"500ms\"\n",
        proxy.port()
    );
    let console = TestServer::builder().config(&toml).operator().start().await;
    console.ready().await;
    let mut client = etcd_client::Client::connect([etcd.endpoint()], None)
        .await
        .unwrap();
    let lease = client.lease_grant(600, None).await.unwrap().id();
    let on_lease = PutOptions::new().with_lease(lease);
    let begun = wall();
    client
        .put("/locks/hidden", "worker-1", Some(on_lease))
        .await
        .unwrap();
    console
        .inventory_where("q=/locks/hidden", |page| page["total"] == 1)
        .await;
    proxy.set(Link::Blackhole).await;
    eventually("the outage shows", async || status(&console).await != "live").await;
    client.lease_revoke(lease).await.unwrap();
    let ended = wall();
    // Long enough that a wrong time of the lease's end would show.
    tokio::time::sleep(Duration::from_secs(2)).await;
    proxy.set(Link::Pass).await;
    console
        .inventory_where("q=/locks/hidden", |page| {
            page["total"] == 0 && page["complete"] == true
        })
        .await;
    // The page of a free lock shows the same; the JSON answer lists held locks only.
    client.put("/locks/hidden", "worker-2", None).await.unwrap();
    eventually("the end is among its events", async || {
        seen(&console, "released").await.is_some()
    })
    .await;
    let released = seen(&console, "released").await.unwrap();
    let (after, at) = (moment(&released["notBefore"]), moment(&released["at"]));
    assert!(after < ended && ended < at, "{after} < {ended} < {at}");
    assert!(
        after > begun && at - ended >= chrono::TimeDelta::seconds(1),
        "{released}"
    );
    let again = seen(&console, "acquired").await.unwrap();
    assert!(
        again["ownerId"] == "worker-2" && again.get("notBefore").is_none(),
        "{again}"
    );
    shown(&console).await;
    previewed(&console).await;
    console.stop().await;
}

/// The preview of a rule on the backend: a gap in which nothing fires, and a hold of uncertain length.
async fn previewed(console: &TestServer) {
    let rule = json!({
        "condition": "long_held", "backends": ["coord"], "for": "0s",
        "with": {"longer_than": "1h", "times_p95": ""}
    });
    let admin = console.token_of(Role::Admin).await;
    eventually("the preview has the outage", async || {
        let (status, preview) = console.as_user(&admin).post("/v1/rules/preview", &rule).await;
        assert_eq!(status, 200, "{preview}");
        preview["gaps"].as_u64() >= Some(1) && preview["holdsUncertain"] == 1 && preview["count"] == 0
    })
    .await;
}

/// On the page and in the sums.
async fn shown(console: &TestServer) {
    // The page: the window, a gap on the timeline, and a hold that is an interval.
    eventually("the page has the window", async || {
        let page = console.get("/locks/coord/%2Flocks%2Fhidden?source=key").await;
        let page = page.text().await.unwrap();
        page.contains("released between ")
            && page.contains("held between ")
            && page.contains("1 hold of uncertain length")
            && page.contains("hatch")
    })
    .await;
    eventually("the sums know that the hold is uncertain", async || {
        let found = console.json("/v1/contention").await;
        let prefixes = found["prefixes"].as_array().cloned().unwrap_or_default();
        prefixes
            .iter()
            .any(|prefix| prefix["backend"] == "coord" && prefix["holdsUncertain"] == 1)
    })
    .await;
}
