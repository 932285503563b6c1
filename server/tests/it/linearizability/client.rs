//! A client, as a process of its own: it can be stopped and killed like a real one. It is this very test binary, run
//! again with one ignored test. Each call goes to standard output in two lines, one before it is sent and one after its
//! answer, so that a killed client's last call is known to have begun.
//!
//! It is naive on purpose: before a write it does not check its own clock whether it still holds the lock.

use crate::support::bearer;
use std::io::Read as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::time::sleep;

use super::history::{HeldLease, Micros, OperationKind, RecordedAnswer, now};
use super::register::{Question, Reply};
use crate::support::rng::Dice;

pub(super) const ORDER: &str = "LEASEHOLD_TEST_CLIENT";
pub(super) const MARK: &str = "H ";
const TTL_SECONDS: i64 = 2;
const RESOURCES: usize = 20;
/// Less than a fault lasts, more than the report of an outage takes.
const PATIENCE: Duration = Duration::from_millis(2_500);
const RENEW_EVERY: Duration = Duration::from_millis(600);

/// The client's settings.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct ClientCommand {
    pub(super) client: u32,
    pub(super) seed: u64,
    pub(super) lanes: u32,
    pub(super) server: String,
    pub(super) token: String,
    pub(super) register: String,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) enum ClientOutput {
    Begin {
        id: u64,
        at: Micros,
        what: OperationKind,
    },
    End {
        id: u64,
        at: Micros,
        answer: RecordedAnswer,
    },
}

/// Not a test of its own.
#[tokio::test]
#[ignore = "a client of the histories, started by them"]
async fn client() {
    let Some(order) = std::env::var_os(ORDER) else {
        return;
    };
    let order: ClientCommand = serde_json::from_str(order.to_str().unwrap()).unwrap();
    let _ = rustls::crypto::ring::default_provider().install_default();
    let over = Arc::new(AtomicBool::new(false));
    let is_over = over.clone();
    // Standard input ends when the test has had enough, or has died.
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        is_over.store(true, Ordering::Relaxed);
    });
    let calls = Arc::new(AtomicU64::new(0));
    let lanes = (0..order.lanes).map(|lane| {
        let (order, over, calls) = (order.clone(), over.clone(), calls.clone());
        async move {
            let mut lane = Lane::new(order, lane, calls).await;
            while !over.load(Ordering::Relaxed) {
                lane.once().await;
            }
        }
    });
    futures::future::join_all(lanes).await;
    // Without waiting for the reader of standard input.
    std::process::exit(0);
}

struct Lane {
    order: ClientCommand,
    name: String,
    dice: Dice,
    calls: Arc<AtomicU64>,
    http: reqwest::Client,
    register: BufReader<TcpStream>,
}

impl Lane {
    async fn new(order: ClientCommand, lane: u32, calls: Arc<AtomicU64>) -> Self {
        let http = reqwest::Client::builder()
            .no_proxy()
            .default_headers(bearer(&order.token))
            .connect_timeout(Duration::from_secs(1))
            .timeout(PATIENCE)
            .build()
            .unwrap();
        let register = TcpStream::connect(&order.register).await.unwrap();
        register.set_nodelay(true).unwrap();
        Self {
            name: format!("c{}-{lane}", order.client),
            dice: Dice::new(order.seed ^ u64::from(order.client * 100 + lane)),
            order,
            calls,
            http,
            register: BufReader::new(register),
        }
    }

    fn begin(&self, what: OperationKind) -> u64 {
        let id = self.calls.fetch_add(1, Ordering::Relaxed);
        print_output(&ClientOutput::Begin { id, at: now(), what });
        id
    }

    fn end(id: u64, answer: RecordedAnswer) -> RecordedAnswer {
        let at = now();
        print_output(&ClientOutput::End {
            id,
            at,
            answer: answer.clone(),
        });
        answer
    }

