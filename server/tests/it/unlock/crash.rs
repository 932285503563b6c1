//! A real server, killed at random moments of forced unlocks: no act without a record, ever.

use crate::support::{Store, on};
use crate::unlock::requests::REASON;
use std::time::Duration;

use ::testkit::{Redis, RedisOptions, Throwaway, free_port};
use domain::access::Role;
use domain::audit::{AuditEntry, AuditQuery};
use leasehold::audit::{Audit, ChainCheckpoints};
use leasehold::identity::{Identity, NewToken, Principal};
use reqwest::Client;
use runtime::clock::Clock;
use runtime::db::Db;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::process::{Child, Command};

use crate::support::rng::{Dice, seed};
use testkit::{eventually, within};

/// Unlocks that are under way when the server is killed: half of built-in leases, half of keys in Redis.
const AT_ONCE: usize = 8;
/// From the first intent to the last outcome, on an idle machine; the kill comes within twice that.
const WHOLE_MS: usize = 120;
/// An act, the slack between clocks, and a round of the background task under load.
const OTHERS_ACT_MAX: Duration = Duration::from_secs(120);

struct CrashTest {
    home: Store,
    redis: Redis,
    driver: redis::aio::MultiplexedConnection,
    port: u16,
    token: String,
    http: Client,
    server: Option<Child>,
}

/// One attempted unlock: its lock, and how to query whether it was released.
struct Tried {
    backend: &'static str,
    resource: String,
    lease: String,
}

impl CrashTest {
    async fn new(home: Store) -> Self {
        let _installed = rustls::crypto::ring::default_provider().install_default();
        let redis = Throwaway::redis(RedisOptions::default()).await.unwrap();
        let client = redis::Client::open(redis.url()).unwrap();
        let patience = redis::AsyncConnectionConfig::new()
            .set_connection_timeout(Some(Duration::from_secs(100)))
            .set_response_timeout(Some(Duration::from_secs(100)));
        let mut test = Self {
            home,
            driver: client
                .get_multiplexed_async_connection_with_config(&patience)
                .await
                .unwrap(),
            redis,
            port: free_port().unwrap(),
            token: String::new(),
            http: Client::builder()
                .timeout(Duration::from_secs(20))
                .build()
                .unwrap(),
            server: None,
        };
        let identity = Identity::open(test.db().await, test.audit().await, Clock::start())
            .await
            .unwrap();
        let new = NewToken {
            name: "operator".to_owned(),
            grants: on(Role::Operator, None, None),
            expires_in: None,
        };
        let token = identity
            .create_token(&Principal::system("test"), new)
            .await
            .unwrap();
        token.expose().clone_into(&mut test.token);
        let toml = format!(
            "[[backend]]\nname = \"cache\"\nkind = \"redis\"\nurls = [\"{0}\"]\nunlock_url = \"{0}\"\n\
             patterns = [\"lock:*\"]\npoll_interval = \"1s\"\n",
            test.redis.url()
        );
        std::fs::write(test.home.folder().join("leasehold.toml"), toml).unwrap();
        test
    }

    async fn db(&self) -> Db {
        Db::open(&self.home.url).await.unwrap()
    }

    async fn audit(&self) -> Audit {
        Audit::new(self.db().await, Clock::start(), ChainCheckpoints::default())
    }

