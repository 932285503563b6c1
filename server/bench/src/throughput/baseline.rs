//! The baseline: a minimal durable lock service over HTTP. axum, a queue, and one writer of a SQLite file with the
//! same sync settings as ours, with a token per resource. It has no history of leases, no notifications, no
//! authentication, no console: the difference to our service, on the same machine at the same time, is their cost.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use rusqlite::{Connection, OptionalExtension as _, Row};
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::error::BenchError;
use crate::http::Http;
use crate::load::{self, CLIENTS, LoadSpan, LockClient, NAMES, Pace};
use runtime::clock::Clock;
use runtime::tasks;
use testkit::ThrowawayFolder;

const SETUP: &str = "PRAGMA page_size = 8192; PRAGMA journal_mode = wal; PRAGMA synchronous = full;
    CREATE TABLE locks (resource TEXT PRIMARY KEY, token INTEGER NOT NULL, owner TEXT, expires_at INTEGER NOT NULL)
    WITHOUT ROWID";
const TAKE: &str = "INSERT INTO locks VALUES (?1, 1, ?2, ?3) ON CONFLICT (resource) DO UPDATE
    SET token = token + 1, owner = excluded.owner, expires_at = excluded.expires_at
    WHERE locks.owner IS NULL OR locks.expires_at < ?4 RETURNING token";
const GIVE_BACK: &str = "UPDATE locks SET owner = NULL WHERE resource = ?1 AND owner = ?2 RETURNING token";
/// Response to a caller that does not own the lock.
const NOT_DONE: &str = r#"{"token":null}"#;
const HELD_MS: i64 = 30_000;
const QUEUE_MAX: usize = 1_024;
const BATCH_MAX: usize = 512;

#[derive(Deserialize, Serialize)]
struct Lock {
    resource: String,
    owner: String,
}

/// The lock's token; `None` if another owner has it.
#[derive(Deserialize, Serialize)]
struct Done {
    token: Option<i64>,
}

enum What {
    Take,
    GiveBack,
}

struct Job {
    what: What,
    lock: Lock,
    reply: oneshot::Sender<Option<i64>>,
}

type Queue = mpsc::Sender<Job>;

async fn submit(queue: Queue, what: What, lock: Lock) -> Result<Json<Done>, StatusCode> {
    let (reply, answer) = oneshot::channel();
    let failed = StatusCode::SERVICE_UNAVAILABLE;
    queue.try_send(Job { what, lock, reply }).map_err(|_| failed)?;
    let token = answer.await.map_err(|_| failed)?;
    Ok(Json(Done { token }))
}

async fn take(State(queue): State<Queue>, Json(lock): Json<Lock>) -> Result<Json<Done>, StatusCode> {
    submit(queue, What::Take, lock).await
}

async fn release(State(queue): State<Queue>, Json(lock): Json<Lock>) -> Result<Json<Done>, StatusCode> {
    submit(queue, What::GiveBack, lock).await
}

/// Runs until all senders are gone. After an error no request is answered, and the clients fail.
async fn write(connection: Connection, clock: Clock, mut queue: mpsc::Receiver<Job>) {
    let mut jobs = Vec::new();
    while queue.recv_many(&mut jobs, BATCH_MAX).await > 0 {
        if let Err(error) = commit(&connection, &clock, &mut jobs) {
            tracing::error!(%error, "the yardstick could not write");
            return;
        }
    }
}

fn commit(connection: &Connection, clock: &Clock, jobs: &mut Vec<Job>) -> rusqlite::Result<()> {
    let now = clock.now().wall.timestamp_millis();
    let mut replies = Vec::with_capacity(jobs.len());
    connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
    for Job { what, lock, reply } in jobs.drain(..) {
        let Lock { resource, owner } = &lock;
        let token = |row: &Row<'_>| row.get(0);
        let answer = match what {
            What::Take => connection
                .prepare_cached(TAKE)?
                .query_row((resource, owner, now + HELD_MS, now), token),
            What::GiveBack => connection
                .prepare_cached(GIVE_BACK)?
                .query_row((resource, owner), token),
        };
        replies.push((reply, answer.optional()?));
    }
    connection.prepare_cached("COMMIT")?.execute([])?;
    for (reply, token) in replies {
        // A disconnected client fails by itself.
        let _ = reply.send(token);
    }
    Ok(())
}

struct Client {
    http: Http,
    /// Acquire and release requests, one pair per name.
    requests: Vec<[String; 2]>,
}

impl LockClient for Client {
    async fn pair(&mut self, name: u64) -> Result<(), BenchError> {
        for request in &self.requests[usize::try_from(name).unwrap_or_default()] {
            let answer = self.http.send(request).await?;
            if answer == NOT_DONE {
                return Err(BenchError::bad_answer("the yardstick", answer));
            }
        }
        Ok(())
    }
}

pub(super) async fn measure(span: LoadSpan) -> Result<Pace, BenchError> {
    let folder = ThrowawayFolder::create("bench").map_err(BenchError::io("folder"))?;
    let stop = CancellationToken::new();
    let address = serve(folder.path(), stop.clone()).await?;
    let mut clients = Vec::new();
    for number in 0..CLIENTS {
        let http = Http::connect(address, "nobody").await?;
        let request = |path, name| {
            let body = format!(r#"{{"resource":"bench:{number}:{name}","owner":"worker-{number}"}}"#);
            http.written(path, &body)
        };
        let both = |name| ["/take", "/give-back"].map(|path| request(path, name));
        clients.push(Client {
            requests: (0..NAMES).map(both).collect(),
            http,
        });
    }
    let pace = load::run(clients, span).await;
    stop.cancel();
    pace
}

async fn serve(folder: &Path, stop: CancellationToken) -> Result<SocketAddr, BenchError> {
    let connection = Connection::open(folder.join("locks.db"))?;
    connection.execute_batch(SETUP)?;
    let (queue, jobs) = mpsc::channel(QUEUE_MAX);
    tasks::vital_thread("yardstick writer", write(connection, Clock::start(), jobs), drop);
    let router = Router::new()
        .route("/take", post(take))
        .route("/give-back", post(release))
        .with_state(queue);
    let io = BenchError::io("yardstick");
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(&io)?;
    let address = listener.local_addr().map_err(&io)?;
    tasks::spawn("yardstick", stop, async move {
        // Serves until stopped; the clients see failures.
        let _ = axum::serve(listener, router).await;
    });
    Ok(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn baseline_lock_is_exclusive_and_released_by_its_owner() {
        let folder = ThrowawayFolder::create("bench").unwrap();
        let stop = CancellationToken::new();
        let address = serve(folder.path(), stop.clone()).await.unwrap();
        let mut http = Http::connect(address, "nobody").await.unwrap();
        let mut received = Vec::new();
        for (path, owner) in [
            ("/take", "a"),
            ("/take", "b"),
            ("/give-back", "b"),
            ("/give-back", "a"),
            ("/take", "b"),
        ] {
            let body = format!(r#"{{"resource":"r","owner":"{owner}"}}"#);
            let answer: Done = serde_json::from_str(http.post(path, &body).await.unwrap()).unwrap();
            received.push(answer.token);
        }
        assert_eq!(received, [Some(1), None, None, Some(1), Some(2)]);
        stop.cancel();
    }
}
