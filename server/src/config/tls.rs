//! TLS towards a backend. Used when the URL asks for TLS (`sslmode`, `rediss://`, `https://`) or a file is given.

use std::path::PathBuf;

use serde::Deserialize;

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TlsConfig {
    /// `ca_file`: PEM of the authority that signed the server's certificate. Default: the system's roots.
    pub ca_file: Option<PathBuf>,
    /// `cert_file` and `key_file`: PEM of our own certificate and key, both or neither.
    pub cert_file: Option<PathBuf>,
    pub key_file: Option<PathBuf>,
    /// `server_name`: the name expected in the server's certificate. Default: the host of the URL.
    pub server_name: Option<String>,
}

impl TlsConfig {
    pub fn is_configured(&self) -> bool {
        self.ca_file.is_some() || self.cert_file.is_some() || self.server_name.is_some()
    }
}
