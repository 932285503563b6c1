//! Texts of backends, receivers, users and clients try to write lines of their own into the log, or to command the terminal
//! that shows it. The log is that of the program itself.

use ::testkit::{Postgres, PostgresOptions, Throwaway};
use reqwest::StatusCode;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};

use crate::process::running_server::Running;
use crate::support::form::Form as _;
use crate::support::hostile_redis::hostile_redis;
use crate::support::webhook_sink::{Reply, WebhookSink};
use testkit::eventually;

/// As a line of the log begins.
const FORGED: &str = "2026-01-01T00:00:00.000000Z ERROR leasehold: forged";
/// A line end of each kind but the two that end an answer of Redis, and escapes of terminals of seven and of eight bits.
const LINE_ENDS: &str = "\u{85}\u{2028}\u{b}\u{1b}[2K\u{1b}]0;owned\u{7}\u{9b}2J\u{202e}\u{7f}";

fn hostile(from: &str) -> String {
    format!("{from}{LINE_ENDS}{FORGED}")
}

/// With line ends in the usual sense, too.
fn multiline(from: &str) -> String {
    format!("{from}\r\n{FORGED}\n{}", hostile(from))
}

/// Its lease table refuses each query with a text.
async fn refusing_postgres(text: &str) -> Postgres {
    let options = PostgresOptions {
        fast: true,
        ..Default::default()
    };
    let postgres = Throwaway::postgres(options).await.unwrap();
    let mut session = PgConnection::connect(&postgres.superuser_url()).await.unwrap();
    let sql = format!(
        "CREATE FUNCTION refuse() RETURNS text LANGUAGE plpgsql VOLATILE AS $f$ BEGIN RAISE EXCEPTION '%', $t${text}$t$; END $f$;
         CREATE VIEW distributed_locks AS SELECT refuse() AS resource, 'o'::text AS owner_id, 'l'::text AS lease_id,
             1::bigint AS fencing_token, now() AS expires_at, now() AS created_at, now() AS updated_at"
    );
    sqlx::raw_sql(AssertSqlSafe(sql))
        .execute(&mut session)
        .await
        .unwrap();
    postgres
}

async fn post(server: &Running, path: &str, body: &Value) -> u16 {
    let request = server.http.post(server.url(path)).json(body);
    request.send().await.unwrap().status().as_u16()
}

/// Whatever clients, users and operators may send.
async fn send_texts(server: &Running) {
    let text = multiline("client");
    for (path, body) in [
        // Receivers are notified of a new admin and reject it with their text.
        (
            "/v1/users",
            json!({"name": "mallory", "grants": [{"role": "admin"}]}),
        ),
        (
            "/v1/locks/acquire",
            json!({"resource": text, "ownerId": text, "ttlSeconds": 60}),
        ),
        ("/v1/users", json!({"name": text, "grants": [{"role": "viewer"}]})),
        (
            "/v1/tokens",
            json!({"name": text, "grants": [{"role": "viewer"}]}),
        ),
        (
            "/v1/fencing/rejections",
            json!({"resource": "jobs:1", "ownerId": text, "source": text, "fencingToken": 1,
            "highestToken": 2}),
        ),
        (
            "/v1/unlocks",
            json!({"backend": "builtin", "resource": text, "generation": text, "reason": text}),
        ),
        (
            &*format!("/v1/unlocks/{}/confirm", crate::support::routes::segment(&text)),
            json!({"resource": text}),
        ),
    ] {
        let status = post(server, path, &body).await;
        assert!(status < 500, "{path}: {status}");
    }
    let sign_in = reqwest::Client::new().post(server.url("/sign-in"));
    let sign_in = sign_in
        .header("user-agent", "x\u{9b}2J".as_bytes())
        .form(&[("name", &*text), ("password", "wrong")]);
    assert_eq!(sign_in.send().await.unwrap().status(), StatusCode::UNAUTHORIZED);
}

/// The log once every text is in it.
async fn log(format: &str) -> String {
    let postgres = refusing_postgres(&multiline("postgres")).await;
    let redis = hostile_redis(&hostile("redis"));
    let receiver = WebhookSink::open().await;
    receiver.answers((0..100).map(|_| Reply::Text(400, multiline("receiver"))));
    let url = postgres.superuser_url();
    let server = Running::start(&format!(
        "log = \"leasehold=trace,tower_http=trace,info\"\nlog_format = \"{format}\"\n\
         [notify]\nallowed_networks = [\"127.0.0.1/32\"]\n\
         [[backend]]\nname = \"cache\"\nkind = \"redis\"\nurls = [\"redis://127.0.0.1:{redis}\"]\npoll_interval = \"1s\"\n\
         [[backend]]\nname = \"db\"\nkind = \"postgres\"\nurl = \"{url}\"\npoll_interval = \"1s\"\n\
         [[backend.lease_table]]\ntable = \"public.distributed_locks\"\n"
    ))
    .await;
    let add = json!({
        "name": "refusing", "kind": "webhook", "urls": [receiver.url], "secret": "a secret of thirty-two characters"
    });
    assert_eq!(post(&server, "/v1/receivers", &add).await, 201);
    send_texts(&server).await;
    // Backend errors are on pages; the log has receiver responses and paths.
    eventually("texts are in the log", async || {
        let log = server.log();
        let has = |words: [&str; 2]| {
            log.lines()
                .any(|line| words.iter().all(|word| line.contains(word)))
        };
        has(["answered 400", "forged"]) && has(["client%0D%0A", "forged"])
    })
    .await;
    server.log()
}

fn has_no_control(line: &str) {
    let bad = line
        .chars()
        .find(|c| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202e}'));
    assert_eq!(bad, None, "{line:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_text_adds_a_line_to_the_human_log() {
    for line in log("human").await.lines() {
        has_no_control(line);
        let (time, rest) = line.split_once(' ').unwrap_or_else(|| panic!("{line:?}"));
        assert!(chrono::DateTime::parse_from_rfc3339(time).is_ok(), "{line:?}");
        let level = rest.trim_start().split(' ').next().unwrap();
        assert!(
            ["ERROR", "WARN", "INFO", "DEBUG", "TRACE"].contains(&level),
            "{line:?}"
        );
        assert!(!line.starts_with(FORGED), "{line:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_text_adds_a_line_to_the_json_log() {
    let log = log("json").await;
    for line in log.lines() {
        has_no_control(line);
        let entry: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line:?}"));
        assert!(
            entry["timestamp"].is_string() && entry["level"].is_string(),
            "{line:?}"
        );
    }
}
