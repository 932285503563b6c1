//! A console with a real Postgres, Redis and etcd behind it, and helpers that acquire locks on each.

use crate::support::TestServer;
use ::testkit::{Etcd, EtcdOptions, Postgres, PostgresOptions, Redis, RedisOptions, Throwaway};
use etcd_client::PutOptions;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};

/// Without a unique index: two rows may name one resource.
pub(super) const TABLE: &str =
    "CREATE TABLE locks (resource text, owner_id text, lease_id text, fencing_token bigint,
    expires_at timestamptz, created_at timestamptz, updated_at timestamptz)";

pub(super) struct Systems {
    pub(super) console: TestServer,
    pub(super) postgres: Postgres,
    pub(super) redis: Redis,
    pub(super) etcd: Etcd,
    /// Nodes of a Redlock.
    pub(super) nodes: [Redis; 3],
}

impl Systems {
    pub(super) async fn start() -> Self {
        let redis = || Box::pin(Throwaway::redis(RedisOptions::default()));
        let (postgres, redis, a, b, c, etcd) = tokio::join!(
            Box::pin(Throwaway::postgres(PostgresOptions {
                fast: true,
                settings: vec![("max_prepared_transactions".to_owned(), "5".to_owned())],
                ..PostgresOptions::default()
            })),
            redis(),
            redis(),
            redis(),
            redis(),
            Box::pin(Throwaway::etcd(EtcdOptions {
                fast: true,
                ..EtcdOptions::default()
            })),
        );
        let (postgres, redis, etcd) = (postgres.unwrap(), redis.unwrap(), etcd.unwrap());
        let nodes = [a, b, c].map(Result::unwrap);
        execute(&postgres, TABLE).await;
        let toml = format!(
            "[[backend]]\nname = \"orders\"\nkind = \"postgres\"\nurl = \"{}\"\npoll_interval = \"1s\"\n\
             [[backend.lease_table]]\ntable = \"public.locks\"\n\
             [[backend]]\nname = \"cache\"\nkind = \"redis\"\nurls = [\"{}\"]\npoll_interval = \"1s\"\n\
             [[backend]]\nname = \"quorum\"\nkind = \"redis\"\nmode = \"redlock\"\nurls = {:?}\npoll_interval = \"1s\"\n\
             [[backend]]\nname = \"coord\"\nkind = \"etcd\"\nendpoints = [\"{}\"]\npoll_interval = \"1s\"\n",
            postgres.superuser_url(),
            redis.url(),
            nodes.each_ref().map(Redis::url),
            etcd.endpoint()
        );
        let console = Box::pin(TestServer::builder().config(&toml).operator().start()).await;
        console.ready().await;
        Self {
            console,
            postgres,
            redis,
            etcd,
            nodes,
        }
    }

    pub(super) async fn post(&self, path: &str, body: &Value) -> Value {
        let request = self.console.client.post(self.console.url(path)).json(body);
        let answer = request.send().await.unwrap();
        assert!(answer.status().is_success(), "{path}: {}", answer.status());
        answer.json().await.unwrap_or_default()
    }

    /// A lease of the built-in service.
    pub(super) async fn acquire(&self, resource: &str, owner: &str, ttl_s: u32) -> Value {
        let body = json!({"resource": resource, "ownerId": owner, "ttlSeconds": ttl_s});
        let lease = self.post("/v1/locks/acquire", &body).await;
        assert_eq!(lease["acquired"], true, "{lease}");
        lease
    }

    pub(super) async fn release(&self, lease: &Value) {
        let path = format!("/v1/locks/{}", lease["leaseId"].as_str().unwrap());
        let answer = self.console.client.delete(self.console.url(&path)).send().await;
        assert!(answer.unwrap().status().is_success(), "{path}");
    }

    /// A resource checks whether it may accept a write.
    pub(super) async fn write(&self, resource: &str, owner: &str, token: &Value) -> bool {
        let body = json!({"resource": resource, "ownerId": owner, "fencingToken": token});
        let checked = self.post("/v1/fencing/check", &body).await;
        checked["accepted"].as_bool().unwrap()
    }

    /// One value per node of the Redlock; an empty one deletes the key.
    pub(super) async fn redlock(&self, key: &str, values: [&str; 3]) {
        for (node, value) in self.nodes.iter().zip(values) {
            if value.is_empty() {
                run(node, &["DEL", key]).await;
            } else {
                run(node, &["SET", key, value, "PX", "600000"]).await;
            }
        }
    }

    pub(super) async fn redis(&self, words: &[&str]) {
        run(&self.redis, words).await;
    }

    /// A key on a lease of its own.
    pub(super) async fn etcd_put(&self, key: &str, owner: &str, ttl_s: i64) {
        let mut client = etcd_client::Client::connect([self.etcd.endpoint()], None)
            .await
            .unwrap();
        let lease = client.lease_grant(ttl_s, None).await.unwrap().id();
        let options = PutOptions::new().with_lease(lease);
        client.put(key, owner, Some(options)).await.unwrap();
    }

    /// A row of the lease table.
    pub(super) async fn row(&self, resource: &str, owner: &str, token: u32, left: &str) {
        let sql = format!(
            "INSERT INTO locks VALUES ('{resource}', '{owner}', 'l-{owner}-{token}', {token},
                now() + interval '{left}', now(), now())"
        );
        execute(&self.postgres, &sql).await;
    }
}

async fn run(redis: &Redis, words: &[&str]) {
    let client = redis::Client::open(redis.url()).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let mut command = redis::cmd(words[0]);
    command.arg(&words[1..]);
    let _: redis::Value = command.query_async(&mut connection).await.unwrap();
}

pub(super) async fn session(postgres: &Postgres) -> PgConnection {
    PgConnection::connect(&postgres.superuser_url()).await.unwrap()
}

pub(super) async fn execute(postgres: &Postgres, sql: &str) {
    let mut session = session(postgres).await;
    session
        .execute(AssertSqlSafe(sql.to_owned()))
        .await
        .unwrap_or_else(|error| panic!("{sql}: {error}"));
}
