//! Three servers, each behind a fault proxy, one console connected through it, and a driver connected directly.

use crate::support::TestServer;
use ::testkit::{EtcdOptions, PostgresOptions, RedisOptions, Server, Throwaway};
use runtime::clock::Clock;

use crate::support::proxy::Proxy;

use super::coordinator::{self, Coord};
use super::fault::{SYSTEMS, System};
use super::keys::{self, Keys};
use super::ledger::Locks;
use super::rng::Dice;
use super::table::{self, Table};
use super::view::View;

/// The console's poll period in this test, and the most that it waits for an answer.
pub(super) const POLL_MS: i64 = 500;
const TIMEOUT_MS: i64 = 1_000;

pub(super) struct Systems {
    pub(super) table: Table,
    pub(super) keys: Keys,
    pub(super) coord: Coord,
    proxies: [Proxy; 3],
    _console: TestServer,
    pub(super) view: View,
    pub(super) clock: Clock,
}

impl Systems {
    pub(super) async fn start() -> Self {
        let postgres = PostgresOptions {
            fast: true,
            ..Default::default()
        };
        let redis = RedisOptions {
            append_only: true,
            notify_keyspace_events: Some("KEA".to_owned()),
            ..Default::default()
        };
        let etcd = EtcdOptions {
            fast: true,
            ..Default::default()
        };
        let (postgres, redis, etcd) = tokio::join!(
            Throwaway::postgres(postgres),
            Throwaway::redis(redis),
            Throwaway::etcd(etcd)
        );
        let (postgres, redis, etcd) = (postgres.unwrap(), redis.unwrap(), etcd.unwrap());
        let proxies = [
            Proxy::start(postgres.port()).await,
            Proxy::start(redis.port()).await,
            Proxy::start(etcd.port()).await,
        ];
        let table = Table::new(postgres).await;
        let console = TestServer::builder()
            .config(&configuration(
                [0, 1, 2].map(|index: usize| proxies[index].port()),
            ))
            .operator()
            .start()
            .await;
        console.ready().await;
        let view = View::new(&console);
        Self {
            table,
            keys: Keys::new(redis).await,
            coord: Coord::new(etcd).await,
            proxies,
            _console: console,
            view,
            clock: Clock::start(),
        }
    }

    pub(super) fn proxy(&self, system: System) -> &Proxy {
        &self.proxies[system as usize]
    }

    pub(super) fn backend(system: System) -> &'static str {
        match system {
            System::Table => table::BACKEND,
            System::Keys => keys::BACKEND,
            System::Coord => coordinator::BACKEND,
        }
    }

    pub(super) async fn change(&mut self, on: System, dice: &mut Dice) {
        match on {
            System::Table => self.table.change(dice).await,
            System::Keys => self.keys.change(dice).await,
            System::Coord => self.coord.change(dice).await,
        }
    }

    /// `count` changes on systems drawn by lot, without `spared`.
    pub(super) async fn changes(&mut self, count: u32, spared: Option<System>, dice: &mut Dice) {
        let open: Vec<System> = SYSTEMS
            .into_iter()
            .filter(|system| Some(*system) != spared)
            .collect();
        for _ in 0..count {
            let on = *dice.pick(&open);
            self.change(on, dice).await;
        }
    }

    /// All locks are at rest, with no expiry pending, and the driver's records are correct. A paused system is
    /// skipped: it cannot be queried.
    pub(super) async fn rest(&mut self, spared: Option<System>) {
        if spared != Some(System::Table) {
            self.table.check().await;
        }
        if spared != Some(System::Keys) {
            self.keys.wait_for_expiries().await;
            self.keys.check().await;
        }
        if spared != Some(System::Coord) {
            self.coord.wait_for_expiries().await;
            self.coord.check().await;
        }
    }

    pub(super) fn truth(&self) -> Locks {
        let mut truth = self.table.truth();
        truth.extend(self.keys.truth());
        truth.extend(self.coord.truth());
        truth
    }

    pub(super) fn truth_of(&self, system: System) -> Locks {
        match system {
            System::Table => self.table.truth(),
            System::Keys => self.keys.truth(),
            System::Coord => self.coord.truth(),
        }
    }

    pub(super) fn server(&self, system: System) -> &Server {
        match system {
            System::Table => &self.table.server,
            System::Keys => &self.keys.server,
            System::Coord => &self.coord.server,
        }
    }

    /// After a restart.
    pub(super) async fn reconnect(&mut self, system: System) {
        match system {
            System::Table => self.table.reconnect(),
            System::Keys => self.keys.reconnect().await,
            System::Coord => self.coord.reconnect().await,
        }
    }
}

fn configuration([table_port, keys_port, coord_port]: [u16; 3]) -> String {
    let pace = format!("poll_interval = \"{POLL_MS}ms\"\ntimeout = \"{TIMEOUT_MS}ms\"");
    format!(
        "[[backend]]\nname = \"{}\"\nkind = \"postgres\"\nurl = \"postgres://postgres@127.0.0.1:{table_port}/postgres\"\n\
         advisory_locks = false\nblocked_sessions = false\n{pace}\n\
         [[backend.lease_table]]\ntable = \"public.distributed_locks\"\n\
         [[backend]]\nname = \"{}\"\nkind = \"redis\"\nurls = [\"redis://127.0.0.1:{keys_port}/\"]\n{pace}\n\
         [[backend]]\nname = \"{}\"\nkind = \"etcd\"\nendpoints = [\"http://127.0.0.1:{coord_port}\"]\n{pace}\n",
        table::BACKEND,
        keys::BACKEND,
        coordinator::BACKEND,
    )
}
