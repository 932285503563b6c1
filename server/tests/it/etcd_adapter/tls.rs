//! TLS with a throwaway authority.

use ::backends::etcd::EtcdBackend;
use ::backends::{Backend, BackendError};
use ::config::tls::TlsConfig;
use ::testkit::{Etcd, EtcdOptions, Throwaway, Tls};
use domain::reported::Reported;

use super::watched_etcd::{backend, client, seen, try_backend};
use testkit::Certs;

async fn etcd(tls: Tls) -> Etcd {
    let options = EtcdOptions {
        fast: true,
        tls: Some(tls),
        ..Default::default()
    };
    Throwaway::etcd(options).await.unwrap()
}

fn over_tls(etcd: &Etcd, tls: TlsConfig) -> EtcdBackend {
    backend(&[etcd.tls_endpoint().unwrap()], &["/locks/"], |config| {
        config.tls = tls
    })
}

#[tokio::test]
async fn an_authority_from_a_file_is_trusted_and_others_are_not() {
    // With our authority; with the system's only; and with a name that is not in the certificate.
    let certs = Certs::make();
    let etcd = etcd(certs.server()).await;
    client(&etcd.endpoint())
        .await
        .put("/locks/a", "o", None)
        .await
        .unwrap();
    let trusting = TlsConfig {
        ca_file: Some(certs.ca()),
        ..TlsConfig::default()
    };
    assert_eq!(
        seen(&over_tls(&etcd, trusting.clone()))
            .await
            .unwrap()
            .locks
            .len(),
        1
    );
    let named = TlsConfig {
        server_name: Some("localhost".to_owned()),
        ..trusting.clone()
    };
    assert_eq!(seen(&over_tls(&etcd, named)).await.unwrap().locks.len(), 1);
    let misnamed = TlsConfig {
        server_name: Some("elsewhere.example".to_owned()),
        ..trusting
    };
    for refused in [misnamed, TlsConfig::default()] {
        let error = seen(&over_tls(&etcd, refused)).await.unwrap_err();
        assert!(!matches!(error, BackendError::NoAnswer { .. }), "{error:?}");
    }
}

#[tokio::test]
async fn a_client_certificate_is_sent_if_etcd_requires_one() {
    // Without a client certificate etcd refuses; with it, the scan is complete. The adapter then reports write access
    // as unknown.
    let certs = Certs::make();
    let etcd = etcd(certs.mutual()).await;
    let mut tls = TlsConfig {
        ca_file: Some(certs.ca()),
        ..TlsConfig::default()
    };
    let error = seen(&over_tls(&etcd, tls.clone())).await.unwrap_err();
    println!("{error}");
    tls.cert_file = Some(certs.client_cert());
    tls.key_file = Some(certs.client_key());
    let backend = over_tls(&etcd, tls);
    assert!(seen(&backend).await.unwrap().whole());
    let rights = backend.probe().await.unwrap().rights;
    assert!(
        matches!(rights.last().unwrap().allowed, Reported::Unknown(_)),
        "{rights:?}"
    );
}

#[tokio::test]
async fn invalid_tls_settings_are_reported_at_once() {
    // Before any connection is opened.
    let certs = Certs::make();
    let https = ["https://127.0.0.1:1".to_owned()];
    let half = TlsConfig {
        cert_file: Some(certs.client_cert()),
        ..TlsConfig::default()
    };
    let missing = TlsConfig {
        ca_file: Some("/nonexistent/ca.crt".into()),
        ..TlsConfig::default()
    };
    for (endpoints, tls, word) in [
        (&https, half, "key_file"),
        (&https, missing, "/nonexistent/ca.crt"),
        (
            &["http://127.0.0.1:1".to_owned()],
            TlsConfig {
                ca_file: Some(certs.ca()),
                ..TlsConfig::default()
            },
            "http",
        ),
    ] {
        let error = try_backend(endpoints, &["/locks/"], |config| config.tls = tls)
            .err()
            .unwrap();
        assert!(error.to_string().contains(word), "{error}");
    }
}
