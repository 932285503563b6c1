//! Real handshakes with our own certificate.

use super::tls_client::{client, loopback};
use crate::support::{PASSWORD, Store, TestServer, load_config, on};
use domain::access::Role;
use std::path::Path;
use std::sync::Arc;

use leasehold::serve::listener::tls::Certificate;
use reqwest::{StatusCode, header};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ProtocolVersion, RootCertStore};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::support::form::Form as _;
use testkit::Certs;
use testkit::eventually;

fn toml(listen: &str, cert: &Path, key: &Path) -> String {
    format!(
        "listen = \"{listen}\"\n[tls]\ncert_file = \"{}\"\nkey_file = \"{}\"\n",
        cert.display(),
        key.display()
    )
}

#[tokio::test]
async fn a_public_address_serves_https_only() {
    // On every address, with our certificate: pages, HSTS, a Secure cookie; plain HTTP and an unknown authority are
    // refused.
    let (certs, strangers) = (Certs::make(), Certs::make());
    let console = TestServer::builder()
        .config(&toml("0.0.0.0:0", &certs.server().cert, &certs.server().key))
        .start()
        .await;
    console.add_user("ada", on(Role::Admin, None, None)).await;
    let home = format!("https://localhost:{}", console.port());
    let http = client(&certs.ca(), [127, 0, 0, 1]);
    let led = http.get(&home).send().await.unwrap();
    assert_eq!(led.status(), StatusCode::SEE_OTHER);
    assert!(led.headers().contains_key(header::STRICT_TRANSPORT_SECURITY));
    let form = [("name", "ada"), ("password", PASSWORD)];
    let welcome = http
        .post(format!("{home}/sign-in"))
        .form(&form)
        .send()
        .await
        .unwrap();
    let cookie = welcome.headers()[header::SET_COOKIE].to_str().unwrap().to_owned();
    assert!(cookie.starts_with("__Host-leasehold=lhs_"), "{cookie}");
    for part in ["; Secure", "; HttpOnly", "; SameSite=Lax", "; Path=/"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    assert!(!cookie.contains("Domain"), "{cookie}");
    let page = http
        .get(&home)
        .header(header::COOKIE, cookie.split(';').next().unwrap());
    assert_eq!(page.send().await.unwrap().status(), StatusCode::OK);

    assert!(
        client(&strangers.ca(), [127, 0, 0, 1])
            .get(&home)
            .send()
            .await
            .is_err()
    );
    let mut plain = TcpStream::connect(loopback(console.port())).await.unwrap();
    plain
        .write_all(b"GET /sign-in HTTP/1.1\r\nhost: x\r\n\r\n")
        .await
        .unwrap();
    let mut answer = Vec::new();
    let _cut = plain.read_to_end(&mut answer).await;
    assert!(
        !answer.starts_with(b"HTTP/"),
        "{}",
        String::from_utf8_lossy(&answer)
    );
}

#[tokio::test]
async fn browsers_get_http_2_over_tls_1_3() {
    // The protocol that the handshake negotiates, by a client that offers both.
    let certs = Certs::make();
    let console = TestServer::builder()
        .config(&toml("127.0.0.1:0", &certs.server().cert, &certs.server().key))
        .start()
        .await;
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_file(certs.ca()).unwrap())
        .unwrap();
    let mut config = ClientConfig::builder()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let stream = TcpStream::connect(loopback(console.port())).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let stream = TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await
        .unwrap();
    let agreed = stream.get_ref().1;
    assert_eq!(agreed.protocol_version(), Some(ProtocolVersion::TLSv1_3));
    assert_eq!(agreed.alpn_protocol(), Some(&b"h2"[..]));
}

#[tokio::test]
async fn a_renewed_certificate_is_used_without_a_restart() {
    // First half of a renewal, which is inconsistent and has no effect; then all of it, by another authority.
    let (old, new) = (Certs::make(), Certs::make());
    let folder = tempfile::tempdir().unwrap();
    let (cert, key) = (folder.path().join("tls.crt"), folder.path().join("tls.key"));
    std::fs::copy(old.server().cert, &cert).unwrap();
    std::fs::copy(old.server().key, &key).unwrap();
    let console = TestServer::builder()
        .config(&toml("127.0.0.1:0", &cert, &key))
        .start()
        .await;
    let url = format!("https://localhost:{}/healthz", console.port());
    let greets = async |certs: &Certs| client(&certs.ca(), [127, 0, 0, 1]).get(&url).send().await.is_ok();
    assert!(greets(&old).await);
    std::fs::copy(new.server().cert, &cert).unwrap();
    // A reload cannot be waited for: the certificate without its key must not be loaded.
    tokio::time::sleep(leasehold::serve::listener::limits::CERTIFICATE_CHECK_INTERVAL * 2).await;
    assert!(greets(&old).await && !greets(&new).await);
    std::fs::copy(new.server().key, &key).unwrap();
    eventually("the new certificate is shown", || async { greets(&new).await }).await;
    assert!(!greets(&old).await);
}

#[tokio::test]
async fn unsafe_listener_settings_are_refused_at_start() {
    // A certificate with another's key, files with other contents, and a public address without TLS.
    let (certs, others) = (Certs::make(), Certs::make());
    let (cert, key) = (certs.server().cert, certs.server().key);
    for (cert, key, words) in [
        (&cert, &others.server().key, "tls.key_file: "),
        (&cert, &others.server().key, "is not the key of this certificate"),
        (&key, &key, "holds no certificate"),
        (&cert, &cert, "contains no unencrypted private key"),
    ] {
        let config = load_config(&toml("127.0.0.1:0", cert, key)).unwrap();
        let error = Certificate::load(config.access.tls.as_ref().unwrap()).unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
        let Err(at_start) = TestServer::builder()
            .config(&toml("127.0.0.1:0", cert, key))
            .try_start_on(Store::sqlite())
            .await
        else {
            panic!("it starts")
        };
        assert_eq!(at_start.to_string(), error.to_string());
    }
    let access = load_config("").unwrap().access;
    let refusal = access.refusal("0.0.0.0:3000".parse().unwrap()).unwrap();
    assert!(
        refusal.why.contains("unencrypted") && refusal.remedy.contains("[tls]"),
        "{refusal:?}"
    );
}
