//! One run of one server program: started in the background with its output in a log, watched, ended.
//!
//! Knows nothing about ports, readiness or which server it is.

use std::{
    fs,
    fs::OpenOptions,
    io,
    io::{Read, Seek, SeekFrom},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::Duration,
};

use rustix::process::Signal;
use tokio::time::sleep;

use super::{binaries, proc_table, temp_dir::Folder};

const POLL: Duration = Duration::from_millis(5);
/// How much of the log's end goes into an error.
const TAIL_BYTES: u64 = 4096;

#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    log: PathBuf,
    /// Offset of this run's output in the log.
    log_start: u64,
}

impl Process {
    /// Starts `program` as the folder's account, in the folder, in a process group of its own, with only `PATH` and a
    /// plain locale in its environment.
    pub(super) fn spawn(program: &Path, args: &[String], folder: &Folder) -> io::Result<Self> {
        let log = folder.log();
        let output = OpenOptions::new().create(true).append(true).open(&log)?;
        let log_start = output.metadata()?.len();
        let child = command(program, folder)
            .args(args)
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .process_group(0)
            .spawn()?;
        folder.guard_pid(child.id());
        Ok(Self {
            child,
            log,
            log_start,
        })
    }

    /// Valid until [`exited`](Self::exited) returned a status: the id is not reused before that.
    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(super) fn exited(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    pub(super) fn log_has(&self, marker: &str) -> bool {
        read_from(&self.log, self.log_start).is_ok_and(|text| text.contains(marker))
    }

    /// The end of this run's output, for an error message.
    pub(super) fn log_tail(&self) -> String {
        let len = fs::metadata(&self.log).map_or(0, |meta| meta.len());
        let from = self.log_start.max(len.saturating_sub(TAIL_BYTES));
        read_from(&self.log, from).map_or_else(
            |error| format!("(no log: {error})"),
            |text| text.trim().to_owned(),
        )
    }

    /// Stops the process and all of its descendants, and returns them when none of them runs any more.
    pub(super) async fn freeze(&self) -> io::Result<Vec<u32>> {
        let mut pids = vec![self.id()];
        proc_table::send(self.id(), Signal::STOP)?;
        wait_until(|| proc_table::is_stopped(self.id())).await;
        // Parents first: a process that is stopped starts no more children.
        loop {
            let running: Vec<u32> = proc_table::descendants(self.id())
                .into_iter()
                .filter(|pid| !pids.contains(pid))
                .collect();
            if running.is_empty() {
                return Ok(pids);
            }
            for &pid in &running {
                proc_table::send(pid, Signal::STOP)?;
            }
            wait_until(|| running.iter().all(|&pid| proc_table::is_stopped(pid))).await;
            pids.extend(running);
        }
    }

    /// Undoes [`freeze`](Self::freeze). Harmless on what is not frozen.
    pub(super) fn thaw(&self) -> io::Result<()> {
        for pid in proc_table::descendants(self.id()).into_iter().rev() {
            proc_table::send(pid, Signal::CONT)?;
        }
        proc_table::send(self.id(), Signal::CONT)
    }

    /// Kills all processes at once, like a power cut, and waits for their end.
    pub(super) async fn kill(&mut self) -> io::Result<()> {
        if self.exited()?.is_some() {
            return Ok(());
        }
        let pids = self.freeze().await?;
        for &pid in &pids {
            proc_table::send(pid, Signal::KILL)?;
        }
        self.reap().await?;
        wait_until(|| pids.iter().all(|&pid| proc_table::is_gone(pid))).await;
        Ok(())
    }

    /// Asks the process to end. The caller bounds the wait.
    pub(super) async fn end(&mut self, signal: Signal) -> io::Result<()> {
        if self.exited()?.is_some() {
            return Ok(());
        }
        let pids = proc_table::descendants(self.id());
        proc_table::send(self.id(), signal)?;
        self.thaw()?;
        self.reap().await?;
        wait_until(|| pids.iter().all(|&pid| proc_table::is_gone(pid))).await;
        Ok(())
    }

    /// For `Drop`, which cannot await: `signal`, up to 3 s of waiting, then SIGKILL for all.
    pub(super) fn end_now(&mut self, signal: Signal) {
        if !matches!(self.child.try_wait(), Ok(None)) {
            return;
        }
        let pids = proc_table::descendants(self.id());
        let _ = proc_table::send(self.id(), signal);
        let _ = self.thaw();
        for _ in 0..600 {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            thread::sleep(POLL);
        }
        for pid in pids {
            let _ = proc_table::send(pid, Signal::KILL);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    async fn reap(&mut self) -> io::Result<()> {
        while self.child.try_wait()?.is_none() {
            sleep(POLL).await;
        }
        Ok(())
    }
}

/// `program` as the folder's account, in the folder, without our environment.
pub(super) fn command(program: &Path, folder: &Folder) -> Command {
    let mut command = Command::new(program);
    command.current_dir(folder.path()).env_clear();
    command.env("PATH", binaries::path_variable()).env("LC_ALL", "C");
    if cfg!(target_arch = "aarch64") {
        // etcd 3.4 refuses to start on ARM without this.
        command.env("ETCD_UNSUPPORTED_ARCH", "arm64");
    }
    if let Some((uid, gid)) = folder.account().ids() {
        // As root, the standard library drops the supplementary groups too.
        command.uid(uid).gid(gid);
    }
    command
}

async fn wait_until(condition: impl Fn() -> bool) {
    while !condition() {
        sleep(POLL).await;
    }
}

fn read_from(file: &Path, offset: u64) -> io::Result<String> {
    let mut file = fs::File::open(file)?;
    file.seek(SeekFrom::Start(offset))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
