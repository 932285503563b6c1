//! The quota of a member from its metrics page: etcd before 3.6 reports it nowhere else.

use std::sync::Arc;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use url::Url;

/// etcd's page has about 100 kB.
const PAGE_BYTES_MAX: u64 = 4 * 1_024 * 1_024;
const QUOTA: &str = "etcd_server_quota_backend_bytes ";

/// TLS of a cluster.
#[derive(Clone)]
pub(crate) struct Tls {
    pub(crate) config: Arc<ClientConfig>,
    /// Replaces the host as the name that the certificate must have.
    pub(crate) server_name: Option<String>,
}

/// The quota of the member at `endpoint`, in bytes. The caller limits the time.
///
/// # Errors
/// Why it is unknown, as a clause.
pub(crate) async fn read_quota(endpoint: &str, tls: Option<&Tls>) -> Result<u64, String> {
    let page = fetch(endpoint, tls)
        .await
        .map_err(|error| format!("its metrics cannot be read: {error}"))?;
    parse_quota(&page).ok_or_else(|| "its metrics page does not contain it".to_owned())
}

async fn fetch(endpoint: &str, tls: Option<&Tls>) -> std::io::Result<String> {
    let invalid = |why: &str| std::io::Error::new(std::io::ErrorKind::InvalidInput, why.to_owned());
    let url = Url::parse(endpoint).map_err(|error| invalid(&error.to_string()))?;
    let (host, port) = host_and_port(&url).ok_or_else(|| invalid("the address has no host and port"))?;
    let stream = TcpStream::connect((host.trim_matches(['[', ']']), port)).await?;
    let Some(tls) = tls else {
        return get(stream, host).await;
    };
    let verified = tls.server_name.as_deref().unwrap_or(host).to_owned();
    let name = ServerName::try_from(verified).map_err(|error| invalid(&error.to_string()))?;
    let connector = TlsConnector::from(tls.config.clone());
    get(connector.connect(name, stream).await?, host).await
}

/// The port of the scheme if the address names none.
fn host_and_port(url: &Url) -> Option<(&str, u16)> {
    Some((url.host_str()?, url.port_or_known_default()?))
}

/// HTTP/1.0: the answer ends with the connection.
async fn get(mut stream: impl AsyncRead + AsyncWrite + Unpin, host: &str) -> std::io::Result<String> {
    let request = format!("GET /metrics HTTP/1.0\r\nHost: {host}\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.take(PAGE_BYTES_MAX).read_to_end(&mut answer).await?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

fn parse_quota(page: &str) -> Option<u64> {
    let value = page.lines().find_map(|line| line.strip_prefix(QUOTA))?;
    let bytes: f64 = value.trim().parse().ok()?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "positive, and far below 2^53 bytes"
    )]
    (bytes > 0.0).then_some(bytes as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_without_a_port_has_that_of_its_scheme() {
        for (address, host, port) in [
            ("https://etcd.example:443", "etcd.example", 443),
            ("https://etcd.example", "etcd.example", 443),
            ("http://[::1]:2379", "[::1]", 2_379),
        ] {
            let url = Url::parse(address).unwrap();
            assert_eq!(host_and_port(&url), Some((host, port)), "{address}");
        }
    }

    #[test]
    fn a_quota_is_read_in_the_notation_of_metrics() {
        let page =
            "# TYPE etcd_server_quota_backend_bytes gauge\netcd_server_quota_backend_bytes 2.147483648e+09\n";
        assert_eq!(parse_quota(page), Some(2_147_483_648));
        // Without a quota etcd reports 0.
        assert_eq!(parse_quota("etcd_server_quota_backend_bytes 0\n"), None);
        assert_eq!(
            parse_quota("HTTP/1.0 404 Not Found\r\n\r\n404 page not found"),
            None
        );
    }
}
