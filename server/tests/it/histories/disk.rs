//! A full disk: the folder of the store is a disk of a few MiB, which fills up and is emptied again.

use std::io::Write as _;
use std::time::Duration;

use tokio::time::sleep;

use super::client::send;
use super::world::World;
use crate::support::eventually::eventually;

/// Until there is no room for another byte.
fn fill_up(file: &std::path::Path) {
    let mut file = std::fs::File::create(file).unwrap();
    for size in [64 * 1_024, 1] {
        while file.write_all(&vec![b'x'; size]).is_ok() {}
    }
}

/// Fills the disk until the service says 503 to everything that has to be kept, then makes room.
pub(super) async fn fill(world: &World) -> String {
    let filler = world.servers[0].seen_by_it("disk/filler");
    let http = reqwest::Client::new();
    let report = || async {
        let body = serde_json::json!({"resource": "disk", "ownerId": "filler", "ttlSeconds": 1});
        send(http.post(world.servers[0].url("/v1/locks/acquire")).json(&body)).await
    };
    let mut refused = 0;
    eventually("the service says that it cannot keep anything", async || {
        // What the store gives back meanwhile is filled as well.
        fill_up(&filler);
        let (status, body) = report().await;
        if status == 503 {
            assert_eq!(body["code"], "store_unavailable", "{body}");
            refused += 1;
        }
        refused > 10
    })
    .await;
    sleep(Duration::from_secs(1)).await;
    std::fs::remove_file(&filler).unwrap();
    let log = world.servers[0].read_log();
    let seen = "database or disk is full";
    assert!(log.contains(seen), "{log}");
    format!("SQLite: {seen}")
}
