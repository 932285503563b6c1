//! The clients of a run, as the test controls them: started, read, stopped and killed.

use std::collections::HashMap;
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;

use super::client::{ClientCommand, ClientOutput, MARK, ORDER};
use super::history::{Call, Micros, RecordedAnswer, now};

/// Each client is several workers of one process.
pub(super) const LANES: u32 = 4;

/// One client's output so far.
#[derive(Default)]
struct RecordedCalls {
    calls: HashMap<u64, Call>,
    last_known: Micros,
}

#[derive(Default)]
pub(super) struct FleetCounts {
    pub(super) known: AtomicU64,
    pub(super) unknown: AtomicU64,
}

pub(super) struct Client {
    pub(super) number: u32,
    child: Child,
    recorded: Arc<Mutex<RecordedCalls>>,
    listener: JoinHandle<()>,
}

impl Client {
    pub(super) fn start(order: &ClientCommand, tally: &Arc<FleetCounts>) -> Self {
        let number = order.client;
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "linearizability::client::client",
                "--ignored",
                "--nocapture",
            ])
            .env(ORDER, serde_json::to_string(order).unwrap())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let recorded: Arc<Mutex<RecordedCalls>> = Arc::default();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let (to, tally) = (recorded.clone(), tally.clone());
        let listener = super::aside(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                // The half line of a killed client was never a call.
                if let Some(line) = line
                    .strip_prefix(MARK)
                    .and_then(|text| serde_json::from_str(text).ok())
                {
                    record_output(number, &mut to.lock().unwrap(), &tally, line);
                }
            }
        });
        Self {
            number,
            child,
            recorded,
            listener,
        }
    }

    pub(super) fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id().expect("it runs")).unwrap();
        kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
    }

    /// When it last had a definite answer.
    pub(super) fn last_known(&self) -> Micros {
        self.recorded.lock().unwrap().last_known
    }

    /// Killed as by a power cut; its recorded answers stay. Returns the moment of its death, and its calls.
    pub(super) async fn kill(mut self) -> (Micros, Vec<Call>) {
        self.child.kill().await.unwrap();
        let died = now();
        self.listener.await.unwrap();
        (died, calls(&self.recorded))
    }

    /// Asks it to stop; it finishes its current call.
    pub(super) async fn finish(mut self) -> Vec<Call> {
        drop(self.child.stdin.take());
        let ended = tokio::time::timeout(Duration::from_secs(20), self.child.wait()).await;
        let status = ended.expect("a client exits when asked to stop").unwrap();
        assert!(status.success(), "client {}: {status}", self.number);
        self.listener.await.unwrap();
        calls(&self.recorded)
    }
}

fn calls(recorded: &Mutex<RecordedCalls>) -> Vec<Call> {
    recorded
        .lock()
        .unwrap()
        .calls
        .drain()
        .map(|(_, call)| call)
        .collect()
}

fn record_output(client: u32, recorded: &mut RecordedCalls, tally: &FleetCounts, line: ClientOutput) {
    match line {
        ClientOutput::Begin { id, at, what } => {
            let call = Call {
                client,
                begin: at,
                end: None,
                what,
                answer: RecordedAnswer::Unknown,
            };
            recorded.calls.insert(id, call);
        }
        ClientOutput::End { id, at, answer } => {
            let call = recorded.calls.get_mut(&id).expect("it began");
            if answer == RecordedAnswer::Unknown {
                tally.unknown.fetch_add(1, Ordering::Relaxed);
            } else {
                tally.known.fetch_add(1, Ordering::Relaxed);
                call.end = Some(at);
                recorded.last_known = at;
            }
            call.answer = answer;
        }
    }
}
