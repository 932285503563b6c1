//! Messages that hold nobody up: standard error may be a pipe that nobody reads, and a command must end all the same.

use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use super::super::output::report;

const WAIT_MAX: Duration = Duration::from_secs(1);

/// A message under way.
pub(super) struct Saying(Receiver<()>);

pub(super) fn say(message: String) -> Saying {
    let (said, saying) = mpsc::channel();
    // Without a thread there is no message: that is no reason to stop here.
    let _ = thread::Builder::new().name("message".to_owned()).spawn(move || {
        report(&message);
        let _ = said.send(());
    });
    Saying(saying)
}

impl Saying {
    /// Until it is written, or nobody seems to read. For the very end.
    pub(super) fn finish(self) {
        let _ = self.0.recv_timeout(WAIT_MAX);
    }
}
