//! TLS settings of a backend: authorities, client certificate, and the verified name.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};

use super::connect::Tls;
use crate::BackendError;
use crate::error::misconfigured;
use config::tls::TlsConfig;

/// How to verify any server of a backend.
#[derive(Clone)]
pub(super) struct TlsSettings {
    config: Arc<ClientConfig>,
    /// Replaces the host as the name that the certificate must have.
    server_name: Option<String>,
}

impl TlsSettings {
    pub(super) fn new(tls: &TlsConfig) -> Result<Self, BackendError> {
        Ok(Self {
            config: Arc::new(client_config(tls)?),
            server_name: tls.server_name.clone(),
        })
    }

    pub(super) fn for_host(&self, host: &str) -> Result<Tls, BackendError> {
        let verified = self.server_name.as_deref().unwrap_or(host);
        let name = ServerName::try_from(verified.to_owned()).map_err(|_| {
            misconfigured(
                format!("{verified:?} is not a name that a certificate can have"),
                "Check `server_name`, or the host in `urls`.".to_owned(),
            )
        })?;
        Ok(Tls {
            config: Arc::clone(&self.config),
            name,
        })
    }
}

const FILES: &str = "Check `ca_file`, `cert_file` and `key_file`: PEM files that this process may read.";

fn client_config(tls: &TlsConfig) -> Result<ClientConfig, BackendError> {
    let unusable =
        |key: &str, why: String| misconfigured(format!("`{key}` is unusable: {why}"), FILES.to_owned());
    let mut roots = RootCertStore::empty();
    match &tls.ca_file {
        Some(path) => {
            for cert in certificates("ca_file", path)? {
                roots
                    .add(cert)
                    .map_err(|error| unusable("ca_file", error.to_string()))?;
            }
        }
        // Without system certificates each handshake fails with its own error.
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| unusable("ca_file", error.to_string()))?
        .with_root_certificates(roots);
    match (&tls.cert_file, &tls.key_file) {
        (Some(cert), Some(key)) => {
            let chain = certificates("cert_file", cert)?;
            let key = PrivateKeyDer::from_pem_slice(&read("key_file", key)?)
                .map_err(|error| unusable("key_file", error.to_string()))?;
            builder
                .with_client_auth_cert(chain, key)
                .map_err(|error| unusable("cert_file", error.to_string()))
        }
        (None, None) => Ok(builder.with_no_client_auth()),
        _ => Err(misconfigured(
            "`cert_file` and `key_file` belong together, and only one is set".to_owned(),
            FILES.to_owned(),
        )),
    }
}

fn certificates(key: &str, path: &Path) -> Result<Vec<CertificateDer<'static>>, BackendError> {
    let pem = read(key, path)?;
    let certs: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    match certs {
        Ok(certs) if !certs.is_empty() => Ok(certs),
        Ok(_) | Err(_) => Err(misconfigured(
            format!("`{key}` {} holds no certificate in PEM form", path.display()),
            FILES.to_owned(),
        )),
    }
}

fn read(key: &str, path: &Path) -> Result<Vec<u8>, BackendError> {
    std::fs::read(path).map_err(|error| {
        misconfigured(
            format!("`{key}` {} cannot be read: {error}", path.display()),
            "Check the path, and that this process may read the file.".to_owned(),
        )
    })
}
