//! The resource's half of fencing: each pattern of docs/fencing.md on a real resource, with the comparison and, as the
//! negative control, without it.

use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::put as put_route;
use leasehold::throwaway::{PostgresOptions, Throwaway};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, SqliteConnection};

use super::docs::{FENCING, blocks};
use super::world::aside;

#[derive(Default)]
pub(super) struct Document {
    pub(super) text: String,
    /// Of the last write that was accepted.
    fence: u64,
}

pub(super) async fn write(
    State(document): State<Arc<Mutex<Document>>>,
    headers: HeaderMap,
    text: String,
) -> StatusCode {
    let token = headers
        .get("x-fencing-token")
        .and_then(|it| it.to_str().ok()?.parse::<u64>().ok());
    let Some(token) = token else {
        return StatusCode::PRECONDITION_REQUIRED;
    };
    // Compared and written under one lock.
    let mut document = document.lock().unwrap_or_else(PoisonError::into_inner);
    if token < document.fence {
        return StatusCode::PRECONDITION_FAILED;
    }
    document.text = text;
    document.fence = token;
    StatusCode::NO_CONTENT
}

/// The negative control: whoever writes last wins.
pub(super) async fn write_unfenced(State(document): State<Arc<Mutex<Document>>>, text: String) -> StatusCode {
    document.lock().unwrap().text = text;
    StatusCode::NO_CONTENT
}

#[tokio::test]
async fn an_http_service_refuses_a_token_that_was_overtaken() {
    // 1, 1 again, 2, then the late 1: 412; without a token: 428. The text is the second holder's.
    let document = Arc::<Mutex<Document>>::default();
    let app = Router::new()
        .route("/fenced", put_route(write))
        .route("/open", put_route(write_unfenced))
        .with_state(document.clone());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let server = aside(async move { axum::serve(listener, app).await.unwrap() });
    let _ = rustls::crypto::ring::default_provider().install_default();
    let http = reqwest::Client::new();
    for (token, text, status) in [
        (Some("1"), "one", 204),
        (Some("1"), "one again", 204),
        (Some("2"), "two", 204),
        (Some("1"), "late", 412),
        (None, "nobody", 428),
        (Some("two"), "odd", 428),
    ] {
        let mut request = http.put(format!("{base}/fenced")).body(text);
        if let Some(token) = token {
            request = request.header("X-Fencing-Token", token);
        }
        assert_eq!(request.send().await.unwrap().status(), status, "{text}");
    }
    assert_eq!(document.lock().unwrap().text, "two");
    http.put(format!("{base}/open"))
        .body("late")
        .send()
        .await
        .unwrap();
    assert_eq!(
        document.lock().unwrap().text,
        "late",
        "without the comparison the late write wins"
    );
    server.abort();
}

/// The page's statements: table, write, fence table, fence.
fn statements() -> [&'static str; 4] {
    blocks(FENCING, "sql").try_into().unwrap()
}

/// The same scenario on a connection of either kind.
macro_rules! rows_are_fenced {
    ($connection:expr) => {{
        let connection = $connection;
        let [table, write, fence_table, fence] = statements();
        for statement in [
            table,
            fence_table,
            "INSERT INTO account (id, balance) VALUES ('a', 0)",
        ] {
            sqlx::raw_sql(AssertSqlSafe(statement))
                .execute(&mut *connection)
                .await
                .unwrap();
        }
        for (token, balance, rows) in [(1_i64, 10_i64, 1), (1, 11, 1), (2, 20, 1), (1, 12, 0), (2, 21, 1)] {
            let query = sqlx::query(AssertSqlSafe(write))
                .bind("a")
                .bind(balance)
                .bind(token);
            let done = query.execute(&mut *connection).await.unwrap();
            assert_eq!(done.rows_affected(), rows, "token {token}");
        }
        for (token, rows) in [(1_i64, 1), (1, 1), (2, 1), (1, 0), ((1 << 53) - 1, 1), (2, 0)] {
            let query = sqlx::query(AssertSqlSafe(fence)).bind("r").bind(token);
            let done = query.execute(&mut *connection).await.unwrap();
            assert_eq!(done.rows_affected(), rows, "token {token}");
        }
        let balance = "SELECT balance FROM account WHERE id = 'a'";
        let read: i64 = sqlx::query_scalar(balance)
            .fetch_one(&mut *connection)
            .await
            .unwrap();
        assert_eq!(read, 21, "what the late write would have changed");
        let unfenced = write.replace(" AND fence <= $3", "");
        assert_ne!(unfenced, write);
        let query = sqlx::query(AssertSqlSafe(unfenced))
            .bind("a")
            .bind(12_i64)
            .bind(1_i64);
        query.execute(&mut *connection).await.unwrap();
        let read: i64 = sqlx::query_scalar(balance)
            .fetch_one(&mut *connection)
            .await
            .unwrap();
        assert_eq!(read, 12, "without the comparison the late write wins");
    }};
}

