//! The server certificate: read at start, and again when its files change, so that a renewal needs no restart.

use std::fmt;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::RwLock;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use thiserror::Error;
use tokio_rustls::TlsAcceptor;

use super::limits::{CERTIFICATE_BYTES_MAX, CERTIFICATE_CHECK_INTERVAL};
use config::ServerTls;

/// The error of a file, with its configuration key.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{key}: {} {why}. {remedy}", .path.display())]
pub struct TlsError {
    pub key: &'static str,
    pub path: PathBuf,
    pub why: String,
    pub remedy: &'static str,
}

/// The files, and their last valid content.
pub struct Certificate {
    files: ServerTls,
    current: RwLock<Held>,
}

#[derive(Clone)]
struct Held {
    shown: Arc<CertifiedKey>,
    read: Read,
}

/// Content of the files.
#[derive(Clone, PartialEq, Eq)]
struct Read {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

impl Certificate {
    /// # Errors
    /// A file cannot be read or is invalid, or key and certificate do not match.
    pub fn load(files: &ServerTls) -> Result<Arc<Self>, TlsError> {
        let read = Read::from(files)?;
        let shown = Arc::new(read.certified(files)?);
        Ok(Arc::new(Self {
            files: files.clone(),
            current: RwLock::new(Held { shown, read }),
        }))
    }

    /// Checks the files every few seconds. An invalid renewal is logged once, and the last valid certificate stays.
    pub async fn reload_regularly(&self) {
        let mut logged = None;
        loop {
            tokio::time::sleep(CERTIFICATE_CHECK_INTERVAL).await;
            match self.reload_if_changed() {
                Ok(is_new) => {
                    logged = None;
                    if is_new {
                        tracing::info!("the certificate was renewed: {}", self.files.cert_file.display());
                    }
                }
                Err(error) if logged.as_ref() == Some(&error) => {}
                Err(error) => {
                    tracing::error!("the previous certificate remains in use: {error}");
                    logged = Some(error);
                }
            }
        }
    }

    /// Returns whether there was a new certificate. A partial renewal does not match and is checked again.
    fn reload_if_changed(&self) -> Result<bool, TlsError> {
        let read = Read::from(&self.files)?;
        if read == self.current.read().read {
            return Ok(false);
        }
        let shown = Arc::new(read.certified(&self.files)?);
        *self.current.write() = Held { shown, read };
        Ok(true)
    }

    /// TLS 1.2 and 1.3 with this certificate, for HTTP/2 and HTTP/1.1, without client certificates.
    ///
    /// # Errors
    /// The TLS library rejects its own defaults.
    pub fn acceptor(self: Arc<Self>) -> Result<TlsAcceptor, rustls::Error> {
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(self);
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}

impl ResolvesServerCert for Certificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current.read().shown.clone())
    }
}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificate")
            .field("files", &self.files)
            .finish_non_exhaustive()
    }
}

impl Read {
    fn from(files: &ServerTls) -> Result<Self, TlsError> {
        Ok(Self {
            certificate: read_file("tls.cert_file", &files.cert_file)?,
            key: read_file("tls.key_file", &files.key_file)?,
        })
    }

    fn certified(&self, files: &ServerTls) -> Result<CertifiedKey, TlsError> {
        let of_certificate = |why: String, remedy| TlsError {
            key: "tls.cert_file",
            path: files.cert_file.clone(),
            why,
            remedy,
        };
        let of_key = |why: &str, remedy| TlsError {
            key: "tls.key_file",
            path: files.key_file.clone(),
            why: why.to_owned(),
            remedy,
        };
        let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(&self.certificate)
            .collect::<Result<_, _>>()
            .map_err(|error| of_certificate(format!("is not PEM ({error})"), PEM_CERTIFICATE))?;
        if chain.is_empty() {
            return Err(of_certificate("holds no certificate".to_owned(), PEM_CERTIFICATE));
        }
        let key = PrivateKeyDer::from_pem_slice(&self.key)
            .map_err(|_| of_key("contains no unencrypted private key", PEM_KEY))?;
        CertifiedKey::from_der(chain, key, &ring::default_provider()).map_err(|error| match error {
            rustls::Error::InconsistentKeys(_) => {
                of_key("is not the key of this certificate", BELONG_TOGETHER)
            }
            rustls::Error::InvalidCertificate(error) => {
                of_certificate(format!("holds no valid certificate ({error})"), PEM_CERTIFICATE)
            }
            _ => of_key("holds a key of an unknown kind", PEM_KEY),
        })
    }
}

const CHECK_FILE: &str = "Check the path, and that this user may read the file.";
const PEM_CERTIFICATE: &str =
    "Write the server's certificate first, then the intermediate certificates, as PEM.";
const PEM_KEY: &str = "Write the certificate's key as PEM: RSA, ECDSA or Ed25519, without a passphrase.";
const BELONG_TOGETHER: &str = "Use the private key that belongs to the certificate.";

fn read_file(key: &'static str, path: &Path) -> Result<Vec<u8>, TlsError> {
    let wrong = |why: String| TlsError {
        key,
        path: path.to_owned(),
        why,
        remedy: CHECK_FILE,
    };
    let unreadable = |error: std::io::Error| wrong(format!("cannot be read: {error}"));
    let file = std::fs::File::open(path).map_err(unreadable)?;
    let mut bytes = Vec::new();
    file.take(CERTIFICATE_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    if bytes.len() as u64 > CERTIFICATE_BYTES_MAX {
        return Err(wrong(format!("is larger than {CERTIFICATE_BYTES_MAX} bytes")));
    }
    Ok(bytes)
}
