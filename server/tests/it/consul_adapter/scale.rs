//! Scale: 50,000 held keys in one scan.

use ::backends::{Backend, Batch, Budget, Sink};
use ::config::backend::SCAN_TIMEOUT_DEFAULT;
use serde_json::{Value, json};

use super::watched_consul::{ConsulClient, backend, clock, consul};
use crate::support::watching::resident_bytes;

const KEYS: usize = 50_000;
/// Most operations of one of Consul's transactions.
const TRANSACTION_MAX: usize = 64;

/// Counts, and keeps nothing.
struct Counted(usize);

impl Sink for Counted {
    fn accept(&mut self, batch: Batch) {
        self.0 += batch.locks.len();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: part of `make prove`"]
async fn fifty_thousand_keys_are_read_in_one_scan() {
    // Held by 500 sessions.
    let consul = consul(false).await;
    let client = ConsulClient::new(&consul.url(), None);
    let mut sessions = Vec::new();
    for number in 0..500 {
        sessions.push(client.long_session(&format!("worker-{number}")).await);
    }
    let keys: Vec<usize> = (0..KEYS).collect();
    for chunk in keys.chunks(TRANSACTION_MAX) {
        let lock = |number: &usize| {
            let key = format!("locks/tenant-{number:05}/billing-close");
            json!({ "KV": { "Verb": "lock", "Key": key, "Value": "aGVsZA==", "Session": sessions[number % 500] } })
        };
        let operations: Vec<Value> = chunk.iter().map(lock).collect();
        client
            .put("txn", serde_json::to_string(&operations).unwrap())
            .await;
    }
    let watched = backend(&consul.url(), |_, _| {});
    let before = resident_bytes();
    let mut scans_ms = Vec::new();
    for _ in 0..3 {
        let (mut counted, started) = (Counted(0), clock().tick());
        let budget = Budget {
            time_max: SCAN_TIMEOUT_DEFAULT,
        };
        let pass = watched.observe(budget, &mut counted).await.unwrap();
        scans_ms.push(clock().tick().since(started));
        assert!(pass.sources[0].coverage.is_complete(), "{:?}", pass.sources);
        assert_eq!(counted.0, KEYS);
    }
    let grown = resident_bytes().saturating_sub(before) / KEYS as u64;
    println!("Consul: {KEYS} keys, scans of {scans_ms:?} ms, {grown} bytes per lock resident in the adapter");
}
