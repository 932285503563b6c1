//! Real servers, with one text in every name, owner, value, label and error that they have.

use ::testkit::{Etcd, EtcdOptions, Postgres, PostgresOptions, Redis, RedisOptions, Throwaway};
use serde_json::json;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
use tokio::task::JoinHandle;

use crate::support::hostile_redis::hostile_redis;
use crate::support::webhook_sink::{Reply, WebhookSink};

/// The receiver of notifications, which refuses each with the text.
pub(super) const RECEIVER: &str = "refusing";

pub(super) struct Servers {
    redis: Redis,
    etcd: Etcd,
    postgres: Postgres,
    pub(super) receiver: WebhookSink,
    _sessions: Vec<PgConnection>,
    _waiting: JoinHandle<()>,
}

/// More than there are notifications.
const REFUSALS: usize = 500;

fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}

impl Servers {
    pub(super) async fn start(p: &str) -> Self {
        let redis = Throwaway::redis(RedisOptions::default()).await.unwrap();
        let etcd = EtcdOptions {
            fast: true,
            ..EtcdOptions::default()
        };
        let etcd = Throwaway::etcd(etcd).await.unwrap();
        let postgres = PostgresOptions {
            fast: true,
            ..Default::default()
        };
        let postgres = Throwaway::postgres(postgres).await.unwrap();
        fill_redis(&redis, p).await;
        fill_etcd(&etcd, p).await;
        let holder = named_session(&postgres, &format!("app-{p}")).await;
        let (mut holder, waiter) = (holder, named_session(&postgres, &format!("who-{p}")).await);
        fill_postgres(&mut holder, p).await;
        let receiver = WebhookSink::open().await;
        receiver.answers((0..REFUSALS).map(|_| Reply::Text(400, format!("refused {p}"))));
        Self {
            receiver,
            redis,
            etcd,
            _waiting: wait_for_key(waiter, p),
            _sessions: vec![holder],
            postgres,
        }
    }

    pub(super) fn toml(&self, p: &str) -> String {
        let broken = hostile_redis(&format!("broken {p}"));
        let (redis, etcd, postgres) = (
            self.redis.url(),
            self.etcd.endpoint(),
            self.postgres.superuser_url(),
        );
        format!(
            "[[backend]]\nname = \"cache\"\nkind = \"redis\"\nurls = [\"{redis}\"]\nunlock_url = \"{redis}\"\n\
             patterns = [\"*\"]\npoll_interval = \"1s\"\n\
             [[backend]]\nname = \"coord\"\nkind = \"etcd\"\nendpoints = [\"{etcd}\"]\npoll_interval = \"1s\"\n\
             [[backend]]\nname = \"orders-db\"\nkind = \"postgres\"\nurl = \"{postgres}\"\nunlock_url = \"{postgres}\"\n\
             poll_interval = \"1s\"\nquery_text = \"full\"\n\
             [[backend.lease_table]]\ntable = \"public.distributed_locks\"\n\
             [[backend.advisory_name]]\nkey = 42\nname = {}\n\
             [[backend]]\nname = \"broken\"\nkind = \"redis\"\nurls = [\"redis://127.0.0.1:{broken}\"]\npoll_interval = \"1s\"\n\
             [notify]\nallowed_networks = [\"127.0.0.1/32\"]\n\
             [oidc]\nname = {}\nissuer = \"http://127.0.0.1:9\"\nclient_id = \"leasehold\"\nclient_secret = \"s\"\n\
             [[oidc.role]]\nvalue = {}\nrole = \"viewer\"\n",
            quoted(&format!("known {p}")),
            quoted(&format!("ID {p}")),
            quoted(&format!("group {p}"))
        )
    }
}

async fn fill_redis(redis: &Redis, p: &str) {
    let client = redis::Client::open(redis.url()).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let value = json!({"ownerId": format!("own-{p}"), "leaseId": format!("lease-{p}"), p: p}).to_string();
    let mut set = redis::cmd("SET");
    set.arg(format!("a-lock:{p}")).arg(value).arg("PX").arg(6_000_000);
    let () = set.query_async(&mut connection).await.unwrap();
}

async fn fill_etcd(etcd: &Etcd, p: &str) {
    let mut client = etcd_client::Client::connect([etcd.endpoint()], None)
        .await
        .unwrap();
    let lease = client.lease_grant(6_000, None).await.unwrap().id();
    let options = etcd_client::PutOptions::new().with_lease(lease);
    client
        .put(format!("/locks/b-{p}"), format!("own-{p}"), Some(options))
        .await
        .unwrap();
}

async fn named_session(postgres: &Postgres, name: &str) -> PgConnection {
    let mut session = PgConnection::connect(&postgres.superuser_url()).await.unwrap();
    sqlx::query("SELECT set_config('application_name', $1, false)")
        .bind(name)
        .execute(&mut session)
        .await
        .unwrap();
    session
}

async fn fill_postgres(session: &mut PgConnection, p: &str) {
    let table = "CREATE TABLE distributed_locks (resource text PRIMARY KEY, owner_id text, lease_id text,
        fencing_token bigint, expires_at timestamptz, created_at timestamptz, updated_at timestamptz)";
    sqlx::raw_sql(table).execute(&mut *session).await.unwrap();
    sqlx::query(
        "INSERT INTO distributed_locks VALUES ($1, $2, $3, 7, now() + interval '99 minutes', now(), now())",
    )
    .bind(format!("c-{p}"))
    .bind(format!("own-{p}"))
    .bind(format!("lease-{p}"))
    .execute(&mut *session)
    .await
    .unwrap();
    let lock = format!("SELECT pg_advisory_lock(42) /* {p} */");
    sqlx::raw_sql(AssertSqlSafe(lock)).execute(session).await.unwrap();
}

#[expect(
    clippy::disallowed_methods,
    reason = "a session of the test that waits until the server ends"
)]
fn wait_for_key(mut session: PgConnection, p: &str) -> JoinHandle<()> {
    let wait = format!("SELECT pg_advisory_lock(42) /* wait {p} */");
    tokio::spawn(async move {
        // The end of the test cuts it off.
        let _ended = sqlx::raw_sql(AssertSqlSafe(wait)).execute(&mut session).await;
    })
}