#[tokio::test]
async fn rows_of_sqlite_refuse_a_token_that_was_overtaken() {
    // The page's own statements; the same holder writes twice.
    let mut connection = SqliteConnection::connect("sqlite::memory:").await.unwrap();
    rows_are_fenced!(&mut connection);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_of_postgres_refuse_a_token_that_was_overtaken_even_while_it_waits() {
    // As on SQLite; then the old holder's statement waits for the row of the new one's open transaction, and changes
    // nothing when that commits.
    let postgres = Throwaway::postgres(PostgresOptions {
        fast: true,
        ..Default::default()
    })
    .await
    .unwrap();
    let mut connection = PgConnection::connect(&postgres.superuser_url()).await.unwrap();
    rows_are_fenced!(&mut connection);
    let [_, write, _, fence] = statements();
    let mut late = PgConnection::connect(&postgres.superuser_url()).await.unwrap();
    let mut open = connection.begin().await.unwrap();
    let query = sqlx::query(AssertSqlSafe(write))
        .bind("a")
        .bind(30_i64)
        .bind(3_i64);
    assert_eq!(query.execute(&mut *open).await.unwrap().rows_affected(), 1);
    let query = sqlx::query(AssertSqlSafe(fence)).bind("s").bind(3_i64);
    assert_eq!(query.execute(&mut *open).await.unwrap().rows_affected(), 1);
    let waits = aside(async move {
        let query = sqlx::query(AssertSqlSafe(write))
            .bind("a")
            .bind(25_i64)
            .bind(2_i64);
        let wrote = query.execute(&mut late).await.unwrap().rows_affected();
        let query = sqlx::query(AssertSqlSafe(fence)).bind("s").bind(2_i64);
        (wrote, query.execute(&mut late).await.unwrap().rows_affected())
    });
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
    while sqlx::query_scalar::<_, i64>(waiting)
        .fetch_one(&mut *open)
        .await
        .unwrap()
        == 0
    {
        tokio::task::yield_now().await;
    }
    open.commit().await.unwrap();
    assert_eq!(waits.await.unwrap(), (0, 0));
}

#[derive(Debug)]
enum Refused {
    Stale,
    #[expect(dead_code, reason = "shown when a test fails")]
    Store(io::Error),
}

impl From<io::Error> for Refused {
    fn from(error: io::Error) -> Self {
        Self::Store(error)
    }
}

struct Object {
    /// From its metadata.
    fence: u64,
    etag: String,
}

trait ObjectStore {
    async fn head(&self, name: &str) -> io::Result<Option<Object>>;
    /// False when the object has another ETag, or is there at all with none expected.
    async fn put_if(&self, name: &str, etag: Option<&str>, token: u64, text: &str) -> io::Result<bool>;
}

async fn put(store: &impl ObjectStore, name: &str, token: u64, text: &str) -> Result<(), Refused> {
    loop {
        let seen = store.head(name).await?;
        if seen.as_ref().is_some_and(|object| object.fence > token) {
            return Err(Refused::Stale);
        }
        // None: only where there is no such object yet.
        let etag = seen.map(|object| object.etag);
        if store.put_if(name, etag.as_deref(), token, text).await? {
            return Ok(());
        }
    }
}

/// A file for each object: ETag, fence, text. Conditions hold under a lock of the whole folder.
struct Folder(PathBuf);

impl Folder {
    fn locked<T>(&self, work: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        let lock = std::fs::File::create(self.0.join(".lock"))?;
        lock.lock()?;
        work()
    }

    fn read(&self, name: &str) -> io::Result<Option<(Object, String)>> {
        let mut all = String::new();
        match std::fs::File::open(self.0.join(name)) {
            Ok(mut file) => file.read_to_string(&mut all)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut parts = all.splitn(3, '\n');
        let mut part = || parts.next().unwrap_or_default().to_owned();
        let (etag, fence) = (part(), part().parse().unwrap());
        Ok(Some((Object { fence, etag }, part())))
    }
}

impl ObjectStore for Folder {
    async fn head(&self, name: &str) -> io::Result<Option<Object>> {
        self.locked(|| Ok(self.read(name)?.map(|(object, _)| object)))
    }

    async fn put_if(&self, name: &str, etag: Option<&str>, token: u64, text: &str) -> io::Result<bool> {
        self.locked(|| {
            let now = self.read(name)?.map(|(object, _)| object.etag);
            if now.as_deref() != etag {
                return Ok(false);
            }
            let next = now.map_or(0, |etag| etag.parse::<u64>().unwrap() + 1);
            let mut file = std::fs::File::create(self.0.join(name))?;
            write!(file, "{next}\n{token}\n{text}")?;
            Ok(true)
        })
    }
}

/// Stops a writer between what it read and its write, for as long as another takes to write.
struct Paused<'a> {
    store: &'a Folder,
    meanwhile: Mutex<Option<(u64, &'static str)>>,
}

impl ObjectStore for Paused<'_> {
    async fn head(&self, name: &str) -> io::Result<Option<Object>> {
        self.store.head(name).await
    }

    async fn put_if(&self, name: &str, etag: Option<&str>, token: u64, text: &str) -> io::Result<bool> {
        let other = self.meanwhile.lock().unwrap().take();
        if let Some((token, text)) = other {
            put(self.store, name, token, text).await.unwrap();
        }
        self.store.put_if(name, etag, token, text).await
    }
}

#[tokio::test]
async fn an_object_store_refuses_a_writer_that_was_paused_between_reading_and_writing() {
    // Over an object, and where there was none; a pause over an older write only costs another round. Without the
    // condition the late write wins, although its token was compared.
    let folder = tempfile::tempdir().unwrap();
    let store = Folder(folder.path().to_owned());
    let text = |name: &str| store.read(name).unwrap().unwrap().1;
    let paused = |token, text| Paused {
        store: &store,
        meanwhile: Mutex::new(Some((token, text))),
    };
    put(&store, "a", 1, "one").await.unwrap();
    put(&store, "a", 1, "one again").await.unwrap();
    for name in ["a", "fresh"] {
        let late = put(&paused(2, "two"), name, 1, "late").await.unwrap_err();
        assert!(matches!(late, Refused::Stale), "{late:?}");
        assert_eq!(text(name), "two");
    }
    put(&paused(2, "two more"), "a", 3, "three").await.unwrap();
    assert_eq!(text("a"), "three");
    let seen = store.head("b").await.unwrap();
    assert!(
        seen.is_none_or(|object| object.fence <= 1),
        "compared, and then paused"
    );
    put(&store, "b", 2, "two").await.unwrap();
    let etag = store.head("b").await.unwrap().unwrap().etag;
    assert!(store.put_if("b", Some(&etag), 1, "late").await.unwrap());
    assert_eq!(
        text("b"),
        "late",
        "a write that is not bound to what was compared"
    );
}
