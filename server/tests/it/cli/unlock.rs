//! `leasehold unlock` against a whole server: by flag, at a terminal, and everything that must not release.

use crate::support::{TestServer, aside, token};
use std::process::{Command, Stdio};
use std::sync::mpsc;

use ::testkit::{RedisOptions, Throwaway, eventually};
use domain::access::Role;
use reqwest::{StatusCode, header};
use serde_json::{Value, json};

use super::{leasehold, run};

pub(super) const REASON: &str = "stuck since 03:00, its owner agrees";

/// A lease of the built-in service that the inventory shows: this very one, not the one before it under the same name.
pub(super) async fn held(console: &TestServer, resource: &str) -> String {
    let body = json!({"resource": resource, "ownerId": "worker-7", "ttlSeconds": 600});
    let acquire = console.client.post(console.url("/v1/locks/acquire")).json(&body);
    let lease: Value = acquire.send().await.unwrap().json().await.unwrap();
    assert_eq!(lease["acquired"], true, "{lease}");
    console
        .inventory_where("backend=builtin", |page| {
            let locks = page["locks"].as_array().unwrap();
            locks.iter().any(|lock| lock["leaseId"] == lease["leaseId"])
        })
        .await;
    lease["leaseId"].as_str().unwrap().to_owned()
}

/// Outcomes of all steps of forced unlocks in the audit log, oldest first.
async fn outcomes(console: &TestServer) -> Vec<String> {
    let entries = console.unlock_entries().await.into_iter();
    entries.map(|entry| entry.outcome).collect()
}

pub(super) async fn is_held(console: &TestServer, lease: &str) -> bool {
    console.json(&format!("/v1/locks/{lease}")).await["state"] == "held"
}

pub(super) fn command(console: &TestServer, args: &[&str]) -> Command {
    let mut command = leasehold(std::env::temp_dir().as_path());
    command
        .args(["unlock", "--server", &console.url(""), "builtin"])
        .args(args)
        .env("LEASEHOLD_TOKEN", console.operator_token());
    command
}

async fn unlock(console: &TestServer, args: &[&str]) -> (i32, String, String) {
    let mut command = command(console, args);
    command.stdin(Stdio::null());
    tokio::task::spawn_blocking(move || run(&mut command))
        .await
        .unwrap()
}

#[tokio::test]
async fn a_script_confirms_by_name_and_prints_the_outcome() {
    // What would end is shown first; the lease is gone afterwards; with --json there is the unlock alone.
    let console = TestServer::builder().operator().start().await;
    let lease = held(&console, "jobs/close").await;
    let args = [
        "jobs/close",
        "--reason",
        REASON,
        "--confirm-resource",
        "jobs/close",
    ];
    let (code, out, err) = unlock(&console, &args).await;
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert!(
        out.contains("held by    worker-7") && out.contains("also ends  nothing"),
        "{out}"
    );
    assert!(
        out.contains("\nreleased: exactly the holder that was shown has lost the lock."),
        "{out}"
    );
    assert!(!is_held(&console, &lease).await);
    let lease = held(&console, "jobs/close").await;
    let (code, out, err) = unlock(&console, &[&args[..], &["--json"]].concat()).await;
    assert_eq!(code, 0, "{err}");
    let unlock: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (&unlock["state"], &unlock["reason"]),
        (&json!("released"), &json!(REASON))
    );
    assert!(err.contains("held by    worker-7"), "{err}");
    assert!(!is_held(&console, &lease).await);
}

#[tokio::test]
async fn without_terminal_and_flag_no_unlock_is_made() {
    // Exit code 2; what would end is shown, nothing is released, and the intent is cancelled.
    let console = TestServer::builder().operator().start().await;
    let lease = held(&console, "r").await;
    let (code, out, err) = unlock(&console, &["r", "--reason", REASON]).await;
    assert_eq!(code, 2, "{out}{err}");
    assert!(
        out.contains("worker-7") && err.contains("--confirm-resource"),
        "{out}{err}"
    );
    assert!(is_held(&console, &lease).await);
    assert_eq!(outcomes(&console).await, ["pending", "cancelled"]);
    let yes = unlock(&console, &["r", "--reason", REASON, "--yes"]).await;
    assert_eq!(yes.0, 2, "{yes:?}");
    assert!(is_held(&console, &lease).await);
}

#[tokio::test]
async fn wrong_confirmation_exits_2_and_releases_nothing() {
    // A weak reason, another name, a free lock (8).
    let console = TestServer::builder().operator().start().await;
    let lease = held(&console, "r").await;
    let weak = unlock(
        &console,
        &["r", "--reason", "..........", "--confirm-resource", "r"],
    )
    .await;
    assert_eq!(weak.0, 2);
    assert!(
        weak.2.contains("reason_too_weak: A reason is made of words"),
        "{}",
        weak.2
    );
    let other = unlock(&console, &["r", "--reason", REASON, "--confirm-resource", "R"]).await;
    assert_eq!(other.0, 2);
    assert!(other.2.contains("name_mismatch"), "{}", other.2);
    assert!(
        outcomes(&console)
            .await
            .ends_with(&["name_mismatch".to_owned(), "cancelled".to_owned()])
    );
    let free = unlock(
        &console,
        &["never", "--reason", REASON, "--confirm-resource", "never"],
    )
    .await;
    assert_eq!(free.0, 8);
    assert!(free.2.contains("never on builtin is not held"), "{}", free.2);
    assert!(is_held(&console, &lease).await);
}

