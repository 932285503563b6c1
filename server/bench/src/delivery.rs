//! Delivery of notifications from the outbox on SQLite: delay of a message, messages per second, and the delay while
//! another receiver does not answer.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::routing::post;
use config::NotifyConfig;
use domain::notification::{Notice, NoticeAlert, NoticeStatus};
use leasehold::audit::{Audit, ChainCheckpoints};
use leasehold::identity::Principal;
use leasehold::notify::{NewReceiver, Notifier, ReceiverKind, enqueue, fingerprint, secret_keys};
use runtime::clock::Clock;
use runtime::db::Db;
use runtime::tasks;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::error::BenchError;
use crate::metric::Figure;
use crate::timer::{Stopwatch, micros, percentile};

/// Messages sent one by one, and at once.
const SINGLE: usize = 100;
const MANY: usize = 2_000;
/// A receiver without a message for longer than this has failed.
const TIMEOUT: Duration = Duration::from_secs(120);
const NAME: &str = "sink";

/// Ids of the messages that arrived; a repeated one counts once.
type Arrived = Arc<watch::Sender<HashSet<String>>>;

async fn receive(State(arrived): State<Arrived>, headers: HeaderMap) {
    if let Some(id) = headers.get("x-notification-id").and_then(|id| id.to_str().ok()) {
        arrived.send_modify(|ids| {
            ids.insert(id.to_owned());
        });
    }
}

struct Stage {
    db: Db,
    notifier: Arc<Notifier>,
    clock: Clock,
    arrived: Arrived,
    sent: usize,
}

/// # Errors
/// The temporary folder cannot be written, or messages do not arrive.
pub(crate) async fn measure() -> Result<Vec<Figure>, BenchError> {
    let folder = tempfile::tempdir().map_err(BenchError::io("temporary folder"))?;
    let store = format!("sqlite:{}", folder.path().join("leasehold.db").display());
    let (clock, stop) = (Clock::start(), CancellationToken::new());
    let db = Db::open(&store).await?;
    let network = "127.0.0.1/32".parse().map_err(|error| failed(&error))?;
    let config = NotifyConfig {
        allowed_networks: vec![network],
        ..NotifyConfig::default()
    };
    let audit = Audit::new(db.clone(), clock.clone(), ChainCheckpoints::new(None));
    let vault = secret_keys::open(&db, &store, &config)
        .await
        .map_err(|error| failed(&error))?;
    let home = "https://locks.example.com";
    let (notifier, delivering) = Notifier::start(audit, vault, &config, home, clock.clone(), stop.clone());
    let arrived = Arrived::default();
    let mut stage = Stage {
        db,
        notifier,
        clock,
        arrived: arrived.clone(),
        sent: 0,
    };
    let sink = serve(
        Router::new().fallback(post(receive)).with_state(arrived),
        stop.clone(),
    )
    .await?;
    stage.add(NAME, &sink).await?;
    let delays = stage.delays().await?;
    let (started, before) = (Stopwatch::start(), stage.sent);
    stage.send(MANY, &[NAME]).await?;
    let pace = (stage.sent - before) as f64 / started.elapsed().as_secs_f64();
    let silent = Router::new().fallback(post(std::future::pending::<()>));
    let silent = serve(silent, stop.clone()).await?;
    stage.add("silent", &silent).await?;
    stage.enqueue(SINGLE, &["silent"]).await?;
    let with_silent = stage.delays().await?;
    stop.cancel();
    delivering.ended().await;
    let ms = |micros: u32| f64::from(micros) / 1_000.0;
    let delay = |name: &str, delays: &[u32]| Figure::at_most(name, ms(percentile(delays, 99)), 1_000.0, "ms");
    Ok(vec![
        delay("p99 from the commit of a message to its receiver", &delays),
        delay("the same while another receiver does not answer", &with_silent),
        Figure::plain("messages per second to one webhook", pace, "/s"),
    ])
}

impl Stage {
    async fn add(&self, name: &str, url: &str) -> Result<(), BenchError> {
        let new = NewReceiver {
            name: name.to_owned(),
            kind: ReceiverKind::Webhook,
            urls: vec![url.into()],
            secret: Some("a secret of thirty-two characters".into()),
        };
        let principal = Principal::system("bench");
        self.notifier
            .add(&principal, new)
            .await
            .map_err(|error| failed(&error))
    }

    /// Adds messages of different groups to the outbox.
    async fn enqueue(&self, count: usize, receivers: &[&str]) -> Result<(), BenchError> {
        let mut tx = self.db.begin().await?;
        let now = self.clock.now().wall.timestamp_millis();
        for number in 0..count {
            let notice = notice(&format!("{receivers:?}:{}", self.sent + number), receivers, now);
            enqueue(&mut tx, &notice, now).await?;
        }
        tx.commit().await?;
        self.notifier.wake();
        Ok(())
    }

    /// Sends messages and waits until all have arrived.
    async fn send(&mut self, count: usize, receivers: &[&str]) -> Result<(), BenchError> {
        self.enqueue(count, receivers).await?;
        self.sent += count;
        let mut arrived = self.arrived.subscribe();
        let all = arrived.wait_for(|ids| ids.len() >= self.sent);
        match tokio::time::timeout(TIMEOUT, all).await {
            Ok(Ok(_)) => Ok(()),
            _ => Err(BenchError::bad_answer("the notifier", "messages did not arrive")),
        }
    }

    /// Delays of messages that are sent one after another, sorted, in microseconds.
    async fn delays(&mut self) -> Result<Vec<u32>, BenchError> {
        let mut delays = Vec::with_capacity(SINGLE);
        for _ in 0..SINGLE {
            let started = Stopwatch::start();
            self.send(1, &[NAME]).await?;
            delays.push(micros(started.elapsed()));
        }
        delays.sort_unstable();
        Ok(delays)
    }
}

/// Serves on a free port; returns its address.
async fn serve(router: Router, stop: CancellationToken) -> Result<String, BenchError> {
    let listener = TcpListener::bind("127.0.0.1:0")
        .await
        .map_err(BenchError::io("listener"))?;
    let address = listener.local_addr().map_err(BenchError::io("listener"))?;
    tasks::spawn("sink", stop, async move {
        // It does not end by itself.
        let _ended = axum::serve(listener, router).await;
    });
    Ok(format!("http://{address}/"))
}

/// One alert, in a group of its own.
fn notice(resource: &str, receivers: &[&str], now: i64) -> Notice {
    let labels = BTreeMap::from([
        ("alertname".to_owned(), "LongHeld".to_owned()),
        ("resource".to_owned(), resource.to_owned()),
    ]);
    Notice {
        group: format!("LongHeld:{resource}"),
        receivers: receivers.iter().map(|name| (*name).to_owned()).collect(),
        group_labels: labels.clone(),
        alerts: vec![NoticeAlert {
            status: NoticeStatus::Firing,
            annotations: BTreeMap::from([("summary".to_owned(), "Held for 41 m.".to_owned())]),
            starts_at: now,
            ends_at: None,
            path: "/locks/builtin/jobs".to_owned(),
            fingerprint: fingerprint(&labels),
            labels,
        }],
        truncated: 0,
    }
}

fn failed(error: &dyn std::fmt::Display) -> BenchError {
    BenchError::bad_answer("the notifier", error.to_string())
}
