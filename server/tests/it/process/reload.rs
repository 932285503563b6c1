//! SIGHUP: backends and the log change while leases and streams go on; what is wrong is refused whole.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use leasehold::throwaway::{Redis, RedisOptions, Throwaway};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::running::Running;
use crate::doors::stage::aside;
use crate::support::eventually::eventually;

async fn set(redis: &Redis, name: &str) {
    let client = redis::Client::open(redis.url()).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let mut set = redis::cmd("SET");
    set.arg(name).arg("worker").arg("PX").arg(600_000);
    set.query_async::<()>(&mut connection).await.unwrap();
}

fn toml(redis: &Redis, name: &str, pattern: &str) -> String {
    format!(
        "[[backend]]\nname = \"{name}\"\nkind = \"redis\"\nurls = [\"{}\"]\npatterns = [\"{pattern}\"]\npoll = \"200ms\"\n",
        redis.url()
    )
}

/// Renews a lease again and again, and counts what came of it.
struct Renewing {
    good: Arc<AtomicUsize>,
    bad: Arc<AtomicUsize>,
    is_over: Arc<AtomicBool>,
}

impl Renewing {
    fn start(running: &Running, lease: &str) -> Self {
        let it = Self {
            good: Arc::default(),
            bad: Arc::default(),
            is_over: Arc::default(),
        };
        let (good, bad, is_over) = (it.good.clone(), it.bad.clone(), it.is_over.clone());
        let (http, url) = (
            running.http.clone(),
            running.url(&format!("/v1/locks/{lease}/renew")),
        );
        let _beside = aside(async move {
            while !is_over.load(Ordering::Relaxed) {
                let answer = http.post(&url).json(&json!({})).send().await;
                let is_good = answer.is_ok_and(|answer| answer.status() == 200);
                let count = if is_good { &good } else { &bad };
                count.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        });
        it
    }

    /// Some more from now on, and not one was refused.
    async fn goes_on(&self) {
        let before = self.good.load(Ordering::Relaxed);
        eventually("renewed five times more", async || {
            self.good.load(Ordering::Relaxed) >= before + 5
        })
        .await;
        assert_eq!(self.bad.load(Ordering::Relaxed), 0);
    }
}

impl Drop for Renewing {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

async fn shows(running: &Running, what: &str, check: impl Fn(&Value) -> bool) {
    eventually(what, async || check(&running.json("/v1/inventory").await)).await;
}

fn names(page: &Value, backend: &str) -> Vec<String> {
    let locks = page["locks"].as_array().into_iter().flatten();
    locks
        .filter(|lock| lock["backend"] == backend)
        .map(|lock| lock["resource"].as_str().unwrap().to_owned())
        .collect()
}

fn backends(page: &Value) -> Vec<String> {
    let backends = page["backends"].as_array().into_iter().flatten();
    backends
        .map(|backend| backend["name"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn backends_come_change_and_go_while_a_lease_is_renewed_and_a_stream_is_open() {
    // Would catch a reload that drops a lease, a stream, or the backends that stay; and one that shows a removed backend.
    let redis = Throwaway::redis(RedisOptions::default()).await.unwrap();
    set(&redis, "lock:a").await;
    set(&redis, "other:b").await;
    let running = Running::start(&toml(&redis, "stays", "lock:*")).await;
    let asked = json!({"resource": "jobs:x", "ownerId": "w", "ttlSeconds": 30});
    let (status, granted) = running.post("/v1/locks/acquire", &asked).await;
    assert!(status < 300, "{status} {granted}");
    let renewing = Renewing::start(&running, granted["leaseId"].as_str().unwrap());
    let stream = running.stream("/v1/events").await;
    shows(&running, "the first lock", |page| {
        names(page, "stays") == ["lock:a"]
    })
    .await;

    let (stays, comes) = (toml(&redis, "stays", "lock:*"), toml(&redis, "comes", "lock:*"));
    running.configure(&format!("{stays}{comes}"));
    running.signal(Signal::HUP);
    shows(&running, "the new backend's lock", |page| {
        names(page, "comes") == ["lock:a"] && backends(page) == ["stays", "comes", "builtin"]
    })
    .await;
    eventually("the open stream names it", async || stream.has("\"comes\"")).await;
    renewing.goes_on().await;

    running.configure(&format!("{stays}{}", toml(&redis, "comes", "other:*")));
    running.signal(Signal::HUP);
    shows(&running, "the changed backend's lock alone", |page| {
        names(page, "comes") == ["other:b"] && names(page, "stays") == ["lock:a"]
    })
    .await;
    renewing.goes_on().await;

    running.configure(&stays);
    running.signal(Signal::HUP);
    shows(&running, "neither the backend nor its lock", |page| {
        names(page, "comes").is_empty() && backends(page) == ["stays", "builtin"]
    })
    .await;
    renewing.goes_on().await;
    assert!(stream.is_open());
    let record = running.json("/v1/audit?action=CONFIG_RELOAD").await;
    let rows = record["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 3, "{record}");
    for row in rows {
        assert_eq!(
            (&row["actorId"], &row["outcome"]),
            (&json!("system"), &json!("applied")),
            "{row}"
        );
    }
    let text = record.to_string();
    assert!(text.contains("comes") && text.contains("removed"), "{text}");
}

/// What `check-config` says is wrong, without its own name in front.
async fn judged(running: &Running) -> String {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_leasehold"));
    command
        .current_dir(running.folder.path())
        .env_clear()
        .env("LEASEHOLD_STORE", "sqlite:leasehold.db")
        .arg("check-config");
    let output = tokio::task::spawn_blocking(move || command.output().unwrap())
        .await
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8(output.stderr).unwrap();
    text.trim_end().trim_start_matches("leasehold: ").to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_configuration_with_a_mistake_is_refused_whole_and_what_needs_a_restart_is_named() {
    // Would catch half of a configuration applied, an error told otherwise than check-config tells it, a log level that
    // stays, and a changed key that is passed over in silence.
    let redis = Throwaway::redis(RedisOptions::default()).await.unwrap();
    set(&redis, "lock:a").await;
    let good = toml(&redis, "cache", "lock:*");
    let running = Running::start(&good).await;
    shows(&running, "the lock", |page| names(page, "cache") == ["lock:a"]).await;

    // A good new backend beside a wrong one, and a wrong key.
    let more = toml(&redis, "more", "lock:*");
    running.configure(&format!(
        "publik_url = 1\n{good}{more}[[backend]]\nname = \"bad\"\nkind = \"reddis\"\n"
    ));
    running.signal(Signal::HUP);
    let wrong = judged(&running).await;
    assert!(
        wrong.contains("publik_url") && wrong.contains("reddis"),
        "{wrong}"
    );
    for line in wrong.lines() {
        running.logs(line).await;
    }
    let page = running.json("/v1/inventory").await;
    assert_eq!(backends(&page), ["cache", "builtin"]);

    running.configure(&format!("log = \"debug\"\n[lease]\nmax_ttl = \"30m\"\n{good}"));
    running.signal(Signal::HUP);
    running
        .logs("lease.max_ttl has changed and needs a restart")
        .await;
    running.logs("log is debug").await;
    running.logs("DEBUG").await;
    shows(&running, "the lock still", |page| {
        names(page, "cache") == ["lock:a"]
    })
    .await;
    let record = running.json("/v1/audit?action=CONFIG_RELOAD").await;
    let outcomes: Vec<&str> = record["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["outcome"].as_str().unwrap())
        .collect();
    assert!(
        outcomes.contains(&"refused") && outcomes.contains(&"applied"),
        "{record}"
    );
}
