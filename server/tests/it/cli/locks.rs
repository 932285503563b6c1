//! `leasehold locks` over HTTP. The server here is a stub with fixed answers; the server's own tests check the protocol.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use axum::routing::get;
use axum::{Json, Router};
use serde_json::{Value, json};

use super::{leasehold, run};

/// Received requests: token and query.
type Seen = Arc<Mutex<Vec<(Option<String>, Vec<(String, String)>)>>>;

/// Answers with these pages, chosen by the cursor (`None` is the first), until the runtime
/// ends.
struct Answers {
    address: SocketAddr,
    seen: Seen,
    runtime: tokio::runtime::Runtime,
}

impl Answers {
    fn start(status: StatusCode, pages: Vec<Value>) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let seen = Seen::default();
        let state = (status, Arc::new(pages), Arc::clone(&seen));
        let listener = runtime
            .block_on(tokio::net::TcpListener::bind("127.0.0.1:0"))
            .unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new()
            .route("/v1/inventory", get(answer))
            .with_state(state);
        let serve = async move { axum::serve(listener, router).await.unwrap() };
        drop(runtime.spawn(serve));
        Self {
            address,
            seen,
            runtime,
        }
    }

    fn locks(&self, args: &[&str]) -> Command {
        let mut command = leasehold(std::env::temp_dir().as_path());
        command
            .args(["locks", "--server", &format!("http://{}", self.address)])
            .args(args);
        command
    }
}

async fn answer(
    State((status, pages, seen)): State<(StatusCode, Arc<Vec<Value>>, Seen)>,
    headers: HeaderMap,
    Query(query): Query<Vec<(String, String)>>,
) -> impl IntoResponse {
    let token = headers
        .get("authorization")
        .map(|value| value.to_str().unwrap().to_owned());
    let cursor = query
        .iter()
        .find(|(name, _)| name == "cursor")
        .map_or(0, |(_, value)| value.parse().unwrap());
    seen.lock().unwrap().push((token, query));
    (status, Json(pages[cursor].clone()))
}

fn lock(resource: &str) -> Value {
    json!({"backend": "cache", "kind": "redis", "source": "key", "resource": resource, "ownerId": "w-1",
        "ownerCount": 1, "heldMs": null, "heldAtLeastMs": 5000, "remainingMs": 27_000, "waiterCount": null,
        "fencingToken": null, "state": "healthy", "unknown": {"heldMs": "Redis does not tell"},
        "absent": {"fencingToken": "Redis issues none"}})
}

fn page(locks: &[&str], next: Option<&str>, complete: bool) -> Value {
    let status = if complete { "live" } else { "down" };
    json!({"locks": locks.iter().map(|name| lock(name)).collect::<Vec<_>>(), "nextCursor": next, "total": 4,
        "complete": complete, "backends": [{"name": "cache", "kind": "redis", "status": status, "ageMs": 14_000,
        "observedAt": "2026-01-01T00:00:00Z", "coverage": "complete", "error": if complete { Value::Null } else { json!("cannot connect") }}]})
}

#[test]
fn no_token_is_sent_if_its_variable_is_empty() {
    // As with `LEASEHOLD_TOKEN=${TOKEN:-}`.
    let server = Answers::start(StatusCode::OK, vec![page(&["a"], None, true)]);
    let (code, _, err) = run(server.locks(&["--json"]).env("LEASEHOLD_TOKEN", ""));
    assert_eq!((code, err.as_str()), (0, ""));
    assert_eq!(server.seen.lock().unwrap()[0].0, None);
}

