//! The code of docs/lease-client.md and docs/fencing.md: commands run unchanged, Rust is the code that is tested.

use std::collections::VecDeque;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::put;
use leasehold_client::{Client, Request};
use tokio::process::Command;

use super::client_and_server::{ClientAndServer, aside};
use super::patterns::{Document, write};

const CLIENTS: &str = include_str!("../../../../docs/lease-client.md");
pub(super) const FENCING: &str = include_str!("../../../../docs/fencing.md");

/// The fenced blocks of a page in that language, in order.
pub(super) fn blocks(page: &'static str, language: &str) -> Vec<&'static str> {
    page.split(&format!("```{language}\n"))
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap())
        .collect()
}

/// Standard output; a failing command fails the test.
async fn output(server: &ClientAndServer, program: &str, script: &str, more: &[(&str, &str)]) -> String {
    let binary = Path::new(env!("CARGO_BIN_EXE_leasehold"));
    let path = std::env::join_paths(
        std::iter::once(binary.parent().unwrap().to_owned())
            .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())),
    );
    let folder = tempfile::tempdir().unwrap();
    let flags: &[&str] = if program == "sh" { &["-euc"] } else { &["-c"] };
    let output = Command::new(program)
        .args(flags)
        .arg(script)
        .env_clear()
        .env("PATH", path.unwrap())
        .env("LEASEHOLD_SERVER", server.direct())
        .env("LEASEHOLD_TOKEN", server.token())
        .envs(more.iter().copied())
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await;
    let output = output.unwrap_or_else(|error| {
        panic!("{program}: {error}; install it with: apt-get install -y curl python3")
    });
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{script}\n{errors}");
    String::from_utf8(output.stdout).unwrap()
}

