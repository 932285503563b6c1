//! A lease table in Postgres, and the truth about it.

use std::collections::BTreeMap;

use ::testkit::Postgres;
use sqlx::postgres::{PgPool, PgPoolOptions};
use sqlx::{Connection, Executor, PgConnection};

use super::ledger::{Holder, Locks, names, owner};
use super::rng::Dice;

pub(super) const BACKEND: &str = "orders-db";
const SOURCE: &str = "table:public.distributed_locks";
const SCHEMA: &str = "
CREATE TABLE distributed_locks (resource text PRIMARY KEY, owner_id text NOT NULL, lease_id text NOT NULL,
    fencing_token bigint NOT NULL, expires_at timestamptz NOT NULL, created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL)";
const TAKE: &str = "
INSERT INTO distributed_locks VALUES ($1, $2, $3, $4, now() + $5 * interval '1 ms', now(), now())
ON CONFLICT (resource) DO UPDATE SET owner_id = $2, lease_id = $3, fencing_token = $4,
    expires_at = now() + $5 * interval '1 ms', created_at = now(), updated_at = now()";
const RENEW: &str = "
UPDATE distributed_locks SET expires_at = now() + interval '10 min', updated_at = now() WHERE resource = $1";

pub(super) struct Table {
    pub(super) server: Postgres,
    pool: PgPool,
    names: Vec<String>,
    held: BTreeMap<String, (String, i64)>,
    token: i64,
}

impl Table {
    pub(super) async fn new(server: Postgres) -> Self {
        let mut root = PgConnection::connect(&server.superuser_url()).await.unwrap();
        root.execute(SCHEMA).await.unwrap();
        let pool = connect(&server);
        Self {
            server,
            pool,
            names: names(90),
            held: BTreeMap::new(),
            token: 0,
        }
    }

    pub(super) fn reconnect(&mut self) {
        self.pool = connect(&self.server);
    }

    /// One change; some leases expire soon, and their rows stay.
    pub(super) async fn change(&mut self, dice: &mut Dice) {
        let name = dice.pick(&self.names).clone();
        let done = match self.held.contains_key(&name) {
            true if dice.percent(35) => {
                self.held.remove(&name);
                sqlx::query("DELETE FROM distributed_locks WHERE resource = $1")
                    .bind(name)
                    .execute(&self.pool)
                    .await
            }
            true if dice.percent(50) => sqlx::query(RENEW).bind(name).execute(&self.pool).await,
            _ => {
                let (owner, lease) = (owner(dice), format!("{:016x}", dice.number()));
                let ttl_ms: i64 = if dice.percent(10) { 700 } else { 600_000 };
                self.token += 1;
                self.held.insert(name.clone(), (owner.clone(), self.token));
                let take = sqlx::query(TAKE)
                    .bind(name)
                    .bind(owner)
                    .bind(lease)
                    .bind(self.token)
                    .bind(ttl_ms);
                take.execute(&self.pool).await
            }
        };
        assert_eq!(done.unwrap().rows_affected(), 1);
    }

    pub(super) fn truth(&self) -> Locks {
        let lock = |(name, (owner, token)): (&String, &(String, i64))| {
            let holder = Holder {
                owner: owner.clone(),
                token: Some(token.to_string()),
            };
            ((BACKEND, SOURCE.to_owned(), name.clone()), holder)
        };
        self.held.iter().map(lock).collect()
    }

    /// Fails if the driver's record differs from the server.
    pub(super) async fn check(&self) {
        let rows: Vec<(String, String, i64)> =
            sqlx::query_as("SELECT resource, owner_id, fencing_token FROM distributed_locks")
                .fetch_all(&self.pool)
                .await
                .unwrap();
        let rows: BTreeMap<_, _> = rows
            .into_iter()
            .map(|(name, owner, token)| (name, (owner, token)))
            .collect();
        assert_eq!(rows, self.held);
    }
}

fn connect(server: &Postgres) -> PgPool {
    PgPoolOptions::new()
        .max_connections(2)
        .connect_lazy(&server.superuser_url())
        .unwrap()
}
