//! `kind = "consul"`.

use secrecy::SecretString;

use super::reader::Section;
use super::secrets;
use super::value_parsers;

#[derive(Debug, Clone)]
pub struct ConsulConfig {
    /// `url`: `http://host:8500` or `https://…` of an agent or a server.
    pub url: String,
    /// `token` or `token_file`: ACL token for reading. Without it, the anonymous token's permissions apply.
    pub token: Option<SecretString>,
    /// `prefixes`: prefixes of the keys that are locks. Default `["locks/"]`.
    pub prefixes: Vec<String>,
    /// `unlock_token` or `unlock_token_file`: separate ACL token for forced unlocks. Without it, forced unlock is
    /// refused on this backend.
    pub unlock_token: Option<SecretString>,
    /// `datacenter`. Default: that of the agent.
    pub datacenter: Option<String>,
    /// `namespace`, of Consul Enterprise.
    pub namespace: Option<String>,
}

pub const PREFIXES_DEFAULT: &[&str] = &["locks/"];
const URL_FIT: &str = "\"http://host:8500\" or https://, without a user: the token is in token_file";
const TOKEN_FIT: &str = "token = \"…\", or token_file, the path of a file that holds it";
const UNLOCK_FIT: &str = "unlock_token = \"…\", or unlock_token_file, the path of a file that holds it";

impl ConsulConfig {
    pub(super) fn read(section: &mut Section<'_>) -> Option<Self> {
        let url = section.required("url", &value_parsers::checked(URL_FIT, agent_url));
        let mut secret = |key, file_key, expected| {
            section.secret(key, file_key, expected, &secrets::not_empty, secrets::hidden)
        };
        let token = secret("token", "token_file", TOKEN_FIT);
        let unlock_token = secret("unlock_token", "unlock_token_file", UNLOCK_FIT);
        let prefixes = section.list(
            "prefixes",
            Some(PREFIXES_DEFAULT),
            "the prefixes of the keys that are locks, such as prefixes = [\"locks/\"]",
            &|prefix| match prefix {
                "" => Err("would list every key".to_owned()),
                _ if prefix.starts_with('/') => Err("starts with /, and keys of Consul do not".to_owned()),
                _ => Ok(()),
            },
        );
        let datacenter = section.optional("datacenter", &value_parsers::text("dc1"));
        let namespace = section.optional("namespace", &value_parsers::text("team-1"));
        refuse_unused(section);
        Some(Self {
            url: url?,
            token,
            prefixes: prefixes?,
            unlock_token,
            datacenter,
            namespace,
        })
    }
}

/// Common keys that Consul has no use for.
fn refuse_unused(section: &Section<'_>) {
    let wrong = |key: &'static str, message: &str, remedy: &str| {
        if section.has(key) {
            section.error_at(key, &section.place_of(key), message.to_owned(), remedy.to_owned());
        }
    };
    for key in ["user", "password", "password_file"] {
        wrong(
            key,
            "Consul has ACL tokens and no users",
            "Write token_file instead.",
        );
    }
    wrong(
        "server_name",
        "is not supported for Consul",
        "Write the name in the server's certificate as the host of `url`.",
    );
}

/// Shown on pages, so it must not contain credentials.
fn agent_url(text: &str) -> Result<(), String> {
    secrets::url_of(&["http", "https"])(text)?;
    let rest = text.split_once("://").map_or("", |(_, rest)| rest);
    if rest.contains('@') {
        Err("holds a user or a password".to_owned())
    } else if rest.contains(['?', '#']) || rest.trim_end_matches('/').contains('/') {
        Err("has more than a host and a port".to_owned())
    } else {
        Ok(())
    }
}
