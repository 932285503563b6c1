//! Non-blocking messages: standard error may be a pipe that is not read, which must not block the end of the
//! command.

use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use super::super::output::report;

const WAIT_MAX: Duration = Duration::from_secs(1);

/// A message being written.
pub(super) struct PendingMessage(Receiver<()>);

pub(super) fn write_stderr(message: String) -> PendingMessage {
    let (sender, written) = mpsc::channel();
    // Without a thread the message is lost, which is acceptable.
    let _ = thread::Builder::new().name("message".to_owned()).spawn(move || {
        report(&message);
        let _ = sender.send(());
    });
    PendingMessage(written)
}

impl PendingMessage {
    /// Waits until it is written, with a timeout. Call before exit.
    pub(super) fn finish(self) {
        let _ = self.0.recv_timeout(WAIT_MAX);
    }
}