#[tokio::test]
async fn viewers_and_protected_names_are_refused_with_a_remedy() {
    // Exit code 5 each: without the permission, and for a protected name, which needs a user.
    let console = TestServer::builder().operator().start().await;
    let lease = held(&console, "jobs/close").await;
    let viewer = token(&console.serving, Role::Viewer).await;
    let args = [
        "jobs/close",
        "--reason",
        REASON,
        "--confirm-resource",
        "jobs/close",
    ];
    let mut refused = command(&console, &args);
    refused
        .env("LEASEHOLD_TOKEN", viewer.expose())
        .stdin(Stdio::null());
    let (code, _, err) = tokio::task::spawn_blocking(move || run(&mut refused))
        .await
        .unwrap();
    assert_eq!(code, 5, "{err}");
    assert!(err.contains("forbidden"), "{err}");
    console.protect("jobs").await;
    let (code, out, err) = unlock(&console, &args).await;
    assert_eq!(code, 5, "{out}{err}");
    assert!(out.contains("protection protected"), "{out}");
    assert!(
        err.contains("is protected") && err.contains(&console.url("")),
        "{err}"
    );
    assert!(is_held(&console, &lease).await);
}

#[tokio::test]
async fn names_cannot_emit_terminal_escapes() {
    // A Redis key with an escape sequence, confirmed as it is shown: no control byte on either output, and the key is gone.
    let redis = Throwaway::redis(RedisOptions::default()).await.unwrap();
    let url = redis.url();
    let console = TestServer::builder().config(&format!(
        "[[backend]]\nname = \"cache\"\nkind = \"redis\"\nurls = [\"{url}\"]\nunlock_url = \"{url}\"\npoll_interval = \"1s\"\n"
    )).operator().start()
    .await;
    let client = redis::Client::open(url).unwrap();
    let mut driver = client.get_multiplexed_async_connection().await.unwrap();
    let (name, shown) = ("lock:\u{1b}[2J\u{202e}b", "lock:\\u{1b}[2J\\u{202e}b");
    let () = redis::cmd("SET")
        .arg(name)
        .arg("one")
        .query_async(&mut driver)
        .await
        .unwrap();
    console
        .inventory_where("backend=cache", |page| page["total"] == 1)
        .await;
    let mut command = leasehold(std::env::temp_dir().as_path());
    command
        .args([
            "unlock",
            "--server",
            &console.url(""),
            "cache",
            name,
            "--reason",
            REASON,
        ])
        .args(["--confirm-resource", shown])
        .env("LEASEHOLD_TOKEN", console.operator_token());
    let (code, out, err) = tokio::task::spawn_blocking(move || run(&mut command))
        .await
        .unwrap();
    assert_eq!(code, 0, "{err}");
    assert!(out.contains(shown) && !(out + &err).contains(['\u{202e}', '\u{1b}']));
    let left: bool = redis::cmd("EXISTS")
        .arg(name)
        .query_async(&mut driver)
        .await
        .unwrap();
    assert!(!left);
}

/// The same command with a terminal as its standard input; each line is typed when it asks, for the first time or
/// again, the first one not before `go`, if it is given.
async fn at_a_terminal(
    console: &TestServer,
    args: &[&str],
    typed: &'static [&'static str],
    mut go: Option<mpsc::Receiver<()>>,
) -> (i32, String) {
    use std::io::{Read as _, Write as _};
    let quoted: Vec<String> = args.iter().map(|arg| domain::shell_quote::quote(arg)).collect();
    // `exec`: a shell that stays, as dash does, takes Ctrl-C too, and its own end would be the code that is seen.
    let line = format!(
        "exec {} unlock --server {} builtin {}",
        env!("CARGO_BIN_EXE_leasehold"),
        console.url(""),
        quoted.join(" ")
    );
    let mut script = Command::new("script");
    script
        .args(["-qec", &line, "/dev/null"])
        .env("LEASEHOLD_TOKEN", console.operator_token())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    tokio::task::spawn_blocking(move || {
        let mut child = script.spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        let mut output = child.stdout.take().unwrap();
        let (mut printed, mut prompts, mut bytes) = (String::new(), 0, [0; 1024]);
        loop {
            let count = output.read(&mut bytes).unwrap();
            if count == 0 {
                break;
            }
            printed.push_str(&String::from_utf8_lossy(&bytes[..count]));
            if printed.matches("releases nothing): ").count() > prompts {
                if let Some(go) = go.take() {
                    go.recv().unwrap();
                }
                input.write_all(typed[prompts].as_bytes()).unwrap();
                prompts += 1;
            }
        }
        (child.wait().unwrap().code().unwrap(), printed)
    })
    .await
    .unwrap()
}

