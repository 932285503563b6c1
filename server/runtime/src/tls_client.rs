//! TLS of outgoing connections from the settings of a section: authorities and client certificate.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use config::tls::TlsConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use thiserror::Error;

/// A file of the TLS settings that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TlsFileError {
    #[error("`{key}` is unusable: {why}")]
    Unusable { key: &'static str, why: String },
    #[error("`{key}` {} holds no certificate in PEM form", .path.display())]
    NoCertificate { key: &'static str, path: PathBuf },
    #[error("`{key}` {} cannot be read: {why}", .path.display())]
    Unreadable {
        key: &'static str,
        path: PathBuf,
        why: String,
    },
    #[error("`cert_file` and `key_file` belong together, and only one is set")]
    OnlyOne,
}

impl TlsFileError {
    pub const fn remedy(&self) -> &'static str {
        match self {
            Self::Unreadable { .. } => "Check the path, and that this process may read the file.",
            Self::Unusable { .. } | Self::NoCertificate { .. } | Self::OnlyOne => {
                "Check `ca_file`, `cert_file` and `key_file`: PEM files that this process may read."
            }
        }
    }
}

/// With ring, whatever provider the process has installed. Without `ca_file` the system's authorities are trusted.
///
/// # Errors
/// See [`TlsFileError`].
pub fn client_config(tls: &TlsConfig) -> Result<ClientConfig, TlsFileError> {
    let unusable = |key, error: rustls::Error| TlsFileError::Unusable {
        key,
        why: error.to_string(),
    };
    let mut roots = RootCertStore::empty();
    match &tls.ca_file {
        Some(path) => {
            for cert in certificates("ca_file", path)? {
                roots.add(cert).map_err(|error| unusable("ca_file", error))?;
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
        .map_err(|error| unusable("ca_file", error))?
        .with_root_certificates(roots);
    match (&tls.cert_file, &tls.key_file) {
        (Some(cert), Some(key)) => {
            let chain = certificates("cert_file", cert)?;
            let key = PrivateKeyDer::from_pem_slice(&read("key_file", key)?).map_err(|error| {
                TlsFileError::Unusable {
                    key: "key_file",
                    why: error.to_string(),
                }
            })?;
            builder
                .with_client_auth_cert(chain, key)
                .map_err(|error| unusable("cert_file", error))
        }
        (None, None) => Ok(builder.with_no_client_auth()),
        _ => Err(TlsFileError::OnlyOne),
    }
}

fn certificates(key: &'static str, path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsFileError> {
    let pem = read(key, path)?;
    let certs: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    match certs {
        Ok(certs) if !certs.is_empty() => Ok(certs),
        Ok(_) | Err(_) => Err(TlsFileError::NoCertificate {
            key,
            path: path.to_owned(),
        }),
    }
}

fn read(key: &'static str, path: &Path) -> Result<Vec<u8>, TlsFileError> {
    std::fs::read(path).map_err(|error| TlsFileError::Unreadable {
        key,
        path: path.to_owned(),
        why: error.to_string(),
    })
}