    async fn serve(&mut self) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_leasehold"));
        let log = std::fs::File::create(self.home.folder().join("log")).unwrap();
        command
            .env_clear()
            .env("LEASEHOLD_STORE", &self.home.url)
            .env("LEASEHOLD_LISTEN", format!("127.0.0.1:{}", self.port))
            .current_dir(self.home.folder())
            .arg("serve")
            .stdin(std::process::Stdio::null())
            .stdout(std::process::Stdio::null())
            .stderr(log)
            .kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        let ready = format!("http://127.0.0.1:{}/readyz", self.port);
        eventually("the server is ready", async || {
            let ended = child.try_wait().unwrap();
            let log = || std::fs::read_to_string(self.home.folder().join("log")).unwrap();
            assert!(ended.is_none(), "{ended:?}: {}", log());
            let answer = self.http.get(&ready).send().await;
            answer.is_ok_and(|answer| answer.status().is_success())
        })
        .await;
        self.server = Some(child);
    }

    async fn kill(&mut self) {
        let mut child = self.server.take().unwrap();
        let pid = i32::try_from(child.id().unwrap()).unwrap();
        kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
        child.wait().await.unwrap();
    }

    async fn send(&self, path: &str, body: Option<Value>) -> Option<Value> {
        let url = format!("http://127.0.0.1:{}{path}", self.port);
        let request = match body {
            Some(body) => self.http.post(url).json(&body),
            None => self.http.get(url),
        };
        let answer = request.bearer_auth(&self.token).send().await.ok()?;
        answer.json().await.ok()
    }

    /// A lease, or a key, that the inventory shows; with its generation.
    async fn take(&self, backend: &'static str, name: String) -> (Tried, String) {
        let mut lease = String::new();
        if backend == "builtin" {
            let body = json!({"resource": name, "ownerId": "w", "ttlSeconds": 600});
            let granted = self.send("/v1/locks/acquire", Some(body)).await.unwrap();
            granted["leaseId"].as_str().unwrap().clone_into(&mut lease);
        } else {
            let mut driver = self.driver.clone();
            let set = redis::cmd("SET").arg(&name).arg("w").to_owned();
            let () = set.query_async(&mut driver).await.unwrap();
        }
        let last = std::cell::RefCell::new(None);
        let shown = async || {
            *last.borrow_mut() = self.send(&format!("/v1/inventory/{backend}/{name}"), None).await;
            let lock = last.borrow();
            lock.as_ref().is_some_and(|lock| lock["generation"].is_string())
        };
        // Longer than any step takes: only the audit log counts here.
        let found = tokio::time::timeout(Duration::from_secs(100), async {
            while !shown().await {
                // Pause between two polls.
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
        let found = found.await.is_ok();
        let lock = last.into_inner().unwrap_or_default();
        if !found {
            let backends = self.send("/v1/backends", None).await;
            let log = std::fs::read_to_string(self.home.folder().join("log")).unwrap();
            panic!("{name} on {backend} is not shown: {lock}; {backends:?}; {log}");
        }
        let generation = lock["generation"].as_str().unwrap().to_owned();
        let tried = Tried {
            backend,
            resource: name,
            lease,
        };
        (tried, generation)
    }

    /// Both steps, as far as the server lives.
    async fn unlock(&self, tried: &Tried, generation: &str) -> Option<()> {
        let body = json!({
            "backend": tried.backend, "resource": tried.resource, "generation": generation, "reason": REASON
        });
        let intent = self.send("/v1/unlocks", Some(body)).await?;
        let path = format!("/v1/unlocks/{}/confirm", intent["unlockId"].as_str()?);
        self.send(&path, Some(json!({"resource": tried.resource})))
            .await?;
        Some(())
    }

    /// The audit entry of the release, as stored with the lock; none while it is held.
    async fn was_ended(&self, tried: &Tried) -> Option<Option<String>> {
        if tried.backend == "builtin" {
            let ended = self.home.lease_ending(&tried.lease).await;
            assert_ne!(ended.0.as_deref(), Some("released"), "no owner released it");
            return (ended.0.as_deref() == Some("revoked")).then_some(ended.1);
        }
        let mut driver = self.driver.clone();
        let exists = redis::cmd("EXISTS").arg(&tried.resource).to_owned();
        let there: bool = exists.query_async(&mut driver).await.unwrap();
        (!there).then_some(None)
    }

    /// Whether a later server found its release without an outcome; none while it has none.
    async fn is_cut_off(&self, tried: &Tried) -> Option<bool> {
        let rows = self.rows(&tried.resource).await;
        let Some(act) = rows.iter().position(|row| row.phase == "act") else {
            return Some(false);
        };
        let outcome = rows[act..].iter().find(|row| row.phase == "outcome");
        outcome.map(|outcome| outcome.actor_id == "system")
    }

    /// Rows of one resource, oldest first; the chain is whole.
    async fn rows(&self, resource: &str) -> Vec<AuditEntry> {
        let audit = self.audit().await;
        let heads = std::collections::BTreeMap::new();
        let verified = audit.verify(&heads, |_| {}).await.unwrap();
        assert!(verified.is_ok(), "{verified:?}");
        let query = AuditQuery {
            limit: 100,
            prefix: Some(resource.to_owned()),
            ..AuditQuery::default()
        };
        let mut rows = audit.page(&query).await.unwrap().rows;
        rows.reverse();
        rows
    }
}

#[derive(Debug, Default)]
struct Tally {
    trials: usize,
    ended: usize,
    held: usize,
    acts_cut_off: usize,
}

/// `trials` times: unlocks under way, then `kill -9`. Each ended lease has its act in the audit log, with the intent before
/// it. After the next start each act has an outcome.
///
/// Several servers may share a Postgres: there an act counts as cut off after its deadline. `waits` for that.
async fn kill_in_mid_act(home: Store, trials: usize, waits: bool) -> Tally {
    let seed = seed();
    eprintln!("LEASEHOLD_TEST_SEED={seed}");
    let mut dice = Dice::new(seed);
    let mut test = CrashTest::new(home).await;
    test.serve().await;
    let mut tally = Tally::default();
    let mut tried = Vec::new();
    while tally.trials < trials {
        let mut taken = Vec::new();
        for place in 0..AT_ONCE {
            let name = format!("{}-{place}.", tally.trials);
            taken.push(if place % 2 == 0 {
                test.take("builtin", name).await
            } else {
                test.take("cache", format!("lock:{name}")).await
            });
        }
        let after = Duration::from_micros(dice.below(2 * WHOLE_MS * 1_000) as u64);
        let all = taken
            .iter()
            .map(|(tried, generation)| test.unlock(tried, generation));
        // Not a wait for something: the random moment of the kill.
        let _cut = tokio::time::timeout(after, futures::future::join_all(all)).await;
        test.kill().await;
        for (tried, _) in &taken {
            let rows = test.rows(&tried.resource).await;
            let place = |phase: &str| rows.iter().position(|row| row.phase == phase);
            let Some(by) = test.was_ended(tried).await else {
                tally.held += 1;
                continue;
            };
            tally.ended += 1;
            let act = place("act").unwrap_or_else(|| panic!("ended without a record: {rows:?}"));
            assert!(place("intent").unwrap() < act && rows[act].reason.as_deref() == Some(REASON));
            assert!(
                by.is_none_or(|by| by == rows[act].id),
                "reported under another entry"
            );
        }
        test.serve().await;
        tried.extend(taken.into_iter().map(|(tried, _)| tried));
        if test.home.is_sqlite() {
            for tried in std::mem::take(&mut tried) {
                tally.acts_cut_off +=
                    usize::from(test.is_cut_off(&tried).await.expect("the act has an outcome"));
            }
        }
        tally.trials += 1;
    }
    if waits {
        for tried in &tried {
            let cut_off = std::cell::Cell::new(None);
            within(OTHERS_ACT_MAX, "every act has an outcome", async || {
                cut_off.set(test.is_cut_off(tried).await);
                cut_off.get().is_some()
            })
            .await;
            tally.acts_cut_off += usize::from(cut_off.get() == Some(true));
        }
    }
    test.kill().await;
    tally
}

#[tokio::test]
async fn a_killed_server_leaves_no_unlock_without_an_entry() {
    // Four kills; the long run has two hundred.
    kill_in_mid_act(Store::sqlite(), 4, true).await;
}

#[tokio::test]
async fn a_server_killed_on_postgres_leaves_no_unaudited_unlock() {
    // The same where leases and audit log are in a database of their own, which still executes the statements it has
    // received.
    kill_in_mid_act(Store::postgres().await, 4, false).await;
}

#[tokio::test]
#[ignore = "a long fault run, for `make prove`"]
async fn two_hundred_kills_leave_no_unlock_without_an_entry() {
    // The run counts only when the kills hit: some unlocks done, some not, some acts cut off in the middle.
    kills_hit(&kill_in_mid_act(Store::sqlite(), 200, true).await);
}

#[tokio::test]
#[ignore = "a long fault run, for `make prove`"]
async fn kills_on_postgres_leave_no_unlock_without_an_entry() {
    // As above.
    kills_hit(&kill_in_mid_act(Store::postgres().await, 200, true).await);
}

fn kills_hit(tally: &Tally) {
    eprintln!("{tally:?}");
    assert!(
        tally.ended >= 100 && tally.held >= 100 && tally.acts_cut_off >= 5,
        "{tally:?}"
    );
}
