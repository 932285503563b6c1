//! Receivers: reached without a notification, refused by the SSRF guard, down, and with an untrusted certificate.

use crate::support::TestServer;
use ::config::NotifyConfig;
use ::testkit::free_port;
use leasehold::audit::{Audit, ChainCheckpoints};
use leasehold::identity::Principal;
use leasehold::notify::{NewReceiver, Notifier, ReceiverKind, secret_keys};
use runtime::clock::Clock;
use runtime::db::Db;
use tokio_util::sync::CancellationToken;

use super::command::{ConfigFolder, DoctorReport, report};
use crate::support::webhook_sink::WebhookSink;
use testkit::Certs;

const HERE: &str = "[notify]\nallowed_networks = [\"127.0.0.1/32\", \"::1/128\"]\n";
const SECRET: &str = "a secret of thirty-two characters";

/// Adds a receiver as an admin does on the page.
async fn add(config_folder: &ConfigFolder, name: &str, url: &str) {
    let _installed = rustls::crypto::ring::default_provider().install_default();
    let store = format!("sqlite:{}", config_folder.path().join("leasehold.db").display());
    let db = Db::open(&store).await.unwrap();
    let audit = Audit::new(db.clone(), Clock::start(), ChainCheckpoints::default());
    let stop = CancellationToken::new();
    let config = NotifyConfig {
        allowed_networks: vec!["127.0.0.1/32".parse().unwrap(), "::1/128".parse().unwrap()],
        ..NotifyConfig::default()
    };
    let vault = secret_keys::open(&db, &store, &config).await.unwrap();
    let (notifier, delivering) =
        Notifier::start(audit, vault, &config, "http://x", Clock::start(), stop.clone());
    let new = NewReceiver {
        name: name.to_owned(),
        kind: ReceiverKind::Webhook,
        urls: vec![url.into()],
        secret: Some(SECRET.into()),
    };
    notifier.add(&Principal::system("test"), new).await.unwrap();
    stop.cancel();
    delivering.ended().await;
    db.close().await;
}

fn write(config: &ConfigFolder, toml: &str) {
    let text = format!("listen = \"127.0.0.1:0\"\n{toml}");
    std::fs::write(config.path().join("leasehold.toml"), text).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unreachable_receiver_is_named_and_no_notification_is_sent() {
    // The check sends no alert, path or secret, and passes through the SSRF guard; each fault has a remedy. One
    // receiver answers, one is down; then this machine is no longer declared.
    let config = ConfigFolder::new(HERE);
    let sink = WebhookSink::open().await;
    add(&config, "ops", &format!("{}/hook/s3cret?token=t0ken", sink.url)).await;
    let sound = config.doctor().await;
    assert_eq!(sound.code, 0, "{sound:#?}");
    let ok = sound.level("ok").join("\n");
    assert!(ok.contains("receiver ops: ") && ok.contains("answers"), "{ok}");
    let received = sink.received();
    assert_eq!(received.len(), 1, "{received:?}");
    assert_eq!((received[0].path.as_str(), received[0].body.as_str()), ("/", ""));
    assert!(!format!("{:?} {sound:?}", received[0]).contains("t0ken"));

    write(&config, "");
    config.doctor().await.has_one_fault(&[
        "receiver ops: ",
        "127.0.0.1 is this machine (loopback)",
        "[notify] allowed_networks = [\"127.0.0.1/32\"]",
    ]);
    assert_eq!(sink.received().len(), 1, "the guard was passed");

    write(&config, HERE);
    let port = free_port().unwrap();
    add(&config, "gone", &format!("http://127.0.0.1:{port}/x")).await;
    let gone = config.doctor().await;
    gone.has_one_fault(&[
        "receiver gone: ",
        "cannot be reached",
        &format!("→ curl -I http://127.0.0.1:{port}"),
    ]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_receiver_with_an_untrusted_certificate_is_named() {
    // By HTTPS: unknown here, and then its authority is among those that this machine trusts.
    let certs = Certs::make();
    let tls = certs.server();
    let served = format!(
        "listen = \"127.0.0.1:0\"\n[tls]\ncert_file = \"{}\"\nkey_file = \"{}\"\n",
        tls.cert.display(),
        tls.key.display()
    );
    let there = TestServer::builder().config(&served).start().await;
    let config_folder = ConfigFolder::new(HERE);
    add(
        &config_folder,
        "ops",
        &format!("https://127.0.0.1:{}/hook", there.port()),
    )
    .await;
    let doctor = async |roots: Option<&Certs>| -> DoctorReport {
        let mut command = config_folder.leasehold();
        command.args(["doctor", "--json"]);
        command.envs(roots.map(|certs| ("SSL_CERT_FILE", certs.ca())));
        report(command).await
    };
    let others = Certs::make();
    let unknown = doctor(Some(&others)).await;
    unknown.has_one_fault(&[
        "receiver ops: ",
        "certificate",
        "→ renew its certificate, or trust its authority",
    ]);
    let known = doctor(Some(&certs)).await;
    assert_eq!(known.code, 0, "{known:#?}");
}
