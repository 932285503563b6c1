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
        let lock_path = lock_path(self.number, name);
        let options = CreateMode::EphemeralSequential.with_acls(Acls::anyone_all());
        let node_prefix = format!("{lock_path}/lock-");
        let owner = format!("worker-{}", self.number);
        let (_, sequence) = self
            .zookeeper
            .create(&node_prefix, owner.as_bytes(), &options)
            .await?;
        let contenders = self.zookeeper.list_children(&lock_path).await?;
        let own_node = format!("lock-{sequence}");
        if contenders.iter().min() != Some(&own_node) {
            let answer = format!("{own_node} is not the first of {contenders:?}");
            return Err(BenchError::bad_answer("ZooKeeper", answer));
        }
        self.zookeeper
            .delete(&format!("{node_prefix}{sequence}"), None)
            .await?;
        Ok(())
    }
}

fn lock_path(number: usize, name: u64) -> String {
    format!("/bench-{number}-{name}")
}

pub(super) async fn measure(server: &Zookeeper, span: LoadSpan) -> Result<Pace, BenchError> {
    let mut clients = Vec::new();
    let persistent = CreateMode::Persistent.with_acls(Acls::anyone_all());
    for number in 0..CLIENTS {
        let zookeeper = Client::connect(&server.cluster()).await?;
        for name in 0..NAMES {
            zookeeper
                .create(&lock_path(number, name), b"", &persistent)
                .await?;
        }
        clients.push(Holder { zookeeper, number });
    }
    load::run(clients, span).await
}
