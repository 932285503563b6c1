//! SIGHUP after certificates and secrets were renewed in their files: an unchanged configuration loads the new
//! contents.

use std::path::{Path, PathBuf};

use ::testkit::{RedisOptions, Throwaway};
use reqwest::{StatusCode, header, redirect};
use rustix::process::Signal;
use serde_json::Value;

use super::running_server::Running;
use crate::oidc::provider::{CLIENT, Provider, SECRET};
use testkit::Certs;
use testkit::eventually;

fn put(from: &Path, to: &Path) {
    std::fs::copy(from, to).unwrap();
}

async fn state(running: &Running, backend: &str) -> Value {
    let backends = running.json("/v1/backends").await;
    let found = backends
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["name"] == backend);
    found.unwrap()["status"].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_renewed_backend_certificate_is_used_after_a_reload() {
    // Detects certificates compared by their path alone. A Redis with client authentication gets another authority's
    // certificate, then the right one under the same name; the other backend, and a reload without a change, are
    // unaffected.
    let (certs, others) = (Certs::make(), Certs::make());
    let options = RedisOptions {
        tls: Some(certs.mutual()),
        ..RedisOptions::default()
    };
    let redis = Throwaway::redis(options).await.unwrap();
    let files = tempfile::tempdir().unwrap();
    let [cert, key]: [PathBuf; 2] = ["client.crt", "client.key"].map(|name| files.path().join(name));
    put(&others.client_cert(), &cert);
    put(&others.client_key(), &key);
    let toml = format!(
        "[[backend]]\nname = \"cache\"\nkind = \"redis\"\nurls = [\"{}\"]\npoll_interval = \"1s\"\n\
         ca_file = \"{}\"\ncert_file = \"{}\"\nkey_file = \"{}\"\n\
         [[backend]]\nname = \"second\"\nkind = \"redis\"\nurls = [\"{}\"]\npoll_interval = \"1s\"\n",
        redis.tls_url().unwrap(),
        certs.ca().display(),
        cert.display(),
        key.display(),
        redis.url()
    );
    let running = Running::start(&toml).await;
    eventually("the other backend is live", async || {
        state(&running, "second").await == "live"
    })
    .await;
    assert_ne!(state(&running, "cache").await, "live");

    put(&certs.client_cert(), &cert);
    put(&certs.client_key(), &key);
    running.signal(Signal::HUP);
    running
        .logs("the configuration was reloaded: replaced cache")
        .await;
    eventually("it is live with the renewed certificate", async || {
        state(&running, "cache").await == "live"
    })
    .await;

    running.signal(Signal::HUP);
    running
        .logs("no setting that applies without a restart has changed")
        .await;
    let log = running.log();
    assert_eq!(log.matches("replaced ").count(), 1, "{log}");
}

/// From the button to the provider and back; returns whether the user is signed in.
async fn signs_in(running: &Running) -> bool {
    let http = reqwest::Client::builder().redirect(redirect::Policy::none());
    let http = http.build().unwrap();
    let sent = http.get(running.url("/sign-in/oidc")).send().await.unwrap();
    assert_eq!(sent.status(), StatusCode::SEE_OTHER);
    let text = |answer: &reqwest::Response, name| answer.headers()[name].to_str().unwrap().to_owned();
    let cookie = text(&sent, header::SET_COOKIE);
    let cookie = cookie.split(';').next().unwrap();
    let form = http.get(text(&sent, header::LOCATION)).send().await.unwrap();
    let back = http
        .get(text(&form, header::LOCATION))
        .header(header::COOKIE, cookie);
    let answer = back.send().await.unwrap();
    let cookies = answer.headers().get_all(header::SET_COOKIE).iter();
    cookies
        .map(|cookie| cookie.to_str().unwrap())
        .any(|cookie| cookie.starts_with("leasehold=lhs_"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_client_secret_is_used_after_a_reload() {
    // Detects a secret that is read only at start, leaked in the log or the audit log, or reported as needing a
    // restart.
    let (provider, _away) = Provider::start().await;
    let files = tempfile::tempdir().unwrap();
    let secret = files.path().join("oidc.secret");
    std::fs::write(&secret, "the-one-before").unwrap();
    let running = Running::start(&format!(
        "[oidc]\nissuer = \"{}\"\nclient_id = \"{CLIENT}\"\nclient_secret_file = \"{}\"\n\
         [[oidc.role]]\nvalue = \"lock-operators\"\nrole = \"operator\"\n",
        provider.issuer(),
        secret.display()
    ))
    .await;
    assert!(
        !signs_in(&running).await,
        "with a secret that is not the client's"
    );
    std::fs::write(&secret, SECRET).unwrap();
    running.signal(Signal::HUP);
    running.logs("oidc.client_secret has changed").await;
    assert!(signs_in(&running).await);
    let record = running.json("/v1/audit?action=CONFIG_RELOAD").await.to_string();
    assert!(
        record.contains("clientSecret") && record.contains("replaced"),
        "{record}"
    );
    let log = running.log();
    for output in [&record, &log] {
        assert!(
            !output.contains(SECRET) && !output.contains("the-one-before"),
            "{output}"
        );
    }
    assert!(!log.contains("needs a restart"), "{log}");
}
