//! How people reach the console and who knows them: `[tls]`, `[proxy]`, `public_url`, `allowed_hosts`, `[oidc]`; and `audit_heads_file`,
//! where its record is told.
//!
//! **Invariant:** an address that other hosts reach is refused unless what they send is encrypted: by our own
//! certificate, or by a declared proxy in front of us.

use std::net::SocketAddr;
use std::path::PathBuf;

use url::Url;

use super::network::Network;
use super::oidc::OidcConfig;
use super::reader::Section;
use super::rules;

#[derive(Debug, Clone, Default)]
pub struct AccessConfig {
    /// `[tls]`: our own certificate. Default none: plain HTTP.
    pub tls: Option<ServerTls>,
    /// `[proxy] trusted`: whose `X-Forwarded-For` and `X-Forwarded-Proto` are believed. Default none.
    pub proxies: Vec<Network>,
    /// `audit_heads_file`: each row of the audit record adds a line `row hash` here, for `leasehold audit verify`.
    /// Default none.
    pub audit_heads_file: Option<PathBuf>,
    /// `public_url`: where people reach the console. Default: the address it listens on.
    pub public_url: Option<Url>,
    /// `allowed_hosts`: further names under which requests are answered where `public_url` is given. Default none.
    pub allowed_hosts: Vec<String>,
    /// `[oidc]`: an identity provider that people may sign in through. Default none.
    pub oidc: Option<OidcConfig>,
    /// People come by HTTPS: by our certificate, or because `public_url` says so.
    pub is_secure: bool,
}

/// `[tls]`: the certificate that we show, and its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerTls {
    pub cert_file: PathBuf,
    pub key_file: PathBuf,
}

impl AccessConfig {
    pub(super) fn read(root: &mut Section<'_>, listen: SocketAddr, public_url: Option<&Url>) -> Self {
        let audit_heads_file = root.optional("audit_heads_file", &rules::written_path());
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
            audit_heads_file,
            allowed_hosts: read_hosts(root),
            oidc: OidcConfig::read(root),
            public_url: public_url.cloned(),
        };
        if asks_for_tls && public_url.is_some() && !is_https {
            let mend = "Write it with https, or remove it: with a certificate there is no plain HTTP.";
            root.error_at(
                "public_url",
                &root.place_of("public_url"),
                "is http, but [tls] is given".to_owned(),
                mend.to_owned(),
            );
        }
        if access.oidc.is_some() && public_url.is_none() && !listen.ip().is_loopback() {
            root.missing(
                "public_url",
                "Write it: the identity provider sends people back there.",
            );
        }
        // A certificate that was not understood is told already.
        if !asks_for_tls && let Some(refusal) = access.refusal(listen) {
            root.error_at("listen", &root.place_of("listen"), refusal.why, refusal.mend);
        }
        access
    }

    /// Why this address may not be listened on, if it may not.
    pub fn refusal(&self, listen: SocketAddr) -> Option<Refusal> {
        if listen.ip().is_loopback() || self.tls.is_some() {
            return None;
        }
        let open = format!("\"{listen}\" is open to other hosts");
        let is_https = self
            .public_url
            .as_ref()
            .is_some_and(|url| url.scheme() == "https");
        let (why, mend) = match (self.proxies.is_empty(), is_https) {
            (false, true) => return None,
            (false, false) => (
                "and public_url does not say that people come to the proxy by HTTPS",
                "Write public_url = \"https://…\", the address that the proxy answers.",
            ),
            (true, _) => (
                "and passwords, tokens and locks would go over the network in clear",
                "Give [tls] cert_file and key_file; or, behind a proxy that speaks HTTPS, its address in [proxy] trusted \
                 and public_url with https; or listen on 127.0.0.1 or [::1], and reach it through ssh -L.",
            ),
        };
        Some(Refusal {
            why: format!("{open}, {why}"),
            mend: mend.to_owned(),
        })
    }

    /// For `check-config`: how people come in, in a sentence.
    pub fn explain(&self, listen: SocketAddr) -> String {
        let public_url = self
            .public_url
            .as_ref()
            .map(|url| url.as_str().trim_end_matches('/'));
        if let Some(tls) = &self.tls {
            let home = public_url.map_or_else(|| format!("https://{listen}"), str::to_owned);
            return format!(
                "People reach it at {home}: it listens on {listen} and speaks HTTPS itself, with the certificate in {}.",
                tls.cert_file.display()
            );
        }
        let home = public_url.map_or_else(|| format!("http://{listen}"), str::to_owned);
        if listen.ip().is_loopback() {
            return format!("People reach it at {home}: it listens on {listen}, for this machine alone.");
        }
        let proxies: Vec<String> = self.proxies.iter().map(ToString::to_string).collect();
        format!(
            "People reach it at {home}: it listens on {listen} for the proxy in {} alone, which speaks HTTPS for it.",
            proxies.join(", ")
        )
    }
}

/// Why it may not be, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub why: String,
    pub mend: String,
}

fn read_tls(section: &mut Section<'_>) -> Option<ServerTls> {
    let files = (
        section.optional("cert_file", &rules::path()),
        section.optional("key_file", &rules::path()),
    );
    for (given, other) in [("cert_file", "key_file"), ("key_file", "cert_file")] {
        if section.has(given) && !section.has(other) {
            section.missing(
                other,
                &format!("{given} is given: write {other} too, or neither."),
            );
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
            Ok(url::Host::Domain(_)) => Err("is no whole name".to_owned()),
            Ok(_) => Err("is an address, which is always answered".to_owned()),
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
