//! Which account a throwaway server runs as: ours, or an unprivileged one where we are root.
//!
//! Postgres refuses root; Redis and etcd would accept it, but a demo has no business running servers as root.

use std::{fs, io, os::unix::fs::chown, path::Path};

use super::StartError;

/// Preferred accounts, in order. Both exist on Debian with the Postgres package.
const CANDIDATES: [&str; 2] = ["postgres", "nobody"];

/// `None`: the account of this process.
#[derive(Debug, Clone, Copy)]
pub(super) struct Account(Option<(u32, u32)>);

impl Account {
    pub(super) fn choose(what: &'static str) -> Result<Self, StartError> {
        if !rustix::process::geteuid().is_root() {
            return Ok(Self(None));
        }
        let passwd = fs::read_to_string("/etc/passwd").map_err(|source| StartError::Io {
            what,
            doing: "read /etc/passwd",
            source,
        })?;
        let ids = CANDIDATES.iter().find_map(|name| ids_of(&passwd, name));
        ids.map(|ids| Self(Some(ids)))
            .ok_or(StartError::NoAccount { what })
    }

    /// The current account.
    pub(super) fn ourselves() -> Self {
        Self(None)
    }

    /// User id and group id to take on, if any.
    pub(super) fn ids(self) -> Option<(u32, u32)> {
        self.0
    }

    /// Changes the owner of `path` to the account.
    pub(super) fn chown(self, path: &Path) -> io::Result<()> {
        match self.0 {
            Some((uid, gid)) => chown(path, Some(uid), Some(gid)),
            None => Ok(()),
        }
    }
}

fn ids_of(passwd: &str, name: &str) -> Option<(u32, u32)> {
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        if fields.next()? != name {
            return None;
        }
        let uid = fields.nth(1)?.parse().ok()?;
        Some((uid, fields.next()?.parse().ok()?))
    })
}

#[cfg(test)]
mod tests {
    use super::ids_of;

    #[test]
    fn a_passwd_entry_has_user_and_group_id() {
        // The user's name must match whole: `post` is not `postgres`.
        let passwd =
            "root:x:0:0:root:/root:/bin/bash\npostgres:x:101:104:,,,:/var/lib/postgresql:/bin/bash\n";
        assert_eq!(ids_of(passwd, "postgres"), Some((101, 104)));
        assert_eq!(ids_of(passwd, "post"), None);
    }
}