    /// One attempt at one lock, and the work under it.
    async fn once(&mut self) {
        let resource = format!("proof:{:02}", self.dice.below(RESOURCES));
        let Some(held) = self.acquire(resource).await else {
            sleep(Duration::from_millis(5)).await;
            return;
        };
        let section_ms = match self.dice.below(100) {
            0..=69 => 0,
            70..=95 => self.dice.below(150),
            // Renewed for longer than its TTL; the longest come near the cap.
            _ => self.dice.below(2_000),
        };
        let renews = self.dice.percent(50);
        let mut bases = [None, None];
        for (fenced, base) in [true, false].into_iter().zip(&mut bases) {
            let reply = self.compare_and_write(&held, fenced, None).await;
            *base = reply.accepted.then_some(reply.version);
        }
        self.work(&held, Duration::from_millis(section_ms as u64), renews)
            .await;
        for (fenced, base) in [true, false].into_iter().zip(bases) {
            let refused = match base {
                Some(_) => !self.compare_and_write(&held, fenced, base).await.accepted,
                None => true,
            };
            if refused {
                self.report(&held).await;
            }
        }
        // A few do not release the lease, so that it expires; some of these read it until it has ended.
        match self.dice.below(200) {
            0 => self.read_until_ended(&held).await,
            1..=3 => {}
            _ => self.release(held).await,
        }
    }

    async fn work(&mut self, held: &HeldLease, mut left: Duration, renews: bool) {
        while left > RENEW_EVERY {
            sleep(RENEW_EVERY).await;
            left -= RENEW_EVERY;
            if renews {
                self.renew(held).await;
            }
        }
        sleep(left).await;
    }

    async fn acquire(&mut self, resource: String) -> Option<HeldLease> {
        let number = self.calls.load(Ordering::Relaxed);
        let owner = format!("{}-{number}", self.name);
        let wait = i64::from(self.dice.percent(10));
        let keyed = wait == 0 && self.dice.percent(30);
        let id = self.begin(OperationKind::Acquire {
            resource: resource.clone(),
            owner: owner.clone(),
            ttl_ms: TTL_SECONDS * 1_000,
        });
        let body =
            json!({"resource": resource, "ownerId": owner, "ttlSeconds": TTL_SECONDS, "waitSeconds": wait});
        let url = format!("{}/v1/locks/acquire", self.order.server);
        let mut request = self.http.post(url).json(&body);
        if keyed {
            request = request.header("idempotency-key", &owner);
        }
        // With an idempotency key, a request with a lost answer is repeated: one call, however often it is sent.
        let mut answer = send(request.try_clone().unwrap()).await;
        for _ in 0..2 {
            if keyed && (answer.0 == 0 || answer.0 == 503) {
                answer = send(request.try_clone().unwrap()).await;
            }
        }
        match Self::end(id, acquired(answer)) {
            RecordedAnswer::Granted { lease, token } => Some(HeldLease {
                resource,
                lease,
                token,
            }),
            _ => None,
        }
    }

    async fn renew(&self, held: &HeldLease) {
        let id = self.begin(OperationKind::Renew(held.clone()));
        let url = format!("{}/v1/locks/{}/renew", self.order.server, held.lease);
        let answer = match send(self.http.post(url)).await {
            (0 | 503, _) => RecordedAnswer::Unknown,
            (200, body) if body["fencingToken"] == held.token => RecordedAnswer::Renewed,
            (410, _) => RecordedAnswer::Lost,
            (409, body) if body["code"] == "lifetime_reached" => RecordedAnswer::AtCap,
            (status, body) => RecordedAnswer::Unexpected(format!("{status} {body}")),
        };
        Self::end(id, answer);
    }

    /// With short pauses: the answer that reports the end comes soon after it.
    async fn read_until_ended(&self, held: &HeldLease) {
        loop {
            let id = self.begin(OperationKind::Read(held.clone()));
            let url = format!("{}/v1/locks/{}", self.order.server, held.lease);
            let answer = match send(self.http.get(url)).await {
                (0 | 503, _) => RecordedAnswer::Unknown,
                (200, body) if body["fencingToken"] == held.token => match body["state"].as_str() {
                    Some("held") => RecordedAnswer::Alive,
                    Some("expired" | "released" | "revoked") => RecordedAnswer::Lost,
                    _ => RecordedAnswer::Unexpected(body.to_string()),
                },
                (status, body) => RecordedAnswer::Unexpected(format!("{status} {body}")),
            };
            if Self::end(id, answer) != RecordedAnswer::Alive {
                return;
            }
            sleep(Duration::from_millis(5)).await;
        }
    }

