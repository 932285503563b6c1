//! Resolver of the HTTP client: checks the addresses of a name, and connects to exactly those.

use std::net::{IpAddr, SocketAddr};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::{RefusedAddress, SsrfGuard};

/// Resolves to addresses that the guard allows.
pub(in crate::notify) struct Checked {
    guard: SsrfGuard,
    is_clear: bool,
}

impl Checked {
    pub(in crate::notify) const fn new(guard: SsrfGuard, is_clear: bool) -> Self {
        Self { guard, is_clear }
    }
}

impl Resolve for Checked {
    fn resolve(&self, name: Name) -> Resolving {
        let (guard, is_clear) = (self.guard.clone(), self.is_clear);
        Box::pin(async move {
            let fit = guard.resolve(name.as_str(), is_clear).await?;
            // The port comes from the URL.
            let fit = fit.into_iter().map(|address| SocketAddr::new(address, 0));
            Ok(Box::new(fit) as Addrs)
        })
    }
}

/// Why a name has no allowed address.
#[derive(Debug, thiserror::Error)]
pub(in crate::notify) enum NameError {
    #[error("{0}")]
    RefusedAddress(#[from] RefusedAddress),
    #[error("the name does not resolve to an address: {0}")]
    Unknown(#[from] std::io::Error),
}

impl NameError {
    pub(in crate::notify) fn refused(self) -> Option<RefusedAddress> {
        match self {
            Self::RefusedAddress(refused) => Some(refused),
            Self::Unknown(_) => None,
        }
    }
}

impl SsrfGuard {
    /// The allowed addresses of a name.
    ///
    /// # Errors
    /// See [`NameError`]; refused if no address is allowed.
    pub(in crate::notify) async fn resolve(
        &self,
        name: &str,
        is_clear: bool,
    ) -> Result<Vec<IpAddr>, NameError> {
        // Always this machine, whatever a resolver returns (RFC 6761).
        let plain = name.trim_end_matches('.');
        let is_here = plain == "localhost" || plain.ends_with(".localhost");
        let name = if is_here { "localhost" } else { name };
        let found = tokio::net::lookup_host((name, 0)).await?;
        let mut refused = None;
        let fit: Vec<IpAddr> = found
            .map(|address| address.ip())
            .filter(|address| match self.check(*address, is_clear) {
                Ok(()) => true,
                Err(error) => {
                    refused.get_or_insert(error);
                    false
                }
            })
            .collect();
        match refused {
            Some(refused) if fit.is_empty() => Err(refused.into()),
            _ if fit.is_empty() => Err(std::io::Error::from(std::io::ErrorKind::NotFound).into()),
            _ => Ok(fit),
        }
    }
}
