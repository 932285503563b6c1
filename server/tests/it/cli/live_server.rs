//! `leasehold locks` against a whole server that watches a real Redis.

use crate::support::TestServer;
use ::testkit::{Redis, RedisOptions, Throwaway};
use serde_json::Value;

use super::{leasehold, run};
use crate::support::redis_keys::hold_key;

/// A row is stale after two seconds: a busy machine does not make it so.
async fn console(redis: &Redis) -> TestServer {
    let toml = format!(
        "[[backend]]\nname = \"cache\"\nkind = \"redis\"\nurls = [\"{}\"]\npoll_interval = \"1s\"\ntimeout = \"500ms\"\n",
        redis.url()
    );
    let console = TestServer::builder().config(&toml).operator().start().await;
    console.ready().await;
    console
}

/// Runs `leasehold locks` against the server.
async fn locks(console: &TestServer, args: &[&str]) -> (i32, String, String) {
    let mut command = leasehold(std::env::temp_dir().as_path());
    command
        .args(["locks", "--server", &console.url("")])
        .args(args)
        .env("LEASEHOLD_TOKEN", console.operator_token());
    tokio::task::spawn_blocking(move || run(&mut command))
        .await
        .unwrap()
}

#[tokio::test]
async fn every_row_is_printed_once_in_order_over_several_pages() {
    // 1,200 keys are more than one page of the server holds.
    let redis = Throwaway::redis(RedisOptions::default()).await.unwrap();
    for number in 0..1_200 {
        hold_key(&redis, &format!("lock:{number:04}")).await;
    }
    let console = console(&redis).await;
    console
        .inventory_where("limit=1", |page| page["total"] == 1_200)
        .await;
    let (code, out, err) = locks(&console, &["--json", "--sort", "resource", "--limit", "5000"]).await;
    assert_eq!((code, err.as_str()), (0, ""));
    let answer: Value = serde_json::from_str(&out).unwrap();
    let names: Vec<&str> = answer["locks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|lock| lock["resource"].as_str().unwrap())
        .collect();
    let expected: Vec<String> = (0..1_200).map(|number| format!("lock:{number:04}")).collect();
    assert_eq!(names, expected);
    assert_eq!(
        (&answer["total"], &answer["complete"]),
        (&Value::from(1_200), &Value::from(true))
    );
}

#[tokio::test]
async fn filters_apply_and_hostile_names_are_escaped() {
    // A name with an escape sequence among others; the prefix selects it alone.
    let redis = Throwaway::redis(RedisOptions::default()).await.unwrap();
    hold_key(&redis, "lock:a").await;
    hold_key(&redis, "lock:\u{1b}[2Jevil").await;
    let console = console(&redis).await;
    console.inventory_where("", |page| page["total"] == 2).await;
    let (code, out, _) = locks(&console, &["--prefix", "lock:\u{1b}"]).await;
    assert_eq!(code, 0);
    assert_eq!(out.lines().count(), 2, "{out}");
    assert!(
        out.contains("lock:\\u{1b}[2Jevil") && !out.contains('\u{1b}'),
        "{out:?}"
    );
    assert!(
        out.contains("fingerprint:") && out.lines().nth(1).unwrap().ends_with("none"),
        "{out}"
    );
}

#[tokio::test]
async fn a_refusal_by_the_server_exits_2_with_its_reason() {
    // A backend that is not configured: only the server can know.
    let redis = Throwaway::redis(RedisOptions::default()).await.unwrap();
    let console = console(&redis).await;
    let (code, out, err) = locks(&console, &["--backend", "nowhere"]).await;
    assert_eq!((code, out.as_str()), (2, ""));
    assert!(err.contains("backend") && err.contains("(request "), "{err}");
}

#[tokio::test]
async fn a_hanging_backend_exits_4_with_stale_rows() {
    // Redis is paused after a lock was seen: the row stays, marked; standard error names the backend.
    let redis = Throwaway::redis(RedisOptions::default()).await.unwrap();
    hold_key(&redis, "lock:a").await;
    let console = console(&redis).await;
    console.inventory_where("", |page| page["total"] == 1).await;
    redis.pause().await.unwrap();
    console
        .inventory_where("", |page| page["locks"][0]["state"] == "stale")
        .await;
    let (code, out, err) = locks(&console, &[]).await;
    assert_eq!(code, 4);
    let row = out.lines().nth(1).unwrap();
    assert!(
        row.starts_with("stale ") && row.contains("≥ ") && row.contains("≤ "),
        "{row}"
    );
    assert!(
        err.contains("leasehold: cache is ") && err.contains("last seen "),
        "{err}"
    );
}
