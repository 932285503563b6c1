//! Locks in Redis, as JSON values and as Redisson's hashes, and the truth about them.

use std::collections::{BTreeMap, BTreeSet};

use ::testkit::Redis;
use redis::aio::MultiplexedConnection;
use redis::{AsyncCommands, Client, cmd, pipe};

use testkit::eventually;

use super::ledger::{Holder, Locks, names, owner, text};
use super::rng::Dice;

pub(super) const BACKEND: &str = "cache";
const TTL_MS: i64 = 600_000;

#[derive(Debug, Clone, PartialEq)]
enum Held {
    Json(String),
    Hash(String),
}

pub(super) struct Keys {
    pub(super) server: Redis,
    connection: MultiplexedConnection,
    names: Vec<Vec<u8>>,
    held: BTreeMap<Vec<u8>, Held>,
    /// Taken with a short TTL: they will be gone by themselves.
    dying: BTreeSet<Vec<u8>>,
}

impl Keys {
    pub(super) async fn new(server: Redis) -> Self {
        let connection = connect(&server).await;
        let mut names: Vec<Vec<u8>> = names(90)
            .iter()
            .map(|name| format!("lock:{name}").into_bytes())
            .collect();
        names.extend([
            b"lock:\xff\xfe".to_vec(),
            b"lock:\x00".to_vec(),
            b"lock:\n".to_vec(),
        ]);
        Self {
            server,
            connection,
            names,
            held: BTreeMap::new(),
            dying: BTreeSet::new(),
        }
    }

    pub(super) async fn reconnect(&mut self) {
        self.connection = connect(&self.server).await;
    }

    /// One change. A name may come back as a lock of the other kind: another source in the list.
    pub(super) async fn change(&mut self, dice: &mut Dice) {
        let name = dice.pick(&self.names).clone();
        if self.dying.contains(&name) {
            return;
        }
        match self.held.contains_key(&name) {
            true if dice.percent(35) => {
                self.held.remove(&name);
                assert!(self.connection.del::<_, bool>(&name).await.unwrap());
            }
            true if dice.percent(50) => {
                assert!(self.connection.pexpire::<_, bool>(&name, TTL_MS).await.unwrap());
            }
            _ => self.take(name, dice).await,
        }
    }

    async fn take(&mut self, name: Vec<u8>, dice: &mut Dice) {
        let is_dying = dice.percent(10);
        let ttl_ms = if is_dying { 700 } else { TTL_MS };
        let mut commands = pipe();
        commands.atomic().del(&name).ignore();
        let held = if dice.percent(25) {
            let field = format!(
                "{:08x}-1111-4222-8333-{:012x}:{}",
                dice.number() >> 32,
                dice.number() >> 16,
                dice.below(99)
            );
            commands.hset(&name, &field, 1).ignore();
            Held::Hash(field)
        } else {
            let owner = owner(dice);
            let value = serde_json::json!({ "ownerId": owner, "leaseId": format!("{:016x}", dice.number()) });
            commands.set(&name, value.to_string()).ignore();
            Held::Json(owner)
        };
        // Some have no TTL: that is a state of theirs, not a difference.
        if is_dying || dice.percent(95) {
            commands.pexpire(&name, ttl_ms).ignore();
        }
        let () = commands.query_async(&mut self.connection).await.unwrap();
        if is_dying {
            self.dying.insert(name.clone());
        }
        self.held.insert(name, held);
    }

    pub(super) async fn flush(&mut self) {
        let () = cmd("FLUSHDB").query_async(&mut self.connection).await.unwrap();
        self.held.clear();
        self.dying.clear();
    }

    /// Waits until all short leases have expired.
    pub(super) async fn wait_for_expiries(&mut self) {
        for name in std::mem::take(&mut self.dying) {
            let server = &self.connection;
            eventually("a key has run out", async || {
                !server.clone().exists::<_, bool>(&name).await.unwrap()
            })
            .await;
            self.held.remove(&name);
        }
    }

    pub(super) fn truth(&self) -> Locks {
        let lock = |(name, held): (&Vec<u8>, &Held)| {
            let (source, owner) = match held {
                Held::Json(owner) => ("key", owner),
                Held::Hash(field) => ("hash", field),
            };
            (
                (BACKEND, source.to_owned(), text(name)),
                Holder {
                    owner: owner.clone(),
                    token: None,
                },
            )
        };
        self.held.iter().map(lock).collect()
    }

    /// Fails if the driver's record differs from the server.
    pub(super) async fn check(&self) {
        let keys: BTreeSet<Vec<u8>> = cmd("KEYS")
            .arg("*")
            .query_async(&mut self.connection.clone())
            .await
            .unwrap();
        assert_eq!(keys, self.held.keys().cloned().collect());
    }
}

async fn connect(server: &Redis) -> MultiplexedConnection {
    Client::open(server.url())
        .unwrap()
        .get_multiplexed_async_connection()
        .await
        .unwrap()
}
