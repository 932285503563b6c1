//! Sessions that the token may not read, and lock-delays of a scan that may not read every prefix.

use backends::{Backend as _, BackendError};
use domain::names::{Resource, Source};
use domain::observation::{Lifetime, ObservedCondition};
use reqwest::Method;
use serde_json::{Value, json};

use super::watched_consul::{ConsulClient, ROOT_TOKEN, backend, consul};
use crate::support::watching::{SeenLocks, owner, refresh, scan};

const TOKEN: &str = "11111111-2222-3333-4444-555555555555";
const RULES: &str = r#"key_prefix "locks/" { policy = "read" } session_prefix "" { policy = "read" }"#;

/// A token with one policy. Returns the policy's id.
async fn watching_token(root: &ConsulClient) -> String {
    let policy = json!({ "Name": "watch", "Rules": RULES });
    let made: Value = serde_json::from_str(&root.put("acl/policy", policy.to_string()).await).unwrap();
    let token = json!({ "SecretID": TOKEN, "Policies": [{ "Name": "watch" }] });
    root.put("acl/token", token.to_string()).await;
    made["ID"].as_str().unwrap().to_owned()
}

/// A session of a node that only the catalog has.
async fn session_of_node(root: &ConsulClient, node: &str) -> String {
    let registered = json!({ "Node": node, "Address": "127.0.0.1" });
    root.put("catalog/register", registered.to_string()).await;
    let session = json!({ "Name": "app", "Node": node, "TTL": "1h", "LockDelay": "40s", "NodeChecks": [] });
    let made: Value = serde_json::from_str(&root.put("session/create", session.to_string()).await).unwrap();
    made["ID"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_key_of_a_hidden_session_is_held() {
    // Two nodes; then a rule denies the sessions of one. To another adapter they were never visible. Then a release.
    let consul = consul(true).await;
    let url = consul.url();
    let root = ConsulClient::new(&url, Some(ROOT_TOKEN));
    let policy = watching_token(&root).await;
    let hidden = session_of_node(&root, "secret").await;
    let open = root.long_session("open").await;
    assert!(root.acquire("locks/hidden", &hidden, "").await && root.acquire("locks/open", &open, "").await);
    let adapter = || backend(&url, |_, consul| consul.token = Some(TOKEN.to_owned().into()));
    let watched = adapter();
    let before = scan(&watched).await.unwrap();
    assert!(before.is_whole(), "{:?}", before.pass);
    assert_eq!(owner(before.lock("locks/hidden")), "app@secret");
    let rules = format!(r#"{RULES} session "secret" {{ policy = "deny" }}"#);
    let denied = json!({ "ID": policy, "Name": "watch", "Rules": rules });
    root.put(&format!("acl/policy/{policy}"), denied.to_string())
        .await;
    let watch = ConsulClient::new(&url, Some(TOKEN));
    testkit::eventually("Consul hides the session", async || {
        let (_, list) = watch.request(Method::GET, "session/list", "").await;
        !list.contains(&hidden)
    })
    .await;
    for (adapter, shown) in [
        (&watched, "app@secret".to_owned()),
        (&adapter(), format!("session:{hidden}")),
    ] {
        let seen = scan(adapter).await.unwrap();
        assert_eq!(seen.names(), ["locks/hidden", "locks/open"]);
        assert!(
            seen.fault().contains("1 session that holds keys"),
            "{}",
            seen.fault()
        );
        let named = refresh(adapter, "kv", &["locks/hidden"]).await.unwrap();
        for lock in [seen.lock("locks/hidden"), named.lock("locks/hidden")] {
            assert_eq!(owner(lock), shown);
            assert_eq!(lock.generation, before.lock("locks/hidden").generation);
            assert!(
                matches!(&lock.lifetime, Lifetime::SessionTtl { why, .. } if why.contains("session_prefix"))
            );
        }
    }
    assert!(root.release("locks/hidden", &hidden).await);
    let after = scan(&watched).await.unwrap();
    assert_eq!(after.names(), ["locks/open"]);
    assert!(after.is_whole(), "{:?}", after.pass);
}

#[tokio::test]
async fn a_partial_scan_shows_a_lock_delay() {
    // A token for one prefix of two: the key that lost its session is below the readable one.
    let consul = consul(true).await;
    let url = consul.url();
    let root = ConsulClient::new(&url, Some(ROOT_TOKEN));
    watching_token(&root).await;
    let session = root.session("lost", "1h", "40s", "release").await;
    assert!(root.acquire("locks/job", &session, "").await);
    let watched = backend(&url, |_, consul| {
        consul.token = Some(TOKEN.to_owned().into());
        consul.prefixes.push("unreadable/".to_owned());
    });
    let before = scan(&watched).await.unwrap();
    assert_eq!(before.names(), ["locks/job"]);
    assert!(!before.is_whole());
    // By name, the key that may not be read is the error, and the other one is delivered.
    let names =
        ["unreadable/job", "locks/job"].map(|name| (Source::parse("kv").unwrap(), Resource::from(name)));
    let mut named = SeenLocks::default();
    let refreshed = watched.refresh(&names, &mut named).await;
    assert!(
        matches!(refreshed, Err(BackendError::Denied { .. })),
        "{refreshed:?}"
    );
    assert_eq!(named.names(), ["locks/job"]);
    root.destroy(&session).await;
    let seen = scan(&watched).await.unwrap();
    let lock = seen.lock("locks/job");
    assert!(
        matches!(&lock.condition, Some(ObservedCondition::Orphaned { why }) if why.contains("lock-delay")),
        "{lock:?}"
    );
}
