//! Addresses, passwords, TLS: errors name the configuration key, and never contain the password.

use ::backends::{Backend, BackendError};
use ::config::redis::RedisMode;

use domain::names::Resource;

use super::{Setup, driver, key, observe, run, start_with, try_observe};
use crate::support::unlocking::{act, generation};
use testkit::Certs;

#[test]
fn invalid_settings_are_refused_at_once_by_key() {
    // Checked without a server; no part of a URL is repeated, because it may hold a password.
    for url in [
        "",
        "redis",
        "http://u:hunter2@h",
        "redis://u:hunter2@h:99999",
        "redis://u:hunter2@h/x",
        "redis://:hunter2@/",
    ] {
        let error = Setup::new(url).connect().map(drop).unwrap_err();
        assert!(
            matches!(&error, BackendError::Misconfigured { detail, .. } if detail.contains("`urls`")),
            "{error:?}"
        );
        assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
    }
    for (mode, count, remedy) in [
        (RedisMode::Redlock, 2, "an odd number, at least 3"),
        (RedisMode::Redlock, 4, "an odd number, at least 3"),
        (RedisMode::Sentinel, 3, "master_name"),
    ] {
        let urls = (0..count).map(|at| format!("redis://h{at}"));
        let error = Setup::mode(mode, urls).connect().map(drop).unwrap_err();
        assert!(error.remedy().contains(remedy), "{mode:?}: {error:?}");
    }
    let mut two = Setup::new("redis://h");
    two.redis.urls.push("redis://i".into());
    assert!(matches!(two.connect(), Err(BackendError::Misconfigured { .. })));
    let insecure = Setup::new("rediss://h/#insecure")
        .connect()
        .map(drop)
        .unwrap_err();
    assert!(insecure.remedy().contains("`ca_file`"), "{insecure:?}");
    let file = Setup::new("rediss://h").tls(|tls| tls.ca_file = Some("/nowhere/ca.pem".into()));
    let error = file.connect().map(drop).unwrap_err();
    assert!(error.to_string().contains("`ca_file` /nowhere/ca.pem"), "{error}");
    let half = Setup::new("rediss://h").tls(|tls| tls.cert_file = Some("/nowhere/c.pem".into()));
    assert!(
        half.connect()
            .map(drop)
            .unwrap_err()
            .to_string()
            .contains("`key_file`")
    );
}

#[tokio::test]
async fn wrong_password_is_denied_and_appears_in_no_error() {
    // WRONGPASS, NOAUTH, then the right password in the configuration with a wrong one in the URL.
    let redis = start_with(|options| {
        options.password = Some("topsecret".to_owned());
        options.acl_users = vec!["watcher on >alsosecret ~lock:* +@all".to_owned()];
    })
    .await;
    let bare = format!("redis://127.0.0.1:{}/", redis.port());
    let wrong = format!("redis://watcher:hunter2@127.0.0.1:{}/", redis.port());
    for url in [&bare, &wrong] {
        let backend = Setup::new(url).backend();
        let error = try_observe(&backend).await.map(drop).unwrap_err();
        assert!(matches!(error, BackendError::Denied { .. }), "{error:?}");
        assert!(error.remedy().contains("`password`"), "{error:?}");
        assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
        assert!(!backend.address().contains("hunter2") && !backend.address().contains("watcher"));
    }
    let mut right = Setup::new(&wrong);
    right.config.password = Some("alsosecret".into());
    observe(&right.backend()).await;
    let mut other = Setup::new(&wrong);
    other.config.user = Some("default".to_owned());
    other.config.password = Some("topsecret".into());
    observe(&other.backend()).await;
}

#[tokio::test]
async fn a_refused_unlock_account_is_named_by_its_settings() {
    // The watching account logs in; the password of the other one is wrong.
    let redis = start_with(|options| {
        options.acl_users = vec!["breaker on >right ~lock:* +@all".to_owned()];
    })
    .await;
    run(&mut driver(&redis).await, &["SET", "lock:a", "one"]).await;
    let wrong = format!("redis://breaker:wrong@127.0.0.1:{}/", redis.port());
    let backend = Setup::new(&redis.url()).unlocking(&wrong).backend();
    let resource = Resource::from("lock:a");
    let seen = generation(&backend, &key(), &resource).await;
    let released = backend.release(&key(), &resource, &seen, &act()).await;
    let error = released.unwrap_err();
    assert!(
        matches!(&error, BackendError::Denied { remedy, .. } if remedy.contains("`unlock_password`")),
        "{error:?}"
    );
}

#[tokio::test]
async fn tls_is_verified_against_the_configured_authority_and_name() {
    // An authority of our own by openssl; its certificate is for 127.0.0.1 and localhost.
    let certs = Certs::make();
    let redis = start_with(|options| options.tls = Some(certs.server())).await;
    run(&mut driver(&redis).await, &["SET", "lock:a", "x"]).await;
    let url = redis.tls_url().unwrap();
    let ours = Setup::new(&url).tls(|tls| tls.ca_file = Some(certs.ca()));
    let backend = ours.backend();
    assert!(observe(&backend).await.1.has("lock:a"));
    assert!(backend.address().starts_with("rediss://127.0.0.1:"));
    // The authorities of the system do not know it.
    let error = try_observe(&Setup::new(&url).backend())
        .await
        .map(drop)
        .unwrap_err();
    assert!(
        matches!(&error, BackendError::Misconfigured { detail, .. } if detail.contains("TLS")),
        "{error:?}"
    );
    // A name that the certificate lacks, and one that it has in addition to the address.
    let named = |name: &str| {
        Setup::new(&url).tls(|tls| {
            tls.ca_file = Some(certs.ca());
            tls.server_name = Some(name.to_owned());
        })
    };
    let error = try_observe(&named("other.example").backend())
        .await
        .map(drop)
        .unwrap_err();
    assert!(matches!(error, BackendError::Misconfigured { .. }), "{error:?}");
    assert!(observe(&named("localhost").backend()).await.1.has("lock:a"));
    // A file is enough to ask for TLS.
    let plain = url.replace("rediss://", "redis://");
    assert!(
        observe(
            &Setup::new(&plain)
                .tls(|tls| tls.ca_file = Some(certs.ca()))
                .backend()
        )
        .await
        .1
        .has("lock:a")
    );
}

#[tokio::test]
async fn a_required_client_certificate_is_sent_or_reported() {
    // tls-auth-clients yes.
    let certs = Certs::make();
    let redis = start_with(|options| options.tls = Some(certs.mutual())).await;
    let url = redis.tls_url().unwrap();
    let without = Setup::new(&url).tls(|tls| tls.ca_file = Some(certs.ca()));
    let error = try_observe(&without.backend()).await.map(drop).unwrap_err();
    assert!(error.to_string().contains("TLS"), "{error:?}");
    let with = Setup::new(&url).tls(|tls| {
        tls.ca_file = Some(certs.ca());
        tls.cert_file = Some(certs.client_cert());
        tls.key_file = Some(certs.client_key());
    });
    observe(&with.backend()).await;
}
