//! `[oidc]`: the identity provider for sign-in, and the roles of its groups.

use std::path::PathBuf;

use domain::access::{Grant, Role};
use domain::names::BackendName;
use secrecy::SecretString;
use url::Url;

use super::reader::Section;
use super::secrets;
use super::value_parsers;

#[derive(Debug, Clone)]
pub struct OidcConfig {
    /// `name`: display name on the sign-in page. Default `single sign-on`.
    pub name: String,
    /// `issuer`: exactly as in the provider's tokens.
    pub issuer: String,
    pub client_id: String,
    /// `client_secret` or `client_secret_file`; absent for a public client with PKCE.
    pub client_secret: Option<SecretString>,
    /// `scopes`: requested in addition to `openid`.
    pub scopes: Vec<String>,
    /// `roles_claim`: the claim of the ID token whose values give roles. Default `groups`.
    pub roles_claim: String,
    /// `[[oidc.role]]`
    pub roles: Vec<RoleMapping>,
    /// `ca_file`: PEM of the CA of the provider's certificate. Default: the system's roots.
    pub ca_file: Option<PathBuf>,
}

/// `[[oidc.role]]`: users with this claim value get this grant; `*` matches every user of the provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoleMapping {
    pub value: String,
    pub grant: Grant,
}

pub const NAME_DEFAULT: &str = "single sign-on";
pub const SCOPES_DEFAULT: [&str; 2] = ["profile", "email"];
pub const CLAIM_DEFAULT: &str = "groups";

impl OidcConfig {
    /// `None` if there is no such table.
    pub(super) fn read(root: &mut Section<'_>) -> Option<Self> {
        let is_asked_for = root.has("oidc");
        let mut section = root.section("oidc", "oidc");
        let taken = Self::take(&mut section, is_asked_for);
        section.finish();
        taken
    }

    fn take(section: &mut Section<'_>, is_asked_for: bool) -> Option<Self> {
        let name = value_parsers::text("Example");
        let issuer = issuer();
        let id = value_parsers::text("leasehold");
        let (issuer, client_id) = match is_asked_for {
            true => (
                section.required("issuer", &issuer),
                section.required("client_id", &id),
            ),
            false => (
                section.optional("issuer", &issuer),
                section.optional("client_id", &id),
            ),
        };
        let name = match is_asked_for {
            true => section.or("name", NAME_DEFAULT.to_owned(), &name),
            false => section.optional("name", &name).unwrap_or_default(),
        };
        let client_secret = section.secret(
            "client_secret",
            "client_secret_file",
            "the secret that the provider gave, or client_secret_file, the path of a file that holds it",
            &secrets::not_empty,
            secrets::hidden,
        );
        let one_word = |text: &str| match text.is_empty() || text.contains(char::is_whitespace) {
            true => Err("is empty or holds white space".to_owned()),
            false => Ok(()),
        };
        let scopes = match is_asked_for {
            true => section.list(
                "scopes",
                Some(&SCOPES_DEFAULT),
                "scopes such as [\"profile\", \"groups\"]",
                &one_word,
            ),
            false => section.node("scopes").and(None),
        };
        let claim = value_parsers::text(CLAIM_DEFAULT);
        let claim = match is_asked_for {
            true => section.or("roles_claim", CLAIM_DEFAULT.to_owned(), &claim),
            false => section.optional("roles_claim", &claim).unwrap_or_default(),
        };
        let ca_file = section.optional("ca_file", &value_parsers::path());
        let roles = read_roles(section, is_asked_for);
        is_asked_for.then_some(())?;
        Some(Self {
            name,
            issuer: issuer?,
            client_id: client_id?,
            client_secret,
            scopes: scopes.unwrap_or_default(),
            roles_claim: claim,
            roles,
            ca_file,
        })
    }
}

fn read_roles(section: &mut Section<'_>, is_asked_for: bool) -> Vec<RoleMapping> {
    if is_asked_for && !section.has("role") {
        let remedy =
            "Write at least one [[oidc.role]] with value and role: without one, no user has a permission.";
        section.report_missing("role", remedy);
    }
    let mut roles = Vec::new();
    for mut rule in section.sections("role", "oidc.role") {
        let value = rule.required("value", &value_parsers::text("lock-operators"));
        let role = rule.required("role", &value_parsers::choice::<Role>());
        let backend = rule.optional("backend", &backend());
        let prefix = rule.optional("prefix", &prefix());
        rule.finish();
        if let (Some(value), Some(role)) = (value, role) {
            let backend = backend.and_then(|name| BackendName::parse(&name).ok());
            roles.push(RoleMapping {
                value,
                grant: Grant {
                    role,
                    backend,
                    prefix,
                },
            });
        }
    }
    roles
}

fn prefix() -> value_parsers::Rule<'static, String> {
    value_parsers::checked(
        "a prefix such as \"tenant_1:\", or nothing for everything",
        |text| match text.is_empty() || text.chars().any(char::is_control) {
            true => Err("is empty or holds control characters".to_owned()),
            false => Ok(()),
        },
    )
}

fn backend() -> value_parsers::Rule<'static, String> {
    value_parsers::checked("the name of a backend", |text| match BackendName::parse(text) {
        Ok(_) => Ok(()),
        Err(_) => Err("is not the name of a backend".to_owned()),
    })
}

/// HTTPS, or a provider on this machine. Compared exactly with the provider's issuer.
fn issuer() -> value_parsers::Rule<'static, String> {
    value_parsers::checked(
        "the provider's issuer, such as \"https://id.example.com\"",
        |text| {
            let url = Url::parse(text).map_err(|error| format!("is not a URL ({error})"))?;
            let is_here = match url.host() {
                Some(url::Host::Ipv4(address)) => address.is_loopback(),
                Some(url::Host::Ipv6(address)) => address.is_loopback(),
                Some(url::Host::Domain(name)) => name == "localhost",
                None => return Err("names no host".to_owned()),
            };
            match url.scheme() {
                "https" => {}
                "http" if is_here => {}
                "http" => {
                    return Err("is not https: an attacker on the network could forge identities".to_owned());
                }
                _ => return Err("is not https".to_owned()),
            }
            if url.query().is_some() || url.fragment().is_some() || !url.username().is_empty() {
                return Err("has more than scheme, host, port and path".to_owned());
            }
            Ok(())
        },
    )
}