    async fn release(&self, held: HeldLease) {
        let url = format!("{}/v1/locks/{}", self.order.server, held.lease);
        let id = self.begin(OperationKind::Release(held));
        let answer = match send(self.http.delete(url)).await {
            (0 | 503, _) => RecordedAnswer::Unknown,
            (200, body) if body["released"] == true => RecordedAnswer::Released,
            (200, _) => RecordedAnswer::Lost,
            (status, body) => RecordedAnswer::Unexpected(format!("{status} {body}")),
        };
        Self::end(id, answer);
    }

    /// The register has rejected the write: it is reported to the service once.
    async fn report(&self, held: &HeldLease) {
        let source = format!("{}-{}", self.name, self.calls.load(Ordering::Relaxed));
        let id = self.begin(OperationKind::Report {
            source: source.clone(),
        });
        let body = json!({"resource": held.resource, "fencingToken": held.token, "source": source});
        let url = format!("{}/v1/fencing/rejections", self.order.server);
        let answer = match send(self.http.post(url).json(&body)).await {
            (0 | 503, _) => RecordedAnswer::Unknown,
            (202, _) => RecordedAnswer::Reported,
            (status, body) => RecordedAnswer::Unexpected(format!("{status} {body}")),
        };
        Self::end(id, answer);
    }

    async fn compare_and_write(&mut self, held: &HeldLease, fenced: bool, base: Option<u64>) -> Reply {
        let question = Question {
            client: self.order.client,
            resource: held.resource.clone(),
            token: held.token,
            fenced,
            base,
        };
        let text = format!("{}\n", serde_json::to_string(&question).unwrap());
        self.register.get_mut().write_all(text.as_bytes()).await.unwrap();
        let mut line = String::new();
        self.register.read_line(&mut line).await.unwrap();
        serde_json::from_str(&line).unwrap()
    }
}

/// Status and body; status 0 when there was no answer.
pub(super) async fn send(request: reqwest::RequestBuilder) -> (u16, Value) {
    let answer = async {
        let response = request.send().await?;
        let status = response.status().as_u16();
        Ok::<_, reqwest::Error>((status, response.json().await.unwrap_or(Value::Null)))
    };
    match answer.await {
        // Cut off in the middle of the answer.
        Ok((200, Value::Null)) | Err(_) => (0, Value::Null),
        Ok(answer) => answer,
    }
}

/// Parses the answer to an acquire.
pub(super) fn acquired((status, body): (u16, Value)) -> RecordedAnswer {
    let token = |value: &Value| value["fencingToken"].as_u64();
    match status {
        0 | 503 => RecordedAnswer::Unknown,
        // The lease of the first attempt has ended already: granted, and the client did not know.
        410 => RecordedAnswer::Unknown,
        200 if body["acquired"] == true => match (token(&body), body["leaseId"].as_str()) {
            (Some(token), Some(lease)) => RecordedAnswer::Granted {
                lease: lease.to_owned(),
                token,
            },
            _ => RecordedAnswer::Unexpected(body.to_string()),
        },
        200 => refused(&body),
        _ => RecordedAnswer::Unexpected(format!("{status} {body}")),
    }
}

/// No lock of a history has a lock delay, so a refusal without a holder is because of waiters. There are no waiters
/// only where this very acquire has waited, and left in the moment in which it could have had the lock. A holder has no time
/// left only within the store's margin.
fn refused(body: &Value) -> RecordedAnswer {
    let holder = &body["heldBy"];
    let named = holder["fencingToken"].as_u64().zip(holder["ownerId"].as_str());
    let is_held = holder["remainingMs"].as_u64().is_some() && body["retryAfterMs"].as_u64() > Some(0);
    match (named, body["waiters"].as_u64()) {
        (Some((token, owner)), Some(_)) if is_held => RecordedAnswer::Refused {
            token,
            owner: owner.to_owned(),
        },
        (None, Some(waiters)) if holder.is_null() => RecordedAnswer::RefusedForWaiters(waiters),
        _ => RecordedAnswer::Unexpected(body.to_string()),
    }
}

fn print_output(line: &ClientOutput) {
    println!("{MARK}{}", serde_json::to_string(line).unwrap());
}
