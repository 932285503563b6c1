//! TLS settings of a backend: authorities, client certificate, and the verified name.

use std::sync::Arc;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;

use super::connect::Tls;
use crate::BackendError;
use crate::error::misconfigured;
use config::tls::TlsConfig;
use runtime::tls_client::client_config;

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
