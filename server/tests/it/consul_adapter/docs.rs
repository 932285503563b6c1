//! The commands of docs/backends/consul.md, run unchanged, and the tokens that they create.

use ::backends::{Backend, BackendError};
use domain::force_release::Release;
use domain::reported::Reported;
use reqwest::Method;

use super::watched_consul::{ConsulClient, ROOT_TOKEN, backend, consul, kv};
use crate::support::unlocking::unlock;
use crate::support::watching::{ReadParts, owner, scan};

const GUIDE: &str = include_str!("../../../../docs/backends/consul.md");
const TOKEN: &str = "11111111-2222-3333-4444-555555555555";
const UNLOCK_TOKEN: &str = "66666666-7777-8888-9999-aaaaaaaaaaaa";

/// Runs the blocks of shell commands, of both tokens.
async fn run_commands(url: &str) {
    let blocks = GUIDE.split("```sh\n").skip(1);
    let blocks: Vec<&str> = blocks.map(|rest| rest.split("```").next().unwrap()).collect();
    assert_eq!(blocks.len(), 2);
    let tools = testkit::tool_cache().unwrap().join("bin");
    let commands = format!("PATH=\"{}:$PATH\"\n{}", tools.display(), blocks.concat());
    let output = tokio::process::Command::new("sh")
        .args(["-euc", &commands])
        .env("CONSUL_HTTP_ADDR", url)
        .env("CONSUL_HTTP_TOKEN", ROOT_TOKEN)
        .env("WATCH_TOKEN", TOKEN)
        .env("UNLOCK_TOKEN", UNLOCK_TOKEN)
        .output()
        .await
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[tokio::test]
async fn documented_tokens_see_and_unlock_and_can_do_little_else() {
    // Before the tokens exist; without a token; with the guide's; each line of its table.
    let consul = consul(true).await;
    let url = consul.url();
    let root = ConsulClient::new(&url, Some(ROOT_TOKEN));
    let session = root.long_session("app").await;
    assert!(
        root.acquire("locks/job", &session, "").await && root.acquire("elsewhere/job", &session, "").await
    );
    let watcher = |token: Option<&str>| {
        backend(&url, |_, consul| {
            consul.token = token.map(|token| token.to_owned().into());
            consul.unlock_token = Some(UNLOCK_TOKEN.to_owned().into());
        })
    };
    let unknown = scan(&watcher(Some(TOKEN))).await.unwrap_err();
    assert!(
        matches!(&unknown, BackendError::Denied { detail, .. } if detail.contains("does not know")),
        "{unknown:?}"
    );
    let blind = scan(&watcher(None)).await.unwrap_err();
    assert!(
        matches!(&blind, BackendError::Denied { remedy, .. } if remedy.contains("key_prefix \"locks/\"")),
        "{blind:?}"
    );
    run_commands(&url).await;
    let watched = watcher(Some(TOKEN));
    let seen = scan(&watched).await.unwrap();
    assert!(seen.is_whole(), "{:?}", seen.pass);
    assert_eq!(owner(seen.lock("locks/job")), "app@throwaway");
    let probe = watched.probe().await.unwrap();
    assert!(
        probe
            .rights
            .iter()
            .all(|right| right.allowed == Reported::Value(right.wanted)),
        "{:?}",
        probe.rights
    );
    assert!(
        matches!(&probe.version, Reported::Value(version) if version.contains("(server, dc1)")),
        "{probe:?}"
    );
    denies(&ConsulClient::new(&url, Some(TOKEN)), &session).await;
    let (source, resource) = kv("locks/job");
    let powerless = backend(&url, |_, consul| {
        consul.token = Some(TOKEN.to_owned().into());
        consul.unlock_token = Some(TOKEN.to_owned().into());
    });
    let refused = unlock(&powerless, &source, &resource).await;
    assert!(
        matches!(&refused, Release::Refused { remedy, .. } if remedy.contains("policy = \"write\"")),
        "{refused:?}"
    );
    assert_eq!(root.holder("locks/job").await, Some(session.clone()));
    assert_eq!(unlock(&watched, &source, &resource).await, Release::Released);
    assert_eq!(root.holder("locks/job").await, None);
    assert_eq!(root.holder("elsewhere/job").await, Some(session));
}

/// Requests that Consul refuses to the watching token, according to the guide.
async fn denies(watch: &ConsulClient, session: &str) {
    for (method, path) in [
        (Method::PUT, "kv/locks/job".to_owned()),
        (Method::DELETE, "kv/locks/job".to_owned()),
        (Method::PUT, format!("kv/locks/job?release={session}")),
        (Method::PUT, format!("kv/locks/other?acquire={session}")),
        (Method::PUT, format!("session/destroy/{session}")),
        (Method::PUT, format!("session/renew/{session}")),
        (Method::PUT, "session/create".to_owned()),
    ] {
        let (status, text) = watch.request(method, &path, "").await;
        assert_eq!(status, 403, "{path}: {text}");
    }
    let (status, _) = watch.request(Method::GET, "kv/elsewhere/?recurse", "").await;
    assert_eq!(status, 404);
}

#[tokio::test]
async fn a_token_with_a_part_of_the_permissions_sees_a_partial_list() {
    // One folder of the prefix, and no sessions.
    let consul = consul(true).await;
    let url = consul.url();
    let root = ConsulClient::new(&url, Some(ROOT_TOKEN));
    let session = root.long_session("app").await;
    assert!(root.acquire("locks/team-1/job", &session, "").await);
    assert!(root.acquire("locks/team-2/job", &session, "").await);
    let policy = r#"{"Name":"part","Rules":"key_prefix \"locks/team-1/\" { policy = \"read\" }"}"#;
    root.put("acl/policy", policy).await;
    let token = format!(r#"{{"SecretID":"{TOKEN}","Policies":[{{"Name":"part"}}]}}"#);
    root.put("acl/token", token).await;
    let part = backend(&url, |_, consul| consul.token = Some(TOKEN.to_owned().into()));
    let seen = scan(&part).await.unwrap();
    assert_eq!(seen.names(), ["locks/team-1/job"]);
    assert!(
        !seen.is_whole() && seen.fault().contains("only a part"),
        "{}",
        seen.fault()
    );
    let lock = seen.lock("locks/team-1/job");
    assert_eq!(owner(lock), format!("session:{session}"));
    assert!(
        matches!(&lock.lifetime, domain::observation::Lifetime::SessionTtl { why, .. } if why.contains("session_prefix"))
    );
}

#[tokio::test]
async fn all_locks_below_a_readable_prefix_count_as_read() {
    // A token for one prefix of two: a lock that is gone below it is known to be gone.
    let consul = consul(true).await;
    let url = consul.url();
    let root = ConsulClient::new(&url, Some(ROOT_TOKEN));
    let session = root.long_session("app").await;
    assert!(root.acquire("locks/job", &session, "").await);
    let rules = r#"{"Name":"one","Rules":"key_prefix \"locks/\" { policy = \"read\" } session_prefix \"\" { policy = \"read\" }"}"#;
    root.put("acl/policy", rules).await;
    let token = format!(r#"{{"SecretID":"{TOKEN}","Policies":[{{"Name":"one"}}]}}"#);
    root.put("acl/token", token).await;
    let two = backend(&url, |_, consul| {
        consul.token = Some(TOKEN.to_owned().into());
        consul.prefixes.push("hidden/".to_owned());
    });
    let parts = ReadParts::from_partial_scan(&two).await;
    assert!(parts.has_read("kv", "locks/gone"));
    assert!(!parts.has_read("kv", "hidden/job"));
}
