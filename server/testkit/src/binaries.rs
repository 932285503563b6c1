//! Finds the servers' programs, or names the command that installs them. Installs nothing.

use std::{
    env,
    ffi::OsString,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

/// A program that a throwaway server needs and this machine does not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} is not installed; install it with: {install}")]
pub struct MissingServer {
    /// The program, e.g. `redis-server`.
    pub what: &'static str,
    /// The command that fixes it.
    pub install: &'static str,
}

/// Looks in `PATH`, then where the set-up and Debian put the program.
pub(super) fn find(what: &'static str, install: &'static str) -> Result<PathBuf, MissingServer> {
    find_in(what, &search_path()).ok_or(MissingServer { what, install })
}

/// The `PATH` for servers, which get no other variable of ours (`PGPORT` or `ETCD_NAME` would change them).
pub(super) fn path_variable() -> OsString {
    env::var_os("PATH").unwrap_or_else(|| OsString::from("/usr/bin:/bin"))
}

fn search_path() -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = env::split_paths(&path_variable()).collect();
    folders.extend(tool_cache().map(|cache| cache.join("bin")));
    folders.extend(["/usr/local/bin", "/usr/bin", "/usr/sbin"].map(PathBuf::from));
    folders.extend(postgres_folders(Path::new("/usr/lib/postgresql")));
    folders
}

/// Where scripts/setup keeps what Debian 12 has no package of: programs in `bin`, Python's libraries in `python`.
pub fn tool_cache() -> Option<PathBuf> {
    let path_from_env = |name| {
        env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    path_from_env("LEASEHOLD_CACHE")
        .or_else(|| Some(path_from_env("XDG_CACHE_HOME")?.join("leasehold")))
        .or_else(|| Some(path_from_env("HOME")?.join(".cache/leasehold")))
}

/// Debian keeps each major version's programs in a folder of its own: the newest first.
fn postgres_folders(root: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(root) else {
        return Vec::new();
    };
    let mut versions: Vec<(u32, PathBuf)> = entries
        .filter_map(Result::ok)
        .filter_map(|e| Some((e.file_name().to_str()?.parse().ok()?, e.path().join("bin"))))
        .collect();
    versions.sort_by_key(|(version, _)| std::cmp::Reverse(*version));
    versions.into_iter().map(|(_, folder)| folder).collect()
}

fn find_in(program: &str, folders: &[PathBuf]) -> Option<PathBuf> {
    folders
        .iter()
        .map(|folder| folder.join(program))
        .find(|file| is_program(file))
}

fn is_program(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_names_the_command_that_installs_it() {
        // A name that no machine has.
        let missing = find("leasehold-no-such-server", "apt-get install -y nothing").unwrap_err();
        assert_eq!(
            missing.to_string(),
            "leasehold-no-such-server is not installed; install it with: apt-get install -y nothing"
        );
    }

    #[test]
    fn the_newest_postgres_comes_first() {
        // Ordered by number, not by text: 9 is older than 15; other folders are skipped.
        let root = tempfile::tempdir().unwrap();
        for name in ["9", "15", "notes"] {
            fs::create_dir(root.path().join(name)).unwrap();
        }
        assert_eq!(
            postgres_folders(root.path()),
            [root.path().join("15/bin"), root.path().join("9/bin")]
        );
    }
}