#[test]
fn all_pages_are_read_and_a_moved_row_is_printed_once() {
    // Two pages that share a row; the query and the token reach the server.
    let server = Answers::start(
        StatusCode::OK,
        vec![page(&["a", "b"], Some("1"), true), page(&["b", "c"], None, true)],
    );
    let mut command = server.locks(&["--prefix", "a b&c", "--state", "no_ttl", "--sort=-held", "--json"]);
    let (code, out, err) = run(command.env("LEASEHOLD_TOKEN", "t0ken"));
    assert_eq!((code, err.as_str()), (0, ""));
    let answer: Value = serde_json::from_str(&out).unwrap();
    let names: Vec<&str> = answer["locks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|lock| lock["resource"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["a", "b", "c"]);
    assert_eq!(answer["locks"][0], lock("a"), "rows keep every field");
    assert_eq!(answer["complete"], true);
    let seen = server.seen.lock().unwrap();
    assert_eq!(seen[0].0.as_deref(), Some("Bearer t0ken"));
    let query: Vec<(&str, &str)> = seen[0]
        .1
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    assert_eq!(
        query,
        [
            ("prefix", "a b&c"),
            ("state", "no_ttl"),
            ("sort", "-held"),
            ("limit", "100")
        ]
    );
}

#[test]
fn a_table_stops_at_the_limit_with_a_remark() {
    // A limit of one row; the note goes to standard error, so that the table stays a table.
    let server = Answers::start(StatusCode::OK, vec![page(&["a", "b"], Some("1"), true)]);
    let (code, out, err) = run(&mut server.locks(&["--limit", "1"]));
    assert_eq!(code, 0);
    let rows: Vec<Vec<&str>> = out
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(
        rows[0],
        [
            "STATE",
            "RESOURCE",
            "BACKEND",
            "HELD-BY",
            "HELD",
            "REMAINING",
            "WAITERS",
            "TOKEN"
        ]
    );
    assert_eq!(
        rows[1],
        [
            "healthy", "a", "cache", "w-1", "≥", "5.0", "s", "27.0", "s", "unknown", "none"
        ]
    );
    assert_eq!(rows.len(), 2);
    assert_eq!(err, "leasehold: 1 of 4 locks shown; --limit shows more\n");
}

#[test]
fn an_incomplete_view_ends_with_4_and_names_the_backend() {
    // A backend is down: with rows or without, the command reports it and does not exit 0.
    for locks in [&["a"][..], &[]] {
        let server = Answers::start(StatusCode::OK, vec![page(locks, None, false)]);
        let (code, _, err) = run(&mut server.locks(&[]));
        assert_eq!(code, 4);
        assert!(
            err.contains("cache is down: cannot connect (last seen 14.0 s ago)"),
            "{err}"
        );
        assert!(!err.contains("no lock matches"), "{err}");
    }
}

#[test]
fn refusals_have_reasons_and_exit_codes() {
    // A bad parameter, a missing token, a missing permission, a failure, and something that is no Leasehold server.
    let problem =
        json!({"title": "Bad Request", "detail": "is one of a, b", "field": "state", "requestId": "r1"});
    for (status, body, code, expected) in [
        (
            StatusCode::BAD_REQUEST,
            problem.clone(),
            2,
            "state: is one of a, b (request r1)",
        ),
        (
            StatusCode::UNAUTHORIZED,
            problem.clone(),
            1,
            "--token or LEASEHOLD_TOKEN",
        ),
        (
            StatusCode::FORBIDDEN,
            problem.clone(),
            1,
            "answers 403 Forbidden: state: is one of a, b (request r1)",
        ),
        (
            StatusCode::SERVICE_UNAVAILABLE,
            problem,
            1,
            "answers 503 Service Unavailable",
        ),
        (StatusCode::OK, json!("hello"), 1, "is not a Leasehold server"),
        (StatusCode::FOUND, Value::Null, 1, "is not a Leasehold server"),
    ] {
        let server = Answers::start(status, vec![body]);
        let (seen, out, err) = run(&mut server.locks(&[]));
        assert_eq!((seen, out.as_str()), (code, ""), "{err}");
        assert!(err.contains(expected), "{err}");
    }
}

#[test]
fn an_unreachable_server_exits_3() {
    // A port that was free a moment ago, with and without --watch.
    let server = Answers::start(StatusCode::OK, vec![Value::Null]);
    let (mut once, mut watch) = (server.locks(&[]), server.locks(&["--watch"]));
    server.runtime.shutdown_timeout(std::time::Duration::from_secs(5));
    for command in [&mut once, &mut watch] {
        let (code, out, err) = run(command);
        assert_eq!((code, out.as_str()), (3, ""));
        assert!(
            err.contains("cannot reach http://127.0.0.1:") && err.contains("LEASEHOLD_SERVER"),
            "{err}"
        );
    }
}

#[test]
fn watch_reports_a_disconnect_and_ends_with_0_on_ctrl_c() {
    // The first table is printed; then the server ends; then the next lines report it and every
    // row is stale.
    let server = Answers::start(StatusCode::OK, vec![page(&["a"], None, true)]);
    let mut child = server.locks(&["--watch"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap())
        .lines()
        .map(Result::unwrap);
    assert!(lines.any(|line| line.starts_with("healthy")));
    server.runtime.shutdown_timeout(std::time::Duration::from_secs(5));
    assert!(lines.any(|line| line.starts_with("DISCONNECTED for ")));
    let row = lines
        .find(|line| line.contains("cache") && line.contains("w-1"))
        .unwrap();
    assert!(row.starts_with("stale ") && row.contains("≤ "), "{row}");
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_watch_ends_when_its_output_is_closed() {
    // The reader closes the pipe after the first table, as `| head` does.
    let server = Answers::start(StatusCode::OK, vec![page(&["a"], None, true)]);
    let mut child = server.locks(&["--watch"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap())
        .lines()
        .map(Result::unwrap);
    assert!(lines.any(|line| line.starts_with("healthy")));
    drop(lines);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
