//! Locks in etcd, as keys on leases and as queues of mutexes, and the truth about them.

use std::collections::{BTreeMap, BTreeSet};

use ::testkit::Etcd;
use etcd_client::{Client, CompactionOptions, GetOptions, PutOptions};

use testkit::eventually;

use super::ledger::{Holder, Locks, names, owner};
use super::rng::Dice;

pub(super) const BACKEND: &str = "coord";
const TTL_S: i64 = 600;
/// Leases that several keys share.
const SHARED_LEASES: usize = 6;
const MUTEXES: [&str; 5] = [
    "/locks/mutex/a",
    "/locks/mutex/b",
    "/locks/mutex/c",
    "/locks/ü/m",
    "/locks/tenant_1:job",
];

#[derive(Debug, Clone, PartialEq)]
struct Key {
    owner: String,
    lease: i64,
    created: i64,
}

pub(super) struct Coord {
    pub(super) server: Etcd,
    client: Client,
    names: Vec<String>,
    leases: Vec<i64>,
    held: BTreeMap<String, Key>,
    /// Of each mutex, leases and create revisions, in order: the first holds.
    queues: BTreeMap<&'static str, Vec<(i64, i64)>>,
    dying: BTreeSet<String>,
}

impl Coord {
    pub(super) async fn new(server: Etcd) -> Self {
        let client = connect(&server).await;
        let names = names(90).iter().map(|name| format!("/locks/{name}")).collect();
        let (held, dying) = (BTreeMap::new(), BTreeSet::new());
        Self {
            server,
            client,
            names,
            leases: Vec::new(),
            held,
            queues: BTreeMap::new(),
            dying,
        }
    }

    pub(super) async fn reconnect(&mut self) {
        self.client = connect(&self.server).await;
    }

    pub(super) async fn change(&mut self, dice: &mut Dice) {
        match dice.below(100) {
            0..20 => self.change_queue(dice).await,
            20..22 => self.revoke_shared(dice).await,
            _ => self.change_key(dice).await,
        }
    }

    /// Adds a waiter, or removes a random entry of the queue, which may be the holder.
    async fn change_queue(&mut self, dice: &mut Dice) {
        let name = *dice.pick(&MUTEXES);
        let queue = self.queues.entry(name).or_default();
        if queue.is_empty() || (queue.len() < 6 && dice.percent(50)) {
            let lease = self.client.lease_grant(TTL_S, None).await.unwrap().id();
            let options = PutOptions::new().with_lease(lease);
            let put = self
                .client
                .put(format!("{name}/{lease:x}"), "", Some(options))
                .await
                .unwrap();
            queue.push((lease, put.header().unwrap().revision()));
        } else {
            let (lease, _) = queue.remove(dice.below(queue.len()));
            if dice.percent(50) {
                self.client.lease_revoke(lease).await.unwrap();
            } else {
                self.client
                    .delete(format!("{name}/{lease:x}"), None)
                    .await
                    .unwrap();
            }
        }
    }

    /// Every key on the lease dies with it.
    async fn revoke_shared(&mut self, dice: &mut Dice) {
        if !self.leases.is_empty() {
            let lease = self.leases.swap_remove(dice.below(self.leases.len()));
            self.client.lease_revoke(lease).await.unwrap();
            self.held.retain(|_, key| key.lease != lease);
        }
    }

    async fn change_key(&mut self, dice: &mut Dice) {
        let name = dice.pick(&self.names).clone();
        if self.dying.contains(&name) {
            return;
        }
        match self.held.get_mut(&name) {
            Some(_) if dice.percent(45) => {
                self.client.delete(name.as_str(), None).await.unwrap();
                self.held.remove(&name);
            }
            // The same key with another owner keeps its create revision.
            Some(key) if dice.percent(50) => {
                key.owner = owner(dice);
                let options = PutOptions::new().with_ignore_lease();
                self.client
                    .put(name, key.owner.as_str(), Some(options))
                    .await
                    .unwrap();
            }
            Some(key) => {
                self.client.lease_keep_alive(key.lease).await.unwrap();
            }
            None => self.take(name, dice).await,
        }
    }

    async fn take(&mut self, name: String, dice: &mut Dice) {
        let is_dying = dice.percent(8);
        let lease = if is_dying {
            self.client.lease_grant(1, None).await.unwrap().id()
        } else {
            if self.leases.len() < SHARED_LEASES {
                self.leases
                    .push(self.client.lease_grant(TTL_S, None).await.unwrap().id());
            }
            *dice.pick(&self.leases)
        };
        let owner = owner(dice);
        let options = PutOptions::new().with_lease(lease);
        let put = self
            .client
            .put(name.as_str(), owner.as_str(), Some(options))
            .await
            .unwrap();
        if is_dying {
            self.dying.insert(name.clone());
        }
        let created = put.header().unwrap().revision();
        self.held.insert(
            name,
            Key {
                owner,
                lease,
                created,
            },
        );
    }

    /// Drops all history up to now: a watch that was interrupted cannot continue from its last position.
    pub(super) async fn compact(&mut self) {
        let now = self
            .client
            .get("/", None)
            .await
            .unwrap()
            .header()
            .unwrap()
            .revision();
        self.client
            .compact(now, Some(CompactionOptions::new().with_physical()))
            .await
            .unwrap();
    }

    /// Waits until all short leases have expired.
    pub(super) async fn wait_for_expiries(&mut self) {
        for name in std::mem::take(&mut self.dying) {
            let client = &self.client;
            eventually("a key has run out", async || {
                client
                    .clone()
                    .get(name.as_str(), None)
                    .await
                    .unwrap()
                    .kvs()
                    .is_empty()
            })
            .await;
            self.held.remove(&name);
        }
    }

    pub(super) fn truth(&self) -> Locks {
        let lock = |source: &str, name: &str, owner: String, token: i64| {
            (
                (BACKEND, source.to_owned(), name.to_owned()),
                Holder {
                    owner,
                    token: Some(token.to_string()),
                },
            )
        };
        let keys = self
            .held
            .iter()
            .map(|(name, key)| lock("key", name, key.owner.clone(), key.created));
        let held = self
            .queues
            .iter()
            .filter_map(|(name, queue)| Some((name, queue.first()?)));
        let mutexes =
            held.map(|(name, (lease, created))| lock("mutex", name, format!("{lease:x}"), *created));
        keys.chain(mutexes).collect()
    }

    /// Fails if the driver's record differs from the server.
    pub(super) async fn check(&self) {
        let all = GetOptions::new().with_prefix();
        let kvs = self
            .client
            .clone()
            .get("/locks/", Some(all))
            .await
            .unwrap()
            .take_kvs();
        let there: BTreeMap<String, i64> = kvs
            .iter()
            .map(|kv| (kv.key_str().unwrap().to_owned(), kv.create_revision()))
            .collect();
        let keys = self.held.iter().map(|(name, key)| (name.clone(), key.created));
        let queues = self.queues.iter().flat_map(|(name, queue)| {
            queue
                .iter()
                .map(move |(lease, created)| (format!("{name}/{lease:x}"), *created))
        });
        assert_eq!(there, keys.chain(queues).collect());
    }
}

async fn connect(server: &Etcd) -> Client {
    Client::connect([server.endpoint()], None).await.unwrap()
}
