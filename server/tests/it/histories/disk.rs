//! A full disk: the folder of the store is a disk of a few MiB, which fills up and is emptied again.

use std::io::Write as _;
use std::time::Duration;

use tokio::time::sleep;

use super::world::World;

/// Until there is no room for another byte.
fn fill_up(file: &std::path::Path) {
    let mut file = std::fs::File::create(file).unwrap();
    for size in [64 * 1_024, 1] {
        while file.write_all(&vec![b'x'; size]).is_ok() {}
    }
}

/// Fills the disk until the service says 503 to everything that has to be kept, then makes room.
pub(super) async fn fill(world: &mut World) -> String {
    let filler = world.servers[0].seen_by_it("disk/filler");
    let (mut refused, mut tries) = (0, 0);
    while refused < 10 {
        // What the store gives back meanwhile is filled as well.
        fill_up(&filler);
        let (status, _) = world.probe("disk").await;
        refused += u32::from(status == 503);
        tries += 1;
        assert!(tries < 1_000, "a full disk is not noticed");
    }
    sleep(Duration::from_secs(1)).await;
    std::fs::remove_file(&filler).unwrap();
    let log = world.servers[0].read_log();
    let seen = "database or disk is full";
    assert!(log.contains(seen), "{log}");
    format!("SQLite: {seen}")
}
