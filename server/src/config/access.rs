//! `trusted_proxies` and `audit_heads_file`: who stands in front of the console, and where its record is told.

use std::net::IpAddr;
use std::path::PathBuf;

use url::Url;

use super::reader::Section;
use super::rules;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AccessConfig {
    /// `trusted_proxies`: addresses whose `X-Forwarded-For` is believed. Default none.
    pub trusted_proxies: Vec<IpAddr>,
    /// `audit_heads_file`: each row of the audit record adds a line `row hash` here, for `leasehold audit verify`.
    /// Default none.
    pub audit_heads_file: Option<PathBuf>,
    /// `public_url`: where people reach the console. Default: the address it listens on.
    pub public_url: Option<Url>,
    /// People come by HTTPS: `public_url` says so.
    pub is_secure: bool,
}

impl AccessConfig {
    pub(super) fn read(root: &mut Section<'_>, public_url: Option<&Url>) -> Self {
        let proxies = root.list(
            "trusted_proxies",
            Some(&[]),
            "addresses of proxies, such as trusted_proxies = [\"10.0.0.1\"]",
            &|text| match text.parse::<IpAddr>() {
                Ok(_) => Ok(()),
                Err(_) => Err("is not an IP address".to_owned()),
            },
        );
        Self {
            trusted_proxies: proxies
                .unwrap_or_default()
                .iter()
                .filter_map(|text| text.parse().ok())
                .collect(),
            audit_heads_file: root.optional("audit_heads_file", &rules::written_path()),
            public_url: public_url.cloned(),
            is_secure: public_url.is_some_and(|url| url.scheme() == "https"),
        }
    }
}
