//! The evicted holder of a built-in lease hears who, why and under which record.

use std::time::Duration;

use futures::StreamExt as _;
use reqwest::Method;
use serde_json::{Value, json};

use super::stage::{REASON, Stage, state};
use crate::support::eventually::within;

#[tokio::test]
async fn the_evicted_holder_hears_at_once_who_why_and_under_which_record() {
    // Its event stream is open: `revoked` within a second of the answer; its renewal is 410 with the same; the record
    // has that row, of this unlock.
    let stage = Stage::start().await;
    let operator = stage.operator().await;
    let held = stage.hold(&operator, "r").await;
    let path = format!("/v1/locks/{}/events", held.lease);
    let stream = stage.request(&operator, Method::GET, &path).send().await.unwrap();
    let mut chunks = stream.bytes_stream();
    let text = std::sync::Mutex::new(String::new());
    let listening = async {
        while let Some(Ok(chunk)) = chunks.next().await {
            text.lock().unwrap().push_str(&String::from_utf8_lossy(&chunk));
        }
    };
    let unlocking = async {
        let id = stage.begun(&operator, &held).await;
        let reply = stage.confirm(&operator, &id, "r").await;
        assert_eq!(state(&reply), (200, "released"));
        within(Duration::from_secs(1), "the holder heard", async || {
            text.lock().unwrap().contains("\"type\":\"revoked\"")
        })
        .await;
        reply.1
    };
    // The stream ends with the lease.
    let ((), unlock) = futures::join!(listening, unlocking);
    let text = text.into_inner().unwrap();
    let data = text.lines().find(|line| line.contains("\"revoked\"")).unwrap();
    let event: Value = serde_json::from_str(data.trim_start_matches("data:").trim()).unwrap();
    let (status, problem) = stage
        .post(&operator, &format!("/v1/locks/{}/renew", held.lease), &json!({}))
        .await;
    assert_eq!((status, &problem["code"]), (410, &json!("revoked")));
    for told in [&event, &problem] {
        assert_eq!(
            (&told["by"], &told["reason"]),
            (&json!("operator"), &json!(REASON)),
            "{told}"
        );
        assert_eq!(told["auditId"], unlock["audit"]["act"]);
    }
    let rows = stage.record().await;
    let row = rows.iter().find(|row| unlock["audit"]["act"] == row.id).unwrap();
    assert_eq!(row.unlock_id.as_deref(), unlock["unlockId"].as_str());
}
