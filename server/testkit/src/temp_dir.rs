//! A throwaway server's temporary folder and the shell that guards it.
//!
//! The guard is `sh`, in a process group of its own (so that Ctrl-C in the terminal does not reach it), reading a pipe
//! whose other end only we hold. We write it the process id of the server at each start, and 0 once the server is gone.
//! When the pipe closes, because the folder is dropped or because we died, it ends what runs and removes the folder.
//! `PR_SET_PDEATHSIG` would need `unsafe`, fires when a *thread* ends, and removes no folder.

use std::{
    fs,
    fs::{DirBuilder, OpenOptions},
    io,
    io::Write,
    os::unix::{
        fs::{DirBuilderExt, OpenOptionsExt},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
};

use parking_lot::Mutex;

use super::{StartError, binaries, run_as::Account};

/// `$1` folder, `$2` the signal that ends the server without leaving shared memory behind, within 8 s. A Postgres that
/// was killed outright leaves a System V segment; `postmaster.pid` has its id, as the seventh line.
const GUARD: &str = r#"
pid=0
while read -r line; do pid=$line; done
if [ "$pid" != 0 ]; then
    kill -s CONT -- "-$pid"
    kill -s "$2" -- "$pid"
    tries=0
    while [ "$tries" -lt 80 ] && kill -s 0 -- "$pid"; do
        case "$(cat "/proc/$pid/stat")" in *") Z "*) break ;; esac
        sleep 0.1
        tries=$((tries + 1))
    done
    kill -s KILL -- "-$pid"
fi
if [ -f "$1/data/postmaster.pid" ]; then
    segment=$(sed -n 7p "$1/data/postmaster.pid")
    ipcrm -m "${segment##* }"
fi
rm -rf -- "$1"
"#;

#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    account: Account,
    guard: Child,
    /// Locked for one short write. `None` only while being dropped.
    pipe: Mutex<Option<ChildStdin>>,
}

impl Folder {
    /// A folder for a server; `what` is its display name.
    pub(super) fn of_server(what: &'static str, name: &str, end_signal: &str) -> Result<Self, StartError> {
        let account = Account::choose(what)?;
        Self::create(name, account, end_signal).map_err(|source| StartError::Io {
            what,
            doing: "make a folder",
            source,
        })
    }

    /// A new folder under the system's temporary folder, owned by `account`, closed to others.
    /// `end_signal` is the guard's, without `SIG`: `KILL`, `QUIT`.
    pub(super) fn create(name: &str, account: Account, end_signal: &str) -> io::Result<Self> {
        // The guard first: a process killed in between leaves nothing behind. A random name, so that it is unique.
        let path = std::env::temp_dir().join(format!("leasehold-{name}-{:032x}", rand::random::<u128>()));
        let mut guard = Command::new("sh")
            .args(["-c", GUARD, "leasehold-guard"])
            .arg(&path)
            .arg(end_signal)
            .env_clear()
            .env("PATH", binaries::path_variable())
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        if let Err(error) = DirBuilder::new().mode(0o700).create(&path) {
            // An existing folder is not ours to remove.
            let _ended = guard.kill().and_then(|()| guard.wait());
            return Err(error);
        }
        let pipe = Mutex::new(guard.stdin.take());
        let folder = Self {
            path,
            account,
            guard,
            pipe,
        };
        account.chown(folder.path())?;
        Ok(folder)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn account(&self) -> Account {
        self.account
    }

    /// The server's output, all of its starts one after the other.
    pub(super) fn log(&self) -> PathBuf {
        self.path.join("server.log")
    }

    /// Writes a file that only the server's account and root can read: configuration, keys, passwords.
    pub(super) fn write_private(&self, name: &str, content: &[u8]) -> io::Result<PathBuf> {
        let path = self.path.join(name);
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&path)?;
        file.write_all(content)?;
        self.account.chown(&path)?;
        Ok(path)
    }

    /// Tells the guard which process to end if this process dies; 0 for none.
    pub(super) fn guard_pid(&self, pid: u32) {
        let mut pipe = self.pipe.lock();
        if let Some(pipe) = pipe.as_mut()
            && let Err(error) = writeln!(pipe, "{pid}")
        {
            tracing::warn!(folder = %self.path.display(), %error, "the guard of a throwaway server is gone");
        }
    }
}

impl Drop for Folder {
    /// Waits for the guard, so that the folder is gone afterwards; removes it itself should the guard have been killed.
    fn drop(&mut self) {
        self.pipe.lock().take();
        let _ = self.guard.wait();
        if self.path.exists()
            && let Err(error) = fs::remove_dir_all(&self.path)
        {
            tracing::warn!(folder = %self.path.display(), %error, "could not remove a throwaway server's folder");
        }
    }
}
