//! Receivers: reached without being told anything, refused by the guard, away, and with a certificate of nobody's.

use leasehold::audit::{Audit, Heads};
use leasehold::clock::Clock;
use leasehold::config::NotifyConfig;
use leasehold::db::Db;
use leasehold::identity::Who;
use leasehold::notify::{Kind, NewReceiver, Notifier, keys};
use leasehold::throwaway::free_port;
use tokio_util::sync::CancellationToken;

use super::stage::{Said, Stage, said};
use crate::doors::stage::Stage as Console;
use crate::support::certs::Certs;
use crate::support::ear::Ear;

const HERE: &str = "[notify]\nallow = [\"127.0.0.1/32\", \"::1/128\"]\n";
const SECRET: &str = "a secret of thirty-two characters";

/// As somebody adds it on the page.
async fn add(stage: &Stage, name: &str, url: &str) {
    let _installed = rustls::crypto::ring::default_provider().install_default();
    let store = format!("sqlite:{}", stage.path().join("leasehold.db").display());
    let db = Db::open(&store).await.unwrap();
    let audit = Audit::new(db.clone(), Clock::start(), Heads::default());
    let stop = CancellationToken::new();
    let config = NotifyConfig {
        allow: vec!["127.0.0.1/32".parse().unwrap(), "::1/128".parse().unwrap()],
        ..NotifyConfig::default()
    };
    let vault = keys::open(&db, &store, &config).await.unwrap();
    let (notifier, delivering) =
        Notifier::start(audit, vault, &config, "http://x", Clock::start(), stop.clone());
    let new = NewReceiver {
        name: name.to_owned(),
        kind: Kind::Webhook,
        urls: vec![url.into()],
        secret: Some(SECRET.into()),
    };
    notifier.add(&Who::system("test"), new).await.unwrap();
    stop.cancel();
    delivering.ended().await;
    db.close().await;
}

fn write(stage: &Stage, toml: &str) {
    let text = format!("listen = \"127.0.0.1:0\"\n{toml}");
    std::fs::write(stage.path().join("leasehold.toml"), text).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_receiver_is_reached_without_being_told_anything_or_named_with_its_mend() {
    // Would catch an alert, a path or a secret that a look sends; a guard that a look goes past; and a fault without a way
    // out. One that hears, one that is not there; then this machine is not declared any more.
    let stage = Stage::new(HERE);
    let ear = Ear::open().await;
    add(&stage, "ops", &format!("{}/hook/s3cret?token=t0ken", ear.url)).await;
    let sound = stage.doctor().await;
    assert_eq!(sound.code, 0, "{sound:#?}");
    let ok = sound.of("ok").join("\n");
    assert!(ok.contains("receiver ops: ") && ok.contains("answers"), "{ok}");
    let heard = ear.heard();
    assert_eq!(heard.len(), 1, "{heard:?}");
    assert_eq!((heard[0].path.as_str(), heard[0].body.as_str()), ("/", ""));
    assert!(!format!("{:?} {sound:?}", heard[0]).contains("t0ken"));

    write(&stage, "");
    stage.doctor().await.has_one_fault(&[
        "receiver ops: ",
        "127.0.0.1 is this machine (loopback)",
        "[notify] allow = [\"127.0.0.1/32\"]",
    ]);
    assert_eq!(ear.heard().len(), 1, "the guard was passed");

    write(&stage, HERE);
    let port = free_port().unwrap();
    add(&stage, "gone", &format!("http://127.0.0.1:{port}/x")).await;
    let gone = stage.doctor().await;
    gone.has_one_fault(&[
        "receiver gone: ",
        "is not reached",
        &format!("→ curl -I http://127.0.0.1:{port}"),
    ]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_receiver_whose_certificate_is_of_nobodys_is_named() {
    // By HTTPS: unknown here, and then its authority is among those that this machine trusts.
    let certs = Certs::make();
    let tls = certs.server();
    let served = format!(
        "listen = \"127.0.0.1:0\"\n[tls]\ncert_file = \"{}\"\nkey_file = \"{}\"\n",
        tls.cert.display(),
        tls.key.display()
    );
    let there = Console::start(&served).await;
    let stage = Stage::new(HERE);
    add(&stage, "ops", &format!("https://127.0.0.1:{}/hook", there.port())).await;
    let doctor = async |roots: Option<&Certs>| -> Said {
        let mut command = stage.leasehold();
        command.args(["doctor", "--json"]);
        command.envs(roots.map(|certs| ("SSL_CERT_FILE", certs.ca())));
        said(command).await
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
