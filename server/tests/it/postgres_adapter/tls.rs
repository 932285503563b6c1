//! TLS with an authority of our own.

use ::backends::postgres::connect;
use ::backends::{Backend, BackendError};
use ::config::tls::TlsConfig;
use ::testkit::{PostgresOptions, Throwaway};
use runtime::clock::Clock;

use super::watched_postgres::*;
use testkit::Certs;

async fn probe(url: &str, tls: TlsConfig) -> Result<(), BackendError> {
    let config = postgres_config(url, Vec::new());
    let mut backend = backend_config(&config);
    backend.tls = tls;
    connect(&backend, &config, Clock::start())?
        .probe()
        .await
        .map(drop)
}

#[tokio::test]
async fn server_certificate_must_match_authority_and_name() {
    // The certificate is for 127.0.0.1 and localhost; the server also takes plain text.
    let certs = Certs::make();
    let tls = Some(certs.server());
    let server = Throwaway::postgres(PostgresOptions {
        fast: true,
        tls,
        ..Default::default()
    })
    .await
    .unwrap();
    let url = server.superuser_url();
    let ours = || TlsConfig {
        ca_file: Some(certs.ca()),
        ..TlsConfig::default()
    };
    let named = |name: &str| TlsConfig {
        server_name: Some(name.to_owned()),
        ..ours()
    };
    probe(&url, ours()).await.unwrap();
    probe(&url, named("localhost")).await.unwrap();
    let refused = |result: Result<(), BackendError>| {
        let error = result.unwrap_err();
        assert!(
            matches!(&error, BackendError::Misconfigured { detail, .. } if detail.starts_with("TLS failed")),
            "{error:?}"
        );
        error
    };
    let stranger = refused(probe(&format!("{url}?sslmode=verify-full"), TlsConfig::default()).await);
    assert!(stranger.remedy().contains("ca_file"), "{stranger:?}");
    refused(probe(&url, named("db.example.com")).await);
    // A required connection checks the name and the authority too.
    refused(probe(&format!("{url}?sslmode=require"), named("db.example.com")).await);
    probe(&format!("{url}?sslmode=require"), ours()).await.unwrap();
    let lost = TlsConfig {
        ca_file: Some("/nowhere/ca.crt".into()),
        ..TlsConfig::default()
    };
    let lost = probe(&url, lost).await.unwrap_err();
    assert!(
        matches!(&lost, BackendError::Misconfigured { remedy, .. } if remedy.contains("ca_file")),
        "{lost:?}"
    );
    let half = TlsConfig {
        cert_file: Some(certs.client_cert()),
        ..ours()
    };
    assert!(matches!(
        probe(&url, half).await,
        Err(BackendError::Misconfigured { .. })
    ));
}

#[tokio::test]
async fn listening_works_over_tls_under_another_name() {
    // The session of LISTEN goes the same way as the others: a notification arrives through it.
    let certs = Certs::make();
    let tls = Some(certs.server());
    let server = Throwaway::postgres(PostgresOptions {
        fast: true,
        tls,
        ..Default::default()
    })
    .await
    .unwrap();
    let mut table = common("distributed_locks");
    table.notify = Some("locks".to_owned());
    let config = postgres_config(&server.superuser_url(), vec![table]);
    let mut backend = backend_config(&config);
    backend.tls = TlsConfig {
        ca_file: Some(certs.ca()),
        server_name: Some("localhost".to_owned()),
        ..TlsConfig::default()
    };
    let backend = connect(&backend, &config, Clock::start()).unwrap();
    super::watch::hears(&backend, &server.superuser_url()).await;
    let mut root = user(&server.superuser_url()).await;
    let plain: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM pg_stat_activity a JOIN pg_stat_ssl s USING (pid)
         WHERE application_name = 'leasehold' AND NOT ssl",
    )
    .fetch_one(&mut root)
    .await
    .unwrap();
    assert_eq!(plain, 0);
}

#[tokio::test]
async fn the_client_certificate_is_sent_on_request() {
    // The server trusts our authority for clients; without a certificate it refuses.
    let certs = Certs::make();
    let tls = Some(certs.mutual());
    let server = Throwaway::postgres(PostgresOptions {
        fast: true,
        tls,
        ..Default::default()
    })
    .await
    .unwrap();
    let hba = server.folder().join("data/pg_hba.conf");
    let mut root = user(&server.superuser_url()).await;
    std::fs::write(&hba, "hostssl all all 127.0.0.1/32 trust clientcert=verify-ca\n").unwrap();
    run(&mut root, "SELECT pg_reload_conf()").await;
    let with = TlsConfig {
        ca_file: Some(certs.ca()),
        cert_file: Some(certs.client_cert()),
        key_file: Some(certs.client_key()),
        server_name: None,
    };
    let without = TlsConfig {
        ca_file: Some(certs.ca()),
        ..TlsConfig::default()
    };
    testkit::eventually("the new rules are in force", || async {
        probe(&server.superuser_url(), without.clone()).await.is_err()
    })
    .await;
    let refused = probe(&server.superuser_url(), without).await.unwrap_err();
    assert!(matches!(refused, BackendError::Denied { .. }), "{refused:?}");
    probe(&server.superuser_url(), with).await.unwrap();
}