async fn was_held_once(server: &ClientAndServer, resource: &str) {
    let seen = server.resource(resource).await;
    assert_eq!(
        (&seen["holder"], &seen["lastFencingToken"]),
        (&().into(), &1.into()),
        "{seen}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_shell_commands_of_the_page_do_what_it_says() {
    // `leasehold run`, then curl: acquired, renewed and released, each once.
    let server = ClientAndServer::start().await;
    let [run, curl] = blocks(CLIENTS, "sh").try_into().unwrap();
    assert_eq!(output(&server, "sh", run, &[]).await, "closing under token 1\n");
    was_held_once(&server, "billing:close:2026-04").await;
    let printed = output(&server, "sh", curl, &[]).await;
    for word in [
        "\"renewed\":true",
        "each write carries token 1\n",
        "{\"released\":true}",
    ] {
        assert!(printed.contains(word), "{printed}");
    }
    was_held_once(&server, "billing:close:2026-05").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_python_of_the_page_holds_renews_and_releases() {
    // The example unchanged; then with a TTL of 4 s and 6 s of work, which needs renewals; then with a lost lease.
    let server = ClientAndServer::start().await;
    let [page] = blocks(CLIENTS, "python").try_into().unwrap();
    assert_eq!(
        output(&server, "python3", page, &[]).await,
        "each write carries token 1\n"
    );
    was_held_once(&server, "billing:close:2026-07").await;
    let (class, use_of_it) = page.split_once("\nlease = ").unwrap();
    let longer = format!("\nlease = {use_of_it}")
        .replace("ttl_s=30", "ttl_s=4")
        .replace("margin_s=5", "margin_s=0")
        .replace(
            "lease.release()",
            "time.sleep(6)\nlease.checkpoint(0)\nlease.release()",
        );
    assert!(longer.contains("time.sleep(6)"), "{longer}");
    output(&server, "python3", &format!("{class}{longer}"), &[]).await;
    assert_eq!(
        server.resource("billing:close:2026-07").await["lastFencingToken"],
        2
    );
    let loses = longer
        .replace(
            "time.sleep(6)",
            "call('DELETE', f'/v1/locks/{lease.id}')\nlease.gone.wait(20)",
        )
        .replace("lease.checkpoint(0)\nlease.release()", "print(lease.why)");
    let printed = output(&server, "python3", &format!("{class}{loses}"), &[]).await;
    assert!(printed.contains("\"code\":\"released\""), "{printed}");
}

/// Status, content type and body of each answer, in order.
type Answers = Arc<Mutex<VecDeque<(StatusCode, &'static str, &'static str)>>>;

async fn next_answer(State(answers): State<Answers>) -> impl IntoResponse {
    let (status, kind, body) = answers.lock().unwrap().pop_front().unwrap();
    (status, [(CONTENT_TYPE, kind)], body)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_python_of_the_page_asks_again_after_a_page_of_a_proxy() {
    // Instead of the answers to acquire and to renew, with 200 and with 404. Only the server's own 410 ends the lease.
    let running = ClientAndServer::start().await;
    let (page, json) = ("<html>sign in</html>", "application/json");
    let grant = r#"{"acquired":true,"leaseId":"l","fencingToken":1,"ttlSeconds":1,"remainingMs":600000}"#;
    let lost = r#"{"code":"expired"}"#;
    let answers = Answers::new(Mutex::new(VecDeque::from([
        (StatusCode::OK, "text/html", page),
        (StatusCode::OK, json, grant),
        (StatusCode::OK, "text/html", page),
        (StatusCode::NOT_FOUND, "text/html", page),
        (StatusCode::OK, json, "{}"),
        (StatusCode::GONE, "application/problem+json", lost),
    ])));
    let app = Router::new().fallback(next_answer).with_state(answers);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let proxy = aside(async move { axum::serve(listener, app).await.unwrap() });
    let [page] = blocks(CLIENTS, "python").try_into().unwrap();
    let (class, _) = page.split_once("\nlease = ").unwrap();
    let script = format!("{class}\nlease = Lease('r', 'w', ttl_s=1)\nlease.gone.wait(60)\nprint(lease.why)");
    let printed = output(&running, "python3", &script, &[("LEASEHOLD_SERVER", &url)]).await;
    assert_eq!(printed, format!("{lost}\n"));
    proxy.abort();
}

async fn close_the_month(server: &str, token: &str) -> Result<u64, Box<dyn std::error::Error + Send + Sync>> {
    let client = Client::builder(server).token(token).build()?;
    let request = Request::new("billing:close:2026-06", Duration::from_secs(30));
    let lease = client
        .acquire(request.owner("worker-7").wait(Duration::from_secs(60)))
        .await?;
    let work = async {
        for _ in 0..3 {
            // Each step takes at most a second; it is not started on a lease with less than two seconds left.
            lease.checkpoint(Duration::from_secs(2))?;
            // write(…, lease.fencing_token()).await?
        }
        Ok::<_, leasehold_client::CheckpointError>(lease.fencing_token())
    };
    let token = tokio::select! {
        done = work => done?,
        // The server reported the loss, or the deadline has passed.
        loss = lease.lost() => return Err(loss.to_string().into()),
    };
    lease.release().await?;
    Ok(token)
}

async fn take_partitions(
    server: &str,
    token: &str,
) -> Result<usize, Box<dyn std::error::Error + Send + Sync>> {
    let client = Client::builder(server).token(token).build()?;
    let request = |partition: u32| {
        let resource = format!("billing:partition:{partition}");
        Request::new(resource, Duration::from_secs(30)).owner("worker-7")
    };
    let requests: Vec<_> = (0..16).map(request).collect();
    // A refusal says who holds the lock; the others are held.
    let results = client.acquire_many(&requests).await;
    let leases: Vec<_> = results.into_iter().filter_map(Result::ok).collect();
    let count = leases.len();
    client.release_many(leases).await;
    Ok(count)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn documented_rust_equals_the_tested_code() {
    // Word for word, apart from visibility; and the client's example is run here.
    let sources = [
        include_str!("docs.rs"),
        include_str!("patterns/service.rs"),
        include_str!("patterns/objects.rs"),
    ];
    let sources = sources.concat().replace("pub(in crate::client) ", "");
    let rust: Vec<_> = [blocks(CLIENTS, "rust"), blocks(FENCING, "rust")].concat();
    assert_eq!(rust.len(), 4);
    for part in rust.iter().flat_map(|block| block.split("\n\n")) {
        let code = part.trim_end();
        let is_imports = code.lines().all(|line| line.starts_with("use "));
        assert!(is_imports || sources.contains(code), "not tested:\n{code}");
    }
    let server = ClientAndServer::start().await;
    assert_eq!(
        close_the_month(&server.direct(), server.token()).await.unwrap(),
        1
    );
    was_held_once(&server, "billing:close:2026-06").await;
    assert_eq!(
        take_partitions(&server.direct(), server.token()).await.unwrap(),
        16
    );
    for partition in 0..16 {
        was_held_once(&server, &format!("billing:partition:{partition}")).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_shell_commands_of_the_fencing_page_write_and_report() {
    // A document behind the page's own handler: written under token 1; then a rejection is reported to the lease service.
    let running = ClientAndServer::start().await;
    let document = Arc::<Mutex<Document>>::default();
    let app = Router::new().route("/", put(write)).with_state(document.clone());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let server = aside(async move { axum::serve(listener, app).await.unwrap() });
    let [writes, reports] = blocks(FENCING, "sh").try_into().unwrap();
    output(&running, "sh", writes, &[("DOCUMENT_URL", &url)]).await;
    assert_eq!(document.lock().unwrap().text, "the report");
    output(&running, "sh", reports, &[]).await;
    let ledger = running.ledger().await;
    assert_eq!(
        ledger,
        [(1, Some(2), "report-service".to_owned(), "reported".to_owned())]
    );
    server.abort();
}
