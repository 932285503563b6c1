//! Two servers on one Postgres: each message is claimed by one of them, and a killed one loses no message.

use std::collections::BTreeMap;
use std::process::Stdio;
use std::time::Duration;

use ::testkit::free_port;
use leasehold::audit::{Audit, ChainCheckpoints};
use leasehold::identity::Principal;
use leasehold::notify::{NewReceiver, Notifier, ReceiverKind, SecretBox};
use runtime::clock::Clock;
use runtime::db::Db;
use tokio::process::{Child, Command};
use tokio_util::sync::CancellationToken;

use super::notifier::{SECRET, Store, config, enqueue_notice, firing};
use crate::support::webhook_sink::{Reply, WebhookSink};
use testkit::{eventually, within};

const MINUTE: Duration = Duration::from_secs(60);

/// A process of its own.
async fn serve(store: &Store) -> Child {
    let port = free_port().unwrap();
    let folder = store.folder();
    let log = std::fs::File::create(folder.join(format!("log-{port}"))).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_leasehold"))
        .env_clear()
        .env("LEASEHOLD_STORE", &store.url)
        .env("LEASEHOLD_LISTEN", format!("127.0.0.1:{port}"))
        .env("LEASEHOLD_NOTIFY__ALLOWED_NETWORKS", "127.0.0.1/32")
        .current_dir(folder)
        .arg("serve")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    eventually("the server is ready", async || {
        let log = || std::fs::read_to_string(folder.join(format!("log-{port}"))).unwrap();
        assert!(child.try_wait().unwrap().is_none(), "{}", log());
        let answer = reqwest::get(format!("http://127.0.0.1:{port}/readyz")).await;
        answer.is_ok_and(|answer| answer.status().is_success())
    })
    .await;
    child
}

/// How often each message was received, by its id.
fn counted(sink: &WebhookSink) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for received in sink.received() {
        *counts
            .entry(received.header("x-notification-id").to_owned())
            .or_default() += 1;
    }
    counts
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_servers_send_each_message_once_despite_a_kill() {
    // Two hundred messages: each once. Then one server is killed during a send: everything still arrives, and only the
    // messages of that send may arrive twice.
    let store = Store::postgres().await;
    let _installed = rustls::crypto::ring::default_provider().install_default();
    let sink = WebhookSink::open().await;
    let db = Db::open(&store.url).await.unwrap();
    add(&db, &sink.url).await;
    let mut one = serve(&store).await;
    let _two = serve(&store).await;
    for n in 0..200 {
        enqueue_notice(&db, &firing(&format!("first-{n}"))).await;
    }
    sink.wait_for(200).await;
    let counts = counted(&sink);
    assert_eq!((counts.len(), sink.received().len()), (200, 200));
    // The server that claimed these four cannot finish them; the other one sends the rest.
    sink.answers([Reply::Silence, Reply::Silence, Reply::Silence, Reply::Silence]);
    for n in 0..100 {
        enqueue_notice(&db, &firing(&format!("second-{n}"))).await;
    }
    sink.wait_for(203).await;
    one.kill().await.unwrap();
    // The claims of the killed server end by the clock, and each silence until its time limit.
    within(MINUTE, "everything arrives", async || counted(&sink).len() == 300).await;
    let left = "SELECT count(*) FROM deliveries WHERE state <> 'delivered'";
    within(MINUTE, "everything is marked", async || {
        let Db::Postgres(pool) = &db else { unreachable!() };
        let left: i64 = sqlx::query_scalar(left).fetch_one(pool).await.unwrap();
        left == 0
    })
    .await;
    let twice = counted(&sink).values().filter(|count| **count > 1).count();
    assert!(twice <= 12, "{twice} came more than once");
}

async fn add(db: &Db, url: &str) {
    let audit = Audit::new(db.clone(), Clock::start(), ChainCheckpoints::default());
    // Only adds it: it has stopped before there is a message to send.
    let stop = CancellationToken::new();
    let (notifier, delivering) = Notifier::start(
        audit,
        SecretBox::default(),
        &config(),
        "http://h",
        Clock::start(),
        stop.clone(),
    );
    let new = NewReceiver {
        name: "hook".to_owned(),
        kind: ReceiverKind::Webhook,
        urls: vec![url.into()],
        secret: Some(SECRET.into()),
    };
    notifier.add(&Principal::system("test"), new).await.unwrap();
    stop.cancel();
    delivering.ended().await;
}
