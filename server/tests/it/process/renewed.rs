//! SIGHUP after certificates and secrets were renewed in their files: the configuration reads as before, and yet counts anew.

use std::path::{Path, PathBuf};

use leasehold::throwaway::{RedisOptions, Throwaway};
use reqwest::{StatusCode, header, redirect};
use rustix::process::Signal;
use serde_json::Value;

use super::running::Running;
use crate::oidc::provider::{CLIENT, Provider, SECRET};
use crate::support::certs::Certs;
use crate::support::eventually::eventually;

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
async fn a_backends_certificate_that_is_renewed_in_its_place_counts_after_a_reload() {
    // Would catch certificates that are known by their path alone. A Redis that wants to know its clients is shown another
    // authority's, then the right one under the same name; the backend beside it, and a reload without a change, touch nothing.
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
        "[[backend]]\nname = \"cache\"\nkind = \"redis\"\nurls = [\"{}\"]\npoll = \"200ms\"\n\
         ca_file = \"{}\"\ncert_file = \"{}\"\nkey_file = \"{}\"\n\
         [[backend]]\nname = \"beside\"\nkind = \"redis\"\nurls = [\"{}\"]\npoll = \"200ms\"\n",
        redis.tls_url().unwrap(),
        certs.ca().display(),
        cert.display(),
        key.display(),
        redis.url()
    );
    let running = Running::start(&toml).await;
    eventually("the one beside it is live", async || {
        state(&running, "beside").await == "live"
    })
    .await;
    assert_ne!(state(&running, "cache").await, "live");

    put(&certs.client_cert(), &cert);
    put(&certs.client_key(), &key);
    running.signal(Signal::HUP);
    running
        .logs("the configuration was read again: replaced cache")
        .await;
    eventually("it is live with the renewed certificate", async || {
        state(&running, "cache").await == "live"
    })
    .await;

    running.signal(Signal::HUP);
    running
        .logs("nothing that can change without a restart has changed")
        .await;
    let log = running.log();
    assert_eq!(log.matches("replaced ").count(), 1, "{log}");
}

/// From the button to the provider and back; whether somebody is signed in then.
async fn signs_in(running: &Running) -> bool {
    let http = reqwest::Client::builder().redirect(redirect::Policy::none());
    let http = http.build().unwrap();
    let sent = http.get(running.url("/sign-in/oidc")).send().await.unwrap();
    assert_eq!(sent.status(), StatusCode::SEE_OTHER);
    let text = |answer: &reqwest::Response, name| answer.headers()[name].to_str().unwrap().to_owned();
    let cookie = text(&sent, header::SET_COOKIE);
    let cookie = cookie.split(';').next().unwrap();
    let asked = http.get(text(&sent, header::LOCATION)).send().await.unwrap();
    let back = http
        .get(text(&asked, header::LOCATION))
        .header(header::COOKIE, cookie);
    let answer = back.send().await.unwrap();
    let cookies = answer.headers().get_all(header::SET_COOKIE).iter();
    cookies
        .map(|cookie| cookie.to_str().unwrap())
        .any(|cookie| cookie.starts_with("leasehold=lhs_"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_secret_of_the_client_counts_at_the_next_sign_in_after_a_reload() {
    // Would catch a secret that is read at the start alone, told in the log or the record, or asked a restart for.
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
    running.logs("oidc.client_secret is another").await;
    assert!(signs_in(&running).await);
    let record = running.json("/v1/audit?action=CONFIG_RELOAD").await.to_string();
    assert!(
        record.contains("clientSecret") && record.contains("replaced"),
        "{record}"
    );
    let log = running.log();
    for told in [&record, &log] {
        assert!(
            !told.contains(SECRET) && !told.contains("the-one-before"),
            "{told}"
        );
    }
    assert!(!log.contains("needs a restart"), "{log}");
}
