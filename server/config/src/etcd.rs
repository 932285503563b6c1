//! `kind = "etcd"`.

use secrecy::SecretString;

use super::reader::Section;
use super::secrets;
use super::value_parsers;

#[derive(Debug, Clone)]
pub struct EtcdConfig {
    /// `endpoints`: `http://host:2379` or `https://…`, without credentials, which are in `user` and `password`.
    pub endpoints: Vec<String>,
    /// `prefixes`: key prefixes of locks, mutexes and elections. Default `["/locks/"]`.
    pub prefixes: Vec<String>,
    /// `unlock_user`: separate account for forced unlocks. Without it, forced unlock is refused on this backend.
    pub unlock_user: Option<String>,
    /// `unlock_password` or `unlock_password_file`.
    pub unlock_password: Option<SecretString>,
}

const UNLOCK_FIT: &str = "unlock_password = \"…\", or unlock_password_file, the path of a file that holds it";

pub const PREFIXES_DEFAULT: &[&str] = &["/locks/"];

impl EtcdConfig {
    pub(super) fn read(section: &mut Section<'_>) -> Option<Self> {
        let endpoints = section.list(
            "endpoints",
            None,
            "endpoints = [\"http://127.0.0.1:2379\"], each http:// or https://, the user in `user` and `password`",
            &endpoint,
        );
        let prefixes = section.list(
            "prefixes",
            Some(PREFIXES_DEFAULT),
            "the prefixes of the keys that are locks, such as prefixes = [\"/locks/\"]",
            &|prefix| {
                if prefix.is_empty() {
                    Err("would list every key".to_owned())
                } else {
                    Ok(())
                }
            },
        );
        let unlock_user = section.optional("unlock_user", &value_parsers::text("leasehold-unlock"));
        let unlock_password = section.secret(
            "unlock_password",
            "unlock_password_file",
            UNLOCK_FIT,
            &secrets::not_empty,
            secrets::hidden,
        );
        if unlock_password.is_some() && unlock_user.is_none() {
            section.report_missing("unlock_user", "Name the account that the password belongs to.");
        }
        Some(Self {
            endpoints: endpoints?,
            prefixes: prefixes?,
            unlock_user,
            unlock_password,
        })
    }
}

/// Endpoints are shown on pages and must not contain credentials.
fn endpoint(text: &str) -> Result<(), String> {
    secrets::url_of(&["http", "https"])(text)?;
    if text.contains('@') {
        Err("holds a user or a password".to_owned())
    } else {
        Ok(())
    }
}
