//! Clients that acquire and release locks as fast as they can, and every token that they were granted.

use crate::support::aside;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::installation::Installation;
use testkit::eventually;

const CLIENTS: usize = 4;

/// The highest token granted for each resource.
pub(super) type Tokens = BTreeMap<String, u64>;

pub(super) struct Load {
    seen: Arc<Mutex<(u64, Tokens)>>,
    is_over: Arc<AtomicBool>,
    clients: Vec<JoinHandle<()>>,
}

impl Load {
    /// Each token must be above all tokens in `before` of its resource, above the previous one, and above `floor`.
    pub(super) fn start(on: &Installation, before: Tokens, floor: u64) -> Self {
        let seen = Arc::new(Mutex::new((0, before)));
        let is_over = Arc::new(AtomicBool::new(false));
        let clients = (0..CLIENTS).map(|number| {
            let (http, acquire, locks) = (on.http.clone(), on.url("/v1/locks/acquire"), on.url("/v1/locks"));
            let (seen, is_over) = (seen.clone(), is_over.clone());
            aside(async move {
                let resource = format!("jobs:load-{number}");
                while !is_over.load(Ordering::Relaxed) {
                    let body =
                        json!({"resource": resource, "ownerId": "w", "ttlSeconds": 10, "waitSeconds": 30});
                    let lease: Value = http
                        .post(&acquire)
                        .json(&body)
                        .send()
                        .await
                        .unwrap()
                        .json()
                        .await
                        .unwrap();
                    let token = lease["fencingToken"]
                        .as_u64()
                        .unwrap_or_else(|| panic!("{lease}"));
                    assert!(token > floor, "{resource}: {token} is not above {floor}");
                    record_token(&seen, &resource, token);
                    let url = format!("{locks}/{}", lease["leaseId"].as_str().unwrap());
                    assert!(http.delete(url).send().await.unwrap().status().is_success());
                }
            })
        });
        Self {
            clients: clients.collect(),
            seen,
            is_over,
        }
    }

    /// Waits for this number of further tokens.
    pub(super) async fn goes_on(&self, more: u64) {
        let count = || self.seen.lock().unwrap().0;
        let before = count();
        eventually(&format!("{more} tokens more"), async || {
            let ended = self.clients.iter().any(JoinHandle::is_finished);
            assert!(!ended, "a client has failed");
            count() >= before + more
        })
        .await;
    }

    /// All clients have released their locks.
    pub(super) async fn stop(self) -> Tokens {
        self.is_over.store(true, Ordering::Relaxed);
        for client in self.clients {
            client.await.unwrap();
        }
        self.seen.lock().unwrap().1.clone()
    }
}

fn record_token(seen: &Mutex<(u64, Tokens)>, resource: &str, token: u64) {
    let mut seen = seen.lock().unwrap();
    seen.0 += 1;
    let last = seen.1.insert(resource.to_owned(), token).unwrap_or(0);
    assert!(token > last, "{resource}: {token} after {last}");
}
