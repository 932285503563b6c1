//! `kind = "zookeeper"`.

use secrecy::SecretString;

use super::limits::REQUESTS_PER_SECOND;
use super::reader::Section;
use super::secrets;
use super::value_parsers;

#[derive(Debug, Clone)]
pub struct ZookeeperConfig {
    /// `connect`: `host:port,host:port/chroot`, the connect string of ZooKeeper's own clients.
    pub connect: String,
    /// `paths`: nodes below which locks are looked for. Default `["/locks"]`.
    pub paths: Vec<String>,
    /// `requests_per_second`: most requests of one backend to the ensemble. Default 10000.
    pub requests_per_second: u32,
    /// `unlock_user`: separate account for forced unlocks. Without it, forced unlock is refused on this backend.
    pub unlock_user: Option<String>,
    /// `unlock_password` or `unlock_password_file`.
    pub unlock_password: Option<SecretString>,
}

pub const PATHS_DEFAULT: &[&str] = &["/locks"];
pub const REQUESTS_PER_SECOND_DEFAULT: u32 = 10_000;
const PATHS_FIT: &str = "the nodes below which locks are, such as paths = [\"/locks\"]";
const CONNECT_FIT: &str = "\"host:2181,host:2181\", with \"/chroot\" after the last one if there is one";
const UNLOCK_FIT: &str = "unlock_password = \"…\", or unlock_password_file, the path of a file that holds it";

impl ZookeeperConfig {
    pub(super) fn read(section: &mut Section<'_>) -> Option<Self> {
        let connect = section.required("connect", &value_parsers::checked(CONNECT_FIT, connect_string));
        let paths = section.list("paths", Some(PATHS_DEFAULT), PATHS_FIT, &absolute_path);
        let requests_per_second = section.or(
            "requests_per_second",
            REQUESTS_PER_SECOND_DEFAULT,
            &value_parsers::integer_within(&REQUESTS_PER_SECOND),
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
        refuse_tls(section);
        Some(Self {
            connect: connect?,
            paths: paths?,
            requests_per_second,
            unlock_user,
            unlock_password,
        })
    }
}

/// The client library speaks plain text only.
fn refuse_tls(section: &Section<'_>) {
    for key in ["ca_file", "cert_file", "server_name"] {
        if section.has(key) {
            let remedy = "Remove it, and let a tunnel on this host (stunnel) speak TLS to the ensemble.";
            let message = "TLS to ZooKeeper is not supported".to_owned();
            section.error_at(key, &section.place_of(key), message, remedy.to_owned());
        }
    }
}

fn connect_string(text: &str) -> Result<(), String> {
    if text.contains('@') {
        return Err("holds a user or a password: write them in `user` and `password`".to_owned());
    }
    if text.contains("://") {
        return Err("is a URL".to_owned());
    }
    let (hosts, chroot) = match text.find('/') {
        Some(slash) => text.split_at(slash),
        None => (text, ""),
    };
    for host in hosts.split(',') {
        let Some((name, port)) = host.rsplit_once(':') else {
            return Err(format!("has {host:?} without a port"));
        };
        if name.is_empty() || port.parse::<u16>().is_err() {
            return Err(format!("has {host:?}, which is not a host and a port"));
        }
    }
    if chroot.is_empty() {
        Ok(())
    } else {
        absolute_path(chroot)
    }
}

/// ZooKeeper's rules for a path.
fn absolute_path(path: &str) -> Result<(), String> {
    if !path.starts_with('/') {
        return Err("does not start with /".to_owned());
    }
    if path.len() > 1 && path.ends_with('/') {
        return Err("ends with /".to_owned());
    }
    let parts = path.split('/').skip(1);
    if path.len() > 1 && parts.into_iter().any(|part| matches!(part, "" | "." | "..")) {
        return Err("has an empty or a relative part".to_owned());
    }
    if path.chars().any(char::is_control) {
        return Err("has control characters".to_owned());
    }
    Ok(())
}
