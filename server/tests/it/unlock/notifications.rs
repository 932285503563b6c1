//! The evicted holder of a built-in lease receives user, reason and audit entry.

use crate::support::TestServer;
use crate::unlock::requests::{REASON, state};
use futures::StreamExt as _;
use reqwest::Method;
use serde_json::{Value, json};

use testkit::eventually;

#[tokio::test]
async fn the_evicted_holder_gets_actor_reason_and_entry() {
    // Its event stream is open: it receives `revoked`; its renewal is 410 with the same; the audit log has that
    // entry, of this unlock.
    let server = TestServer::start().await;
    let operator = server.operator().await;
    let held = server.hold(&operator, "r").await;
    let path = format!("/v1/locks/{}/events", held.lease);
    let stream = server
        .as_user(&operator)
        .request(Method::GET, &path)
        .send()
        .await
        .unwrap();
    let mut chunks = stream.bytes_stream();
    let text = std::sync::Mutex::new(String::new());
    let listening = async {
        while let Some(Ok(chunk)) = chunks.next().await {
            text.lock().unwrap().push_str(&String::from_utf8_lossy(&chunk));
        }
    };
    let unlocking = async {
        let id = server.begun(&operator, &held).await;
        let reply = server.confirm(&operator, &id, "r").await;
        assert_eq!(state(&reply), (200, "released"));
        eventually("the holder received the event", async || {
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
    let (status, problem) = server
        .as_user(&operator)
        .post(&format!("/v1/locks/{}/renew", held.lease), &json!({}))
        .await;
    assert_eq!((status, &problem["code"]), (410, &json!("revoked")));
    for lost in [&event, &problem] {
        assert_eq!(
            (&lost["by"], &lost["reason"]),
            (&json!("operator"), &json!(REASON)),
            "{lost}"
        );
        assert_eq!(lost["auditId"], unlock["audit"]["act"]);
    }
    let rows = server.unlock_entries().await;
    let row = rows.iter().find(|row| unlock["audit"]["act"] == row.id).unwrap();
    assert_eq!(row.unlock_id.as_deref(), unlock["unlockId"].as_str());
}
