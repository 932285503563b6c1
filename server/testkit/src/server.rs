//! What the throwaway servers share: start until ready, the faults that tests inject, and the end.

use std::{
    io,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use tokio::{
    sync::Mutex,
    time::{sleep, timeout},
};

use super::{StartError, ports, process::Process, server_spec::Plan, temp_dir::Folder};

/// Long, because the machine may be busy with a build; not reached when all is well.
const START_DEADLINE: Duration = Duration::from_secs(60);
const STOP_DEADLINE: Duration = Duration::from_secs(20);
const PROBE_POLL: Duration = Duration::from_millis(10);
pub(crate) const PORT_ATTEMPTS: u32 = 5;

/// A throwaway server's process and folder. [`Postgres`](super::Postgres), [`Redis`](super::Redis),
/// [`Etcd`](super::Etcd) and others dereference to it. All methods take `&self`, so that a fault can be injected while clients run.
#[derive(Debug)]
pub struct Server {
    what: &'static str,
    plan: Plan,
    process: Mutex<Option<Process>>,
    /// 0 when not running.
    pid: AtomicU32,
    folder: Folder,
}

impl Server {
    /// Starts on free ports; on others if a port was taken meanwhile.
    pub(super) async fn start<const N: usize>(
        what: &'static str,
        folder: Folder,
        plan: impl Fn(&Folder, [u16; N]) -> io::Result<Plan>,
    ) -> Result<(Self, [u16; N]), StartError> {
        let plan_on_free_ports = |folder: &Folder| {
            let mut ports = [0; N];
            for port in &mut ports {
                *port = ports::free_port()?;
            }
            Ok((ports, plan(folder, ports)?))
        };
        let io = |source| StartError::Io {
            what,
            doing: "choose a port and write the configuration",
            source,
        };
        let (mut ports, first_plan) = plan_on_free_ports(&folder).map_err(io)?;
        let (process, pid) = (Mutex::new(None), AtomicU32::new(0));
        let mut server = Self {
            what,
            plan: first_plan,
            process,
            pid,
            folder,
        };
        for attempt in 1.. {
            match server.restart().await {
                Ok(()) => break,
                Err(StartError::PortTaken { .. }) if attempt < PORT_ATTEMPTS => {
                    (ports, server.plan) = plan_on_free_ports(&server.folder).map_err(io)?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok((server, ports))
    }

    /// The server's process id; `None` while it is stopped.
    pub fn pid(&self) -> Option<u32> {
        Some(self.pid.load(Ordering::Acquire)).filter(|&pid| pid != 0)
    }

    /// The temporary folder: data, configuration, log. Removed on drop.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The file with the server's output.
    pub fn log(&self) -> PathBuf {
        self.folder.log()
    }

    /// Ends the server in good order and waits until its processes are gone. Does nothing when it is not running.
    ///
    /// # Errors
    /// When it had to be killed because it was still there after 20 s, or a signal could not be sent.
    pub async fn stop(&self) -> io::Result<()> {
        self.stop_locked(&mut *self.process.lock().await).await
    }

    /// SIGKILL for all of its processes in one stroke (stopped first, so that none outlives another), and waits until
    /// they are gone. The data stay for [`restart`](Self::restart). Does nothing when it is not running.
    ///
    /// # Errors
    /// When a signal could not be sent, or something is still there after 20 s.
    pub async fn kill(&self) -> io::Result<()> {
        let mut slot = self.process.lock().await;
        if let Some(process) = slot.as_mut() {
            timeout(STOP_DEADLINE, process.kill()).await??;
            self.clear_process(&mut slot);
        }
        Ok(())
    }

    /// Stops all of its processes where they are (SIGSTOP): connections stay open, nothing is answered. Returns once
    /// none of them runs. Clients can still connect: the kernel accepts on the server's behalf.
    ///
    /// # Errors
    /// `NotConnected` when it is not running.
    pub async fn pause(&self) -> io::Result<()> {
        let mut slot = self.process.lock().await;
        timeout(STOP_DEADLINE, self.running(&mut slot)?.freeze())
            .await?
            .map(drop)
    }

    /// Undoes [`pause`](Self::pause).
    ///
    /// # Errors
    /// `NotConnected` when it is not running.
    pub async fn resume(&self) -> io::Result<()> {
        let mut slot = self.process.lock().await;
        self.running(&mut slot)?.thaw()
    }

    /// Starts it again with the same ports and data, after [`stop`](Self::stop), [`kill`](Self::kill) or an end of its
    /// own, and returns once it answers. When it is running, it is stopped in good order first.
    ///
    /// # Errors
    /// See [`StartError`]. The server is not running then.
    pub async fn restart(&self) -> Result<(), StartError> {
        let io = |doing| {
            move |source| StartError::Io {
                what: self.what,
                doing,
                source,
            }
        };
        let mut slot = self.process.lock().await;
        self.stop_locked(&mut slot)
            .await
            .map_err(io("stop the running process"))?;
        let process = Process::spawn(&self.plan.program, &self.plan.args, &self.folder);
        // Stored before the first await: dropping this future must not lose the process.
        let process = slot.insert(process.map_err(io("start the program"))?);
        self.pid.store(process.id(), Ordering::Release);
        let ready = self.wait_until_ready(process).await;
        if ready.is_err() {
            process.end_now(self.plan.end);
            self.clear_process(&mut slot);
        }
        ready
    }

    async fn stop_locked(&self, slot: &mut Option<Process>) -> io::Result<()> {
        let Some(process) = slot.as_mut() else {
            return Ok(());
        };
        let ended = timeout(STOP_DEADLINE, process.end(self.plan.stop)).await;
        if ended.is_err() {
            timeout(STOP_DEADLINE, process.kill()).await??;
        }
        self.clear_process(slot);
        ended.unwrap_or_else(|_| {
            Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "had to be killed after 20 s",
            ))
        })
    }

    async fn wait_until_ready(&self, process: &mut Process) -> Result<(), StartError> {
        let what = self.what;
        let mut last_error = String::from("it said nothing");
        let ready = timeout(START_DEADLINE, async {
            loop {
                let exited = process.exited();
                if let Some(status) = exited.map_err(|source| StartError::Io {
                    what,
                    doing: "wait",
                    source,
                })? {
                    return Err(exit_error(what, &status.to_string(), process.log_tail()));
                }
                if process.log_has(self.plan.marker) {
                    match self.plan.probe.probe().await {
                        Ok(()) => return Ok(()),
                        Err(error) => last_error = error,
                    }
                }
                sleep(PROBE_POLL).await;
            }
        })
        .await;
        ready.unwrap_or_else(|_| {
            let waited_s = START_DEADLINE.as_secs();
            Err(StartError::NotReady {
                what,
                waited_s,
                last: last_error,
                log: process.log_tail(),
            })
        })
    }

    /// After the process was reaped: its id may be reused.
    fn clear_process(&self, slot: &mut Option<Process>) {
        self.folder.guard_pid(0);
        self.pid.store(0, Ordering::Release);
        *slot = None;
    }

    fn running<'a>(&self, slot: &'a mut Option<Process>) -> io::Result<&'a mut Process> {
        let error = || format!("the throwaway {} is not running", self.what);
        slot.as_mut()
            .ok_or_else(|| io::Error::new(io::ErrorKind::NotConnected, error()))
    }
}

impl Drop for Server {
    /// Blocks until the processes are gone: some milliseconds; the folder follows.
    fn drop(&mut self) {
        if let Some(process) = self.process.get_mut() {
            process.end_now(self.plan.end);
            self.folder.guard_pid(0);
        }
    }
}

fn exit_error(what: &'static str, status: &str, log: String) -> StartError {
    // Postgres writes a capital A, Redis and etcd either.
    if log.contains("ddress already in use") {
        StartError::PortTaken { what, log }
    } else {
        StartError::Exited {
            what,
            status: status.to_owned(),
            log,
        }
    }
}
