//! The peer ZooKeeper with its lock recipe. Each client has its own session; an ephemeral sequential node joins the
//! queue, its list shows who is first, a delete releases it.

use zookeeper_client::{Acls, Client, CreateMode};

use crate::error::BenchError;
use crate::load::{self, CLIENTS, LoadSpan, LockClient, NAMES, Pace};
use testkit::Zookeeper;

struct Holder {
    zookeeper: Client,
    number: usize,
}

impl LockClient for Holder {
    async fn pair(&mut self, name: u64) -> Result<(), BenchError> {
        let line = line(self.number, name);
        let options = CreateMode::EphemeralSequential.with_acls(Acls::anyone_all());
        let place = format!("{line}/lock-");
        let owner = format!("worker-{}", self.number);
        let (_, sequence) = self.zookeeper.create(&place, owner.as_bytes(), &options).await?;
        let waiting = self.zookeeper.list_children(&line).await?;
        let own = format!("lock-{sequence}");
        if waiting.iter().min() != Some(&own) {
            let answer = format!("{own} is not the first of {waiting:?}");
            return Err(BenchError::bad_answer("ZooKeeper", answer));
        }
        self.zookeeper.delete(&format!("{place}{sequence}"), None).await?;
        Ok(())
    }
}

fn line(number: usize, name: u64) -> String {
    format!("/bench-{number}-{name}")
}

pub(super) async fn measure(server: &Zookeeper, span: LoadSpan) -> Result<Pace, BenchError> {
    let mut clients = Vec::new();
    let lasting = CreateMode::Persistent.with_acls(Acls::anyone_all());
    for number in 0..CLIENTS {
        let zookeeper = Client::connect(&server.cluster()).await?;
        for name in 0..NAMES {
            zookeeper.create(&line(number, name), b"", &lasting).await?;
        }
        clients.push(Holder { zookeeper, number });
    }
    load::run(clients, span).await
}
