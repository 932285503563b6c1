//! Access to the console: `[tls]`, `[proxy]`, `public_url`, `allowed_hosts`, `[oidc]`; and `audit_checkpoint_file`.
//!
//! **Invariant:** an address that other hosts can reach is refused unless traffic is encrypted, by the server's
//! certificate or by a declared proxy.

use std::net::SocketAddr;
use std::path::PathBuf;

use url::Url;

use super::network::Network;
use super::oidc::OidcConfig;
use super::reader::Section;
use super::value_parsers;

#[derive(Debug, Clone, Default)]
pub struct AccessConfig {
    /// `[tls]`: the server's certificate. Default none: plain HTTP.
    pub tls: Option<ServerTls>,
    /// `[proxy] trusted`: proxies whose `X-Forwarded-For` and `X-Forwarded-Proto` are trusted. Default none.
    pub proxies: Vec<Network>,
    /// `audit_checkpoint_file`: each audit entry adds a line `row hash` to this file, for `leasehold audit verify`.
    /// Default none.
    pub audit_checkpoint_file: Option<PathBuf>,
    /// `public_url`: the console's public URL. Default: the address it listens on.
    pub public_url: Option<Url>,
    /// `allowed_hosts`: further accepted host names if `public_url` is set. Default none.
    pub allowed_hosts: Vec<String>,
    /// `[oidc]`: an identity provider for sign-in. Default none.
    pub oidc: Option<OidcConfig>,
    /// Users connect by HTTPS: with the server's certificate, or because `public_url` says so.
    pub is_secure: bool,
}

/// `[tls]`: the server's certificate and its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerTls {
    pub cert_file: PathBuf,
    pub key_file: PathBuf,
}

impl AccessConfig {
    pub(super) fn read(root: &mut Section<'_>, listen: SocketAddr, public_url: Option<&Url>) -> Self {
        let audit_checkpoint_file = root.optional("audit_checkpoint_file", &value_parsers::written_path());
        let mut section = root.section("tls", "tls");
        let asks_for_tls = section.has("cert_file") || section.has("key_file");
        let tls = read_tls(&mut section);
        section.finish();
        let mut section = root.section("proxy", "proxy");
        let proxies = read_proxies(&mut section);
        section.finish();
        let is_https = public_url.is_some_and(|url| url.scheme() == "https");
        let access = Self {
            is_secure: tls.is_some() || is_https,
            tls,
            proxies,
            audit_checkpoint_file,
            allowed_hosts: read_hosts(root),
            oidc: OidcConfig::read(root),
            public_url: public_url.cloned(),
        };
        if asks_for_tls && public_url.is_some() && !is_https {
            let remedy = "Write it with https, or remove it: with a certificate the console does not serve plain HTTP.";
            root.error_at(
                "public_url",
                &root.place_of("public_url"),
                "is http, but [tls] is given".to_owned(),
                remedy.to_owned(),
            );
        }
        if access.oidc.is_some() && public_url.is_none() && !listen.ip().is_loopback() {
            root.report_missing(
                "public_url",
                "Set it to the console's https address, to which the identity provider sends users back.",
            );
        }
        // An invalid [tls] section is already reported.
        if !asks_for_tls && let Some(refusal) = access.refusal(listen) {
            root.error_at("listen", &root.place_of("listen"), refusal.why, refusal.remedy);
        }
        access
    }

    /// Why listening on this address is refused, if it is.
    pub fn refusal(&self, listen: SocketAddr) -> Option<Refusal> {
        if listen.ip().is_loopback() || self.tls.is_some() {
            return None;
        }
        let open = format!("\"{listen}\" is open to other hosts");
        let is_https = self
            .public_url
            .as_ref()
            .is_some_and(|url| url.scheme() == "https");
        let (why, remedy) = match (self.proxies.is_empty(), is_https) {
            (false, true) => return None,
            (false, false) => (
                "and public_url is not https, so the proxy may serve plain HTTP",
                "Write public_url = \"https://…\", the public address of the proxy.",
            ),
            (true, _) => (
                "and passwords, tokens and locks would cross the network unencrypted",
                "Set cert_file and key_file in [tls]. Or, behind a proxy that terminates HTTPS, set trusted in [proxy] to \
                 the proxy's address, and public_url to its https address. Or listen on 127.0.0.1 or [::1], and connect \
                 through ssh -L.",
            ),
        };
        Some(Refusal {
            why: format!("{open}, {why}"),
            remedy: remedy.to_owned(),
        })
    }

    /// For `check-config`: how users reach the console, in one sentence.
    pub fn explain(&self, listen: SocketAddr) -> String {
        let public_url = self
            .public_url
            .as_ref()
            .map(|url| url.as_str().trim_end_matches('/'));
        if let Some(tls) = &self.tls {
            let url = public_url.map_or_else(|| format!("https://{listen}"), str::to_owned);
            return format!(
                "Users reach it at {url}: it listens on {listen} and speaks HTTPS itself, with the certificate in {}.",
                tls.cert_file.display()
            );
        }
        let url = public_url.map_or_else(|| format!("http://{listen}"), str::to_owned);
        if listen.ip().is_loopback() {
            return format!("Users reach it at {url}: it listens on {listen}, for this machine only.");
        }
        let proxies: Vec<String> = self.proxies.iter().map(ToString::to_string).collect();
        format!(
            "Users reach it at {url}: it listens on {listen} for the proxy in {} only, which terminates HTTPS.",
            proxies.join(", ")
        )
    }
}

/// The reason and the remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub why: String,
    pub remedy: String,
}

fn read_tls(section: &mut Section<'_>) -> Option<ServerTls> {
    let files = (
        section.optional("cert_file", &value_parsers::path()),
        section.optional("key_file", &value_parsers::path()),
    );
    for (key, other) in [("cert_file", "key_file"), ("key_file", "cert_file")] {
        if section.has(key) && !section.has(other) {
            section.report_missing(other, &format!("{key} is set: set {other} too, or remove both."));
        }
    }
    match files {
        (Some(cert_file), Some(key_file)) => Some(ServerTls { cert_file, key_file }),
        _ => None,
    }
}

fn read_hosts(root: &mut Section<'_>) -> Vec<String> {
    let allowed = root.list(
        "allowed_hosts",
        Some(&[]),
        "names of hosts without a port, such as allowed_hosts = [\"leasehold.internal\"]",
        &|text| match url::Host::parse(text) {
            Ok(url::Host::Domain(name)) if !name.is_empty() && !text.contains('*') => Ok(()),
            Ok(url::Host::Domain(_)) => Err("is not a complete name".to_owned()),
            Ok(_) => Err("is an address, and addresses are always accepted".to_owned()),
            Err(_) => Err("is not the name of a host".to_owned()),
        },
    );
    allowed.unwrap_or_default()
}

fn read_proxies(section: &mut Section<'_>) -> Vec<Network> {
    let trusted = section.list(
        "trusted",
        Some(&[]),
        "addresses and networks of proxies, such as trusted = [\"10.0.0.1\", \"10.1.0.0/16\"]",
        &|text| text.parse::<Network>().map(|_| ()).map_err(str::to_owned),
    );
    let trusted = trusted.unwrap_or_default();
    trusted.iter().filter_map(|text| text.parse().ok()).collect()
}
