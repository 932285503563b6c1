//! A client over TLS.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use reqwest::{Certificate, Client, redirect};

/// Trusts this authority alone, follows no redirects, and connects from this address of the machine.
pub(crate) fn client(authority: &Path, from: [u8; 4]) -> Client {
    let pem = std::fs::read(authority).unwrap();
    Client::builder()
        .tls_certs_only([Certificate::from_pem(&pem).unwrap()])
        .redirect(redirect::Policy::none())
        .local_address(IpAddr::from(from))
        .timeout(Duration::from_secs(10))
        .build()
        .unwrap()
}

pub(crate) fn loopback(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}
