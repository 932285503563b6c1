//! The peer: a lock table in Postgres with commonly published SQL, sent by each client over its own connection as
//! prepared statements. Without fencing tokens.

use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions as _, Connection as _};

use crate::error::BenchError;
use crate::load::{self, CLIENTS, LoadSpan, LockClient, Pace};
use testkit::Postgres;

const TABLE: &str = "CREATE TABLE distributed_locks (resource_id text PRIMARY KEY, owner_id text NOT NULL,
    acquired_at timestamptz NOT NULL, expires_at timestamptz NOT NULL)";
const TAKE: &str = "INSERT INTO distributed_locks AS l (resource_id, owner_id, acquired_at, expires_at)
    VALUES ($1, $2, now(), now() + interval '30 seconds')
    ON CONFLICT (resource_id) DO UPDATE SET owner_id = excluded.owner_id, acquired_at = excluded.acquired_at,
        expires_at = excluded.expires_at
    WHERE l.expires_at < now()";
const GIVE_BACK: &str = "DELETE FROM distributed_locks WHERE resource_id = $1 AND owner_id = $2";

struct Client {
    connection: PgConnection,
    number: usize,
}

impl LockClient for Client {
    async fn pair(&mut self, name: u64) -> Result<(), BenchError> {
        let resource = format!("bench:{}:{name}", self.number);
        let owner = format!("worker-{}", self.number);
        for statement in [TAKE, GIVE_BACK] {
            let query = sqlx::query(statement).bind(&resource).bind(&owner);
            let rows = query.execute(&mut self.connection).await?.rows_affected();
            if rows != 1 {
                return Err(BenchError::bad_answer("Postgres", format!("{rows} rows")));
            }
        }
        Ok(())
    }
}

pub(super) async fn measure(server: &Postgres, span: LoadSpan) -> Result<Pace, BenchError> {
    let options: PgConnectOptions = server.superuser_url().parse()?;
    let options = options.disable_statement_logging();
    let mut first = options.connect().await?;
    sqlx::raw_sql(TABLE).execute(&mut first).await?;
    durable(&mut first).await?;
    first.close().await?;
    let mut clients = Vec::new();
    for number in 0..CLIENTS {
        clients.push(Client {
            connection: options.connect().await?,
            number,
        });
    }
    load::run(clients, span).await
}

async fn durable(connection: &mut PgConnection) -> Result<(), BenchError> {
    let settings: String =
        sqlx::query_scalar("SELECT current_setting('fsync') || ' ' || current_setting('synchronous_commit')")
            .fetch_one(connection)
            .await?;
    if settings == "on on" {
        return Ok(());
    }
    Err(BenchError::bad_answer("Postgres", settings))
}
