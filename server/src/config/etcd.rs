//! `kind = "etcd"`.

use super::reader::Section;
use super::secrets;

#[derive(Debug, Clone)]
pub struct EtcdConfig {
    /// `endpoints`: `http://host:2379` or `https://…`. The user stands in `user` and `password`.
    pub endpoints: Vec<String>,
    /// `prefixes`: where locks, mutexes and elections are kept. Default `["/locks/"]`.
    pub prefixes: Vec<String>,
}

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
        Some(Self {
            endpoints: endpoints?,
            prefixes: prefixes?,
        })
    }
}

/// Endpoints are shown on pages: they hold no user.
fn endpoint(text: &str) -> Result<(), String> {
    secrets::url_of(&["http", "https"])(text)?;
    if text.contains('@') {
        Err("holds a user or a password".to_owned())
    } else {
        Ok(())
    }
}
