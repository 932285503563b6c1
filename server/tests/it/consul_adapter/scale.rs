//! Scale: 50,000 held keys in one scan.

use ::backends::Budget;
use ::config::backend::SCAN_TIMEOUT_DEFAULT;
use serde_json::{Value, json};

use super::watched_consul::{ConsulClient, backend, consul};
use crate::support::scale::{BYTES_PER_LOCK_MAX, heap_bytes, scan_size};
use crate::support::watching::clock;

const KEYS: usize = 50_000;
/// Most operations of one of Consul's transactions.
const TRANSACTION_MAX: usize = 64;

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
    let before = heap_bytes();
    let budget = Budget {
        time_max: SCAN_TIMEOUT_DEFAULT,
    };
    for _ in 0..3 {
        let size = scan_size(&watched, &clock(), budget).await;
        assert_eq!(size.locks, KEYS);
        let kept = heap_bytes().saturating_sub(before) / KEYS;
        println!("{kept} bytes per lock on the heap of the adapter, {size:?}");
        assert!(kept <= BYTES_PER_LOCK_MAX, "{kept} bytes per lock");
    }
}
