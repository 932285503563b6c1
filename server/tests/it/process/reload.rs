//! SIGHUP: backends and the log change while leases and streams continue; an invalid configuration is refused as a
//! whole.

use crate::support::aside;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use ::testkit::{Redis, RedisOptions, Throwaway};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::running_server::Running;
use crate::support::redis_keys::hold_key;
use testkit::eventually;

fn toml(redis: &Redis, name: &str, pattern: &str) -> String {
    format!(
        "[[backend]]\nname = \"{name}\"\nkind = \"redis\"\nurls = [\"{}\"]\npatterns = [\"{pattern}\"]\npoll_interval = \"1s\"\n",
        redis.url()
    )
}

/// Renews a lease repeatedly, and counts the results.
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
                // The pace of the load.
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
async fn reload_of_backends_interrupts_no_lease_and_no_stream() {
    // Detects a reload that drops a lease, a stream, or an unchanged backend; and one that shows a removed backend.
    let redis = Throwaway::redis(RedisOptions::default()).await.unwrap();
    hold_key(&redis, "lock:a").await;
    hold_key(&redis, "other:b").await;
    let running = Running::start(&toml(&redis, "stays", "lock:*")).await;
    let body = json!({"resource": "jobs:x", "ownerId": "w", "ttlSeconds": 30});
    let (status, granted) = running.post("/v1/locks/acquire", &body).await;
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
    let rows = record["entries"].as_array().unwrap();
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn counters_of_an_added_backend_start_at_zero() {
    // Without a first 0, `increase()` does not see the first forced unlock on a backend that a reload has added.
    let backend = |name: &str| {
        format!("[[backend]]\nname = \"{name}\"\nkind = \"redis\"\nurls = [\"redis://127.0.0.1:1\"]\n")
    };
    let running = Running::start(&backend("stays")).await;
    let zeros = async |name: &str| {
        let answer = running.http.get(running.url("/metrics")).send().await.unwrap();
        let page = answer.text().await.unwrap();
        let label = format!("distributed_lock_backend=\"{name}\"");
        let lines = page
            .lines()
            .filter(|line| line.contains(&label) && line.ends_with(" 0"));
        lines
            .filter(|line| line.starts_with("distributed_lock_force_unlocks_total{"))
            .count()
    };
    let at_start = zeros("stays").await;
    assert!(at_start > 0);
    assert_eq!(zeros("comes").await, 0);
    running.configure(&format!("{}{}", backend("stays"), backend("comes")));
    running.signal(Signal::HUP);
    eventually("the added backend has the same counters", async || {
        zeros("comes").await == at_start
    })
    .await;
}

/// The errors of `check-config`, without the program name in front.
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
async fn invalid_reload_is_rejected_and_restart_keys_are_named() {
    // Detects a partly applied configuration, an error that differs from check-config's, an unchanged log level, and a
    // changed key that is ignored without a message.
    let redis = Throwaway::redis(RedisOptions::default()).await.unwrap();
    hold_key(&redis, "lock:a").await;
    let good = toml(&redis, "cache", "lock:*");
    let running = Running::start(&good).await;
    shows(&running, "the lock", |page| names(page, "cache") == ["lock:a"]).await;

    // A valid new backend together with an invalid one, and an invalid key.
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
    let outcomes: Vec<&str> = record["entries"]
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reload_names_secret_files_whose_content_changed() {
    // The same path and the same configuration, but another key in the file.
    let secrets = tempfile::tempdir().unwrap();
    let file = secrets.path().join("secret_key");
    let write_key = |digits: &str| std::fs::write(&file, digits.repeat(16)).unwrap();
    write_key("0a1b");
    let running = Running::start(&format!("[notify]\nsecret_key_file = {file:?}\n")).await;
    let changed = "notify.secret_key_file has changed and needs a restart";
    running.signal(Signal::HUP);
    running
        .logs("no setting that applies without a restart has changed")
        .await;
    assert!(!running.log().contains(changed));
    write_key("1b2c");
    running.signal(Signal::HUP);
    running.logs(changed).await;
    assert!(!running.log().contains("1b2c"));
    let record = running.json("/v1/audit?action=CONFIG_RELOAD").await;
    let after = record["entries"][0]["after"].to_string();
    assert!(after.contains("notify.secret_key_file"), "{record}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reload_without_the_default_file_is_rejected() {
    // The server found leasehold.toml in its folder; at the reload the file is away, and its backend stays.
    let backend = "[[backend]]\nname = \"stays\"\nkind = \"redis\"\nurls = [\"redis://127.0.0.1:1\"]\n";
    let running = Running::start(backend).await;
    std::fs::remove_file(running.folder.path().join("leasehold.toml")).unwrap();
    running.signal(Signal::HUP);
    running.logs("the previous configuration remains in effect").await;
    let page = running.json("/v1/inventory").await;
    assert_eq!(backends(&page), ["stays", "builtin"]);
}
