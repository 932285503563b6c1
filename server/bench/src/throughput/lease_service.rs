//! Our service over HTTP with keep-alive connections.

use std::fmt::Write as _;
use std::ops::Range;

use crate::error::BenchError;
use crate::http::{Http, member};
use crate::load::{self, CLIENTS, LoadSpan, LockClient, NAMES, Pace};
use crate::test_server::Served;
use runtime::clock::Clock;

/// How the clients call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Calls {
    /// With an idempotency key for each acquire, as our own client sends it.
    Keyed,
    Keyless,
}

struct Ours {
    http: Http,
    /// One per name.
    acquires: Vec<String>,
    path: String,
    calls: Calls,
    key: Key,
}

/// Keys that begin with the time, as those of our own client.
struct Key {
    text: String,
    clock: Clock,
    client: usize,
    sent: u64,
}

impl Key {
    fn next(&mut self) -> &str {
        self.sent += 1;
        self.text.clear();
        let _ = write!(
            self.text,
            "{:012x}{:012x}{:08x}",
            self.clock.now().wall.timestamp_millis(),
            self.sent,
            self.client
        );
        &self.text
    }
}

impl LockClient for Ours {
    async fn pair(&mut self, name: u64) -> Result<(), BenchError> {
        let acquire = &self.acquires[usize::try_from(name).unwrap_or_default()];
        let answer = match self.calls {
            Calls::Keyed => self.http.send_with_key(acquire, self.key.next()).await?,
            Calls::Keyless => self.http.send(acquire).await?,
        };
        let id = member(answer, "leaseId").ok_or_else(|| BenchError::bad_answer("our server", answer))?;
        self.path.clear();
        self.path.extend(["/v1/locks/", id]);
        let answer = self.http.delete(&self.path).await?;
        if answer.contains(r#""released":true"#) {
            return Ok(());
        }
        Err(BenchError::bad_answer("our server", answer))
    }
}

pub(super) async fn measure(served: Served, calls: Calls, span: LoadSpan) -> Result<Pace, BenchError> {
    let pace = load::run(clients(&served, 0..CLIENTS, calls).await?, span).await;
    served.end().await;
    pace
}

/// Keyed pairs on a server that keeps running.
pub(crate) async fn run_keyed(served: &Served, span: LoadSpan) -> Result<Pace, BenchError> {
    load::run(clients(served, 0..CLIENTS, Calls::Keyed).await?, span).await
}

/// Keyed pairs on several servers, with `each` clients per server.
pub(crate) async fn run_keyed_on(
    servers: &[Served],
    each: usize,
    span: LoadSpan,
) -> Result<Pace, BenchError> {
    let mut all = Vec::new();
    for (place, served) in servers.iter().enumerate() {
        all.extend(clients(served, place * each..(place + 1) * each, Calls::Keyed).await?);
    }
    load::run(all, span).await
}

async fn clients(served: &Served, numbers: Range<usize>, calls: Calls) -> Result<Vec<Ours>, BenchError> {
    let clock = Clock::start();
    let mut clients = Vec::new();
    for number in numbers {
        let http = served.connect().await?;
        let acquire = |name| {
            let body = format!(
                r#"{{"resource":"bench:{number}:{name}","ownerId":"worker-{number}","ttlSeconds":30}}"#
            );
            http.written("/v1/locks/acquire", &body)
        };
        clients.push(Ours {
            acquires: (0..NAMES).map(acquire).collect(),
            http,
            path: String::new(),
            calls,
            key: Key {
                text: String::new(),
                clock: clock.clone(),
                client: number,
                sent: 0,
            },
        });
    }
    Ok(clients)
}

/// Locks of one batch call, and clients that send them.
const BATCH_LOCKS: u32 = 64;
const BATCH_CLIENTS: usize = 8;

/// A client that acquires and releases all of its locks with one call each.
struct Batches {
    http: Http,
    acquire: String,
    release: String,
}

impl LockClient for Batches {
    const PAIRS: u32 = BATCH_LOCKS;

    async fn pair(&mut self, _name: u64) -> Result<(), BenchError> {
        let answer = self.http.send(&self.acquire).await?;
        self.release.clear();
        self.release.push_str(r#"{"operations":["#);
        let ids = answer.split("\"leaseId\":\"").skip(1);
        for (place, rest) in ids.enumerate() {
            let id = rest.split('"').next().unwrap_or_default();
            let comma = if place == 0 { "" } else { "," };
            let _ = write!(self.release, r#"{comma}{{"release":{{"leaseId":"{id}"}}}}"#);
        }
        self.release.push_str("]}");
        let answer = self.http.post("/v1/locks/batch", &self.release).await?;
        let released = answer.matches(r#""released":true"#).count();
        if u32::try_from(released) == Ok(BATCH_LOCKS) {
            return Ok(());
        }
        Err(BenchError::bad_answer("our server", answer))
    }
}

/// Pairs in batch calls.
pub(super) async fn measure_batches(served: Served, span: LoadSpan) -> Result<Pace, BenchError> {
    let mut clients = Vec::new();
    for number in 0..BATCH_CLIENTS {
        let http = served.connect().await?;
        let acquire = |name| {
            format!(
                r#"{{"acquire":{{"resource":"bench:{number}:{name}","ownerId":"worker-{number}","ttlSeconds":30}}}}"#
            )
        };
        let operations: Vec<_> = (0..BATCH_LOCKS).map(acquire).collect();
        let body = format!(r#"{{"operations":[{}]}}"#, operations.join(","));
        clients.push(Batches {
            acquire: http.written("/v1/locks/batch", &body),
            http,
            release: String::new(),
        });
    }
    let pace = load::run(clients, span).await;
    served.end().await;
    pace
}