#[tokio::test]
async fn at_a_terminal_the_typed_name_is_compared() {
    // A wrong name first, which is refused; then the right one. Ctrl-C releases nothing.
    let console = TestServer::builder().operator().start().await;
    let lease = held(&console, "r").await;
    let (code, printed) = at_a_terminal(&console, &["r", "--reason", REASON], &["x\n", "r\n"], None).await;
    assert_eq!(code, 0, "{printed}");
    assert!(
        printed.contains("Type r to release it")
            && printed.contains("does not equal the resource byte for byte"),
        "{printed}"
    );
    assert!(!is_held(&console, &lease).await);
    let lease = held(&console, "r").await;
    let (code, printed) = at_a_terminal(&console, &["r", "--reason", REASON], &["\u{3}"], None).await;
    assert_eq!(code, 2, "{printed}");
    assert!(is_held(&console, &lease).await);
    assert!(
        outcomes(&console)
            .await
            .ends_with(&["pending".to_owned(), "cancelled".to_owned()])
    );
}

#[tokio::test]
async fn an_intent_cancelled_elsewhere_releases_nothing() {
    // Cancelled by another request with the same token while the terminal asks for the name: exit code 5.
    let console = TestServer::builder().operator().start().await;
    let lease = held(&console, "r").await;
    let (go, wait) = mpsc::channel();
    let cancel = async {
        let begun = async || {
            let entry = console.unlock_entries().await.pop();
            entry.and_then(|entry| entry.unlock_id)
        };
        eventually("the intent is recorded", async || begun().await.is_some()).await;
        let path = format!("/v1/unlocks/{}/cancel", begun().await.unwrap());
        let request = console.client.post(console.url(&path)).json(&json!({}));
        assert_eq!(request.send().await.unwrap().status(), 200);
        go.send(()).unwrap();
    };
    let args = ["r", "--reason", REASON];
    let ((code, printed), ()) = tokio::join!(at_a_terminal(&console, &args, &["r\n"], Some(wait)), cancel);
    assert_eq!(code, 5, "{printed}");
    assert!(printed.contains("already_used"), "{printed}");
    assert_eq!(outcomes(&console).await, ["pending", "cancelled", "already_used"]);
    assert!(is_held(&console, &lease).await);
}

/// A proxy in front of the server that answers each confirmation with 502 and `text`, after the server has executed it.
async fn failing_proxy(console: &TestServer, text: &'static str) -> String {
    let (http, base) = (reqwest::Client::new(), console.url(""));
    let forward = move |request: axum::extract::Request| {
        let (http, base) = (http.clone(), base.clone());
        async move {
            let (parts, body) = request.into_parts();
            let path = parts.uri.path_and_query().unwrap().to_string();
            let body = axum::body::to_bytes(body, 1024 * 1024).await.unwrap();
            let mut request = http.request(parts.method, format!("{base}{path}")).body(body);
            for name in [header::AUTHORIZATION, header::CONTENT_TYPE] {
                if let Some(value) = parts.headers.get(&name) {
                    request = request.header(name, value);
                }
            }
            let answer = request.send().await.unwrap();
            let (status, answer) = (answer.status(), answer.text().await.unwrap());
            if path.ends_with("/confirm") {
                return (StatusCode::BAD_GATEWAY, text.to_owned());
            }
            (status, answer)
        }
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let router = axum::Router::new().fallback(forward);
    aside(async move { axum::serve(listener, router).await.unwrap() });
    url
}

#[tokio::test]
async fn a_proxy_that_fails_after_the_release_hides_no_outcome() {
    // The confirmation is executed and answered with 502, also with a code of the proxy's own: the result is read, and
    // printed as released.
    let console = TestServer::builder().operator().start().await;
    let own_code = r#"{"code": "upstream_failed", "detail": "no answer"}"#;
    for (text, why) in [("Bad Gateway", "502"), (own_code, "upstream_failed")] {
        let lease = held(&console, "r").await;
        let proxy = failing_proxy(&console, text).await;
        let mut command = leasehold(std::env::temp_dir().as_path());
        command
            .args(["unlock", "--server", &proxy, "builtin", "r", "--reason", REASON])
            .args(["--confirm-resource", "r"])
            .env("LEASEHOLD_TOKEN", console.operator_token())
            .stdin(Stdio::null());
        let ended = tokio::task::spawn_blocking(move || run(&mut command));
        let (code, out, err) = ended.await.unwrap();
        assert_eq!(code, 0, "{out}{err}");
        let is_explained = err.contains(why) && err.contains("asking for the result");
        assert!(out.contains("\nreleased: ") && is_explained, "{out}{err}");
        assert!(!is_held(&console, &lease).await);
    }
}

#[tokio::test]
async fn an_unreachable_console_exits_3() {
    // A port without a listener.
    let mut command = leasehold(std::env::temp_dir().as_path());
    command.args([
        "unlock",
        "--server",
        "http://127.0.0.1:1",
        "builtin",
        "r",
        "--reason",
        REASON,
    ]);
    let (code, _, err) = tokio::task::spawn_blocking(move || run(&mut command))
        .await
        .unwrap();
    assert_eq!(code, 3, "{err}");
}
